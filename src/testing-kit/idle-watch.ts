/** Watches for calls in flight, and advances a manual clock when there are none. */

import { hostTurn, type ManualClock } from '../adapters/clock/manual-clock.ts';
import type { AnyOperation, OperationContext } from '../engine/operation/operation.port.ts';
import { mapMembers } from './map-members.ts';

export interface IdleWatch {
  /** Returns the same function. A call is in flight until its promise settles, or the signal among its arguments aborts. */
  watchCall<A extends unknown[], R>(call: (...args: A) => R): (...args: A) => R;
  /** Returns the same port, with every method watched. */
  watchPort<P extends object>(port: P): P;
  /** Returns the same operation. An attempt is in flight, except while an agent runs that it calls. */
  watchOperation(operation: AnyOperation): AnyOperation;
  /**
   * Returns the promise's result. Until it settles, time advances whenever nothing is in flight.
   *
   * @param whyStuck - asked when nothing is in flight and no timer is set. Its error rejects the result
   */
  driveUntil<R>(result: Promise<R>, whyStuck?: WhyStuck): Promise<R>;
  /** Time advances no more. */
  stop(): void;
}

export type WhyStuck = () => Promise<Error | undefined>;

/** A result is stuck after this number of turns without a call, each at least 1 ms: the test may be about to call something. */
const STUCK_TURNS = 50;

export function createIdleWatch(clock: ManualClock): IdleWatch {
  const inFlight = new Set<Flight>();
  let calls = 0;
  const awaited = new Set<{ readonly whyStuck?: WhyStuck | undefined; readonly reject: (error: Error) => void }>();
  let driving = false;
  let stopped = false;

  const watch = <R>(given: R, flight: Flight): R => {
    if (!isThenable(given)) return given;
    // Exactly one `then`: some thenables begin their work again with each call.
    const promise = given instanceof Promise ? given : Promise.resolve(given);
    inFlight.add(flight);
    calls += 1;
    const done = () => void inFlight.delete(flight);
    promise.then(done, done);
    return promise as R;
  };

  const isIdle = () => {
    for (const flight of inFlight) {
      // Nobody waits for what is aborted any more, and it may never end.
      if (flight.signal?.aborted) inFlight.delete(flight);
      else if (flight.calledAgents === 0) return false;
    }
    return true;
  };

  // Time advances after two quiet turns in a row: what the first turn started has had a turn as well.
  const drive = async () => {
    if (driving) return;
    driving = true;
    let quiet = 0;
    let stuck = 0;
    let seen = calls;
    while (awaited.size > 0 && !stopped) {
      await hostTurn();
      quiet = isIdle() ? quiet + 1 : 0;
      if (quiet < 2 || awaited.size === 0 || stopped) continue;
      quiet = 0;
      const moved = (await clock.advanceToNext()) || calls !== seen;
      stuck = moved ? 0 : stuck + 1;
      if (stuck === STUCK_TURNS) await refuseStuck();
      // Nothing is in flight and no timer is set: the result depends on something outside. The loop checks again after 1 ms.
      else if (!moved) await new Promise((resolve) => setTimeout(resolve, 1));
      seen = calls;
    }
    driving = false;
  };

  const refuseStuck = async () => {
    for (const { whyStuck, reject } of [...awaited]) {
      const error = await whyStuck?.();
      if (error) reject(error);
    }
  };

  // Ports inside the port are watched, too.
  const watchPort = <P extends object>(port: P): P =>
    mapMembers(port, (value) => {
      if (typeof value === 'function')
        return (...args: unknown[]) => watch(Reflect.apply(value, port, args), flightOf(args));
      return typeof value === 'object' && value !== null && !Array.isArray(value) ? watchPort(value) : value;
    });

  return {
    watchCall:
      (call) =>
      (...args) =>
        watch(call(...args), flightOf(args)),
    watchPort,
    watchOperation: (operation) =>
      mapMembers(operation, (value, key) => {
        // A schema may be a function with members.
        if (typeof value !== 'function' || key === 'config') return value;
        if (key !== 'run') return value.bind(operation);
        return (context: OperationContext) => {
          const flight = flightOf([context]);
          return watch(operation.run(withoutCalls(context, flight)), flight);
        };
      }),
    driveUntil<R>(result: Promise<R>, whyStuck?: WhyStuck) {
      return new Promise<R>((resolve, reject) => {
        const entry = { whyStuck, reject };
        awaited.add(entry);
        const done = () => void awaited.delete(entry);
        result.then(done, done);
        result.then(resolve, reject);
        void drive();
      });
    },
    stop() {
      stopped = true;
    },
  };
}

/** The agent that is called may wait for a retry. */
function withoutCalls(context: OperationContext, flight: Flight): OperationContext {
  const callAgent: OperationContext['callAgent'] = async (...call) => {
    flight.calledAgents += 1;
    try {
      return await context.callAgent(...call);
    } finally {
      flight.calledAgents -= 1;
    }
  };
  return new Proxy(context, { get: (target, key) => (key === 'callAgent' ? callAgent : Reflect.get(target, key)) });
}

/** A call in flight, with the signal among its arguments. */
interface Flight {
  readonly signal: AbortSignal | undefined;
  /** The agents that it calls now. While there are some, it does not count: they count by themselves. */
  calledAgents: number;
}

function flightOf(args: readonly unknown[]): Flight {
  for (const given of args) {
    const signal = typeof given === 'object' && given !== null ? (given as { signal?: unknown }).signal : undefined;
    if (signal instanceof AbortSignal) return { signal, calledAgents: 0 };
  }
  return { signal: undefined, calledAgents: 0 };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
