/** Watches for calls in flight, and advances a manual clock when there are none. */

import type { AnyOperation, OperationContext } from '../engine/ports/operation.ts';
import { hostTurn, type ManualClock } from './manual-clock.ts';
import { mapMembers } from './map-members.ts';

export interface IdleWatch {
  /** Returns the same function. Until the promise of a call settles, the call is in flight. */
  watchCall<A extends unknown[], R>(call: (...args: A) => R): (...args: A) => R;
  /** Returns the same port, with every method watched. */
  watchPort<P extends object>(port: P): P;
  /** Returns the same operation. An attempt is in flight, except while an agent runs that it calls. */
  watchOperation(operation: AnyOperation): AnyOperation;
  /** Returns the promise. Until it settles, time advances whenever nothing is in flight. */
  driveUntil<R>(result: Promise<R>): Promise<R>;
  /** Time advances no more. */
  stop(): void;
}

export function createIdleWatch(clock: ManualClock): IdleWatch {
  let inFlight = 0;
  let awaited = 0;
  let driving = false;
  let stopped = false;

  const watch = <R>(given: R): R => {
    if (!isThenable(given)) return given;
    // Exactly one `then`: some thenables begin their work again with each call.
    const promise = given instanceof Promise ? given : Promise.resolve(given);
    inFlight += 1;
    const done = () => {
      inFlight -= 1;
    };
    promise.then(done, done);
    return promise as R;
  };

  // Time advances after two quiet turns in a row: what the first turn started has had a turn as well.
  const drive = async () => {
    if (driving) return;
    driving = true;
    let quiet = 0;
    while (awaited > 0 && !stopped) {
      await hostTurn();
      quiet = inFlight === 0 ? quiet + 1 : 0;
      if (quiet < 2 || awaited === 0 || stopped) continue;
      quiet = 0;
      // Nothing is in flight and no timer is set: the result depends on something outside. The loop checks again after 1 ms.
      if (!(await clock.advanceToNext())) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    driving = false;
  };

  // The agent that is called may wait for a retry.
  const withoutCalls = (context: OperationContext): OperationContext => {
    let calls = 0;
    const callAgent: OperationContext['callAgent'] = async (...call) => {
      calls += 1;
      if (calls === 1) inFlight -= 1;
      try {
        return await context.callAgent(...call);
      } finally {
        calls -= 1;
        if (calls === 0) inFlight += 1;
      }
    };
    return new Proxy(context, { get: (target, key) => (key === 'callAgent' ? callAgent : Reflect.get(target, key)) });
  };

  // Ports inside the port are watched, too.
  const watchPort = <P extends object>(port: P): P =>
    mapMembers(port, (value) => {
      if (typeof value === 'function') return (...args: unknown[]) => watch(Reflect.apply(value, port, args));
      return typeof value === 'object' && value !== null && !Array.isArray(value) ? watchPort(value) : value;
    });

  return {
    watchCall:
      (call) =>
      (...args) =>
        watch(call(...args)),
    watchPort,
    watchOperation: (operation) =>
      mapMembers(operation, (value, key) => {
        // A schema may be a function with members.
        if (typeof value !== 'function' || key === 'config') return value;
        if (key !== 'run') return value.bind(operation);
        return (context: OperationContext) => watch(operation.run(withoutCalls(context)));
      }),
    driveUntil(result) {
      awaited += 1;
      const done = () => {
        awaited -= 1;
      };
      result.then(done, done);
      void drive();
      return result;
    },
    stop() {
      stopped = true;
    },
  };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
