/** Knows when nothing is in flight, and moves a manual clock on then. */

import type { Clock } from '../../engine/ports/clock.ts';
import { hostTurn, type ManualClock } from './manual-clock.ts';

export interface IdleWatch {
  /** The same function; while the promise that it gives is open, something is in flight. */
  watchCall<A extends unknown[], R>(call: (...args: A) => R): (...args: A) => R;
  /** The same clock: while a run waits for a turn of the event loop, something is in flight. */
  watchClock(): Clock;
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
    if (!isThenable(given)) return given;
    // One `then` alone: some thenables begin their work with each.
    const promise = given instanceof Promise ? given : Promise.resolve(given);
    inFlight += 1;
    const done = () => {
      inFlight -= 1;
    };
    promise.then(done, done);
    return promise as R;
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

  // The port's methods see the port itself, so that classes with private fields work; the proxy stands on an empty object,
  // so that frozen ports work; ports inside it are watched too.
  const watchMembers = <P extends object>(port: P): P =>
    new Proxy({} as P, {
      get(_empty, key) {
        const value: unknown = Reflect.get(port, key);
        if (typeof value === 'function') return (...args: unknown[]) => watch(Reflect.apply(value, port, args));
        return typeof value === 'object' && value !== null && !Array.isArray(value) ? watchMembers(value) : value;
      },
      has: (_empty, key) => key in port,
    });

  return {
    watchClock: () => Object.create(clock, { turn: { value: () => watch(clock.turn()) } }) as Clock,
    watchCall:
      (call) =>
      (...args) =>
        watch(call(...args)),
    watchPort(port) {
      return watchMembers(port);
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

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
