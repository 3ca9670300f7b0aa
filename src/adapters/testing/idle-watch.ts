/** Knows when nothing is in flight, and moves a manual clock on then. */

import { hostTurn, type ManualClock } from './manual-clock.ts';

export interface IdleWatch {
  /** The same function; while the promise that it gives is open, something is in flight. */
  watchCall<A extends unknown[], R>(call: (...args: A) => R): (...args: A) => R;
  /** The same port, with every method watched. */
  watchPort<P extends object>(port: P): P;
  /** Gives the promise back, and moves time on while it is open and nothing is in flight. */
  driveUntil<R>(result: Promise<R>): Promise<R>;
}

export function createIdleWatch(clock: ManualClock): IdleWatch {
  let inFlight = 0;
  let awaited = 0;
  let driving = false;

  const watch = <R>(given: R): R => {
    if (!(given instanceof Promise)) return given;
    inFlight += 1;
    const done = () => {
      inFlight -= 1;
    };
    given.then(done, done);
    return given;
  };

  // Two turns in a row without anything in flight: what one turn set off has had its turn too.
  const drive = async () => {
    if (driving) return;
    driving = true;
    let quiet = 0;
    while (awaited > 0) {
      await hostTurn();
      quiet = inFlight === 0 ? quiet + 1 : 0;
      if (quiet < 2 || awaited === 0) continue;
      quiet = 0;
      // Nothing is due and nothing is in flight: what is awaited hangs on something outside, so look again, but gently.
      if (!(await clock.advanceToNext())) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    driving = false;
  };

  return {
    watchCall:
      (call) =>
      (...args) =>
        watch(call(...args)),
    watchPort(port) {
      return new Proxy(port, {
        get(target, key, receiver) {
          const value: unknown = Reflect.get(target, key, receiver);
          if (typeof value !== 'function') return value;
          return (...args: unknown[]) => watch(Reflect.apply(value, target, args));
        },
      });
    },
    driveUntil(result) {
      awaited += 1;
      const done = () => {
        awaited -= 1;
      };
      result.then(done, done);
      void drive();
      return result;
    },
  };
}
