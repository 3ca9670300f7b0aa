/**
 * The life of a process, as far as a test can tell: its storage, its clock and its scripts, which all stop together.
 *
 * | it | storage | clock | scripts |
 * |---|---|---|---|
 * | dies | never answers again; what is under way may still be stored | no timer fires again | give nothing more |
 * | stands still | calls and answers wait | timers wait | - |
 * | goes on | they come | those that fell due fire | - |
 */

import type { Clock } from '../../../engine/ports/clock.ts';
import type { MaybePromise } from '../../../engine/ports/operation.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import { sleepByTimer } from '../../clock/sleep-by-timer.ts';
import { hostTurn } from '../manual-clock.ts';

/**
 * At the n-th call of a method of the storage, before or after it was applied, the process dies or stands still. One that dies
 * before lives on for two turns of the event loop, in which the call is under way: what it does meanwhile, it does too early.
 */
export interface Fate {
  /** `any`: calls of all methods count. */
  readonly method: keyof Storage | 'any';
  /** Counted from 1. */
  readonly at: number;
  readonly when: 'before' | 'after';
  readonly then: 'dies' | 'stands still';
}

export interface Life {
  readonly alive: boolean;
  /** Whether the fate has come. */
  readonly struck: boolean;
  /** Calls of the storage that are under way. */
  readonly inFlight: number;
  /** How often each method of the storage was called. */
  calls(method: Fate['method']): number;
  die(): void;
  standStill(): void;
  goOn(): void;
  /** @param storage - the handle of this process alone */
  storage(storage: Storage): Storage;
  clock(clock: Clock): Clock;
  call<A extends unknown[], R>(call: (...args: A) => R): (...args: A) => R;
}

const NEVER = new Promise<never>(() => {});

export interface LifeParts {
  readonly fate: Fate | undefined;
  /** Told of every commit that was applied, also where its answer never comes. */
  onCommit(batch: Parameters<Storage['commit']>[1], results: Awaited<ReturnType<Storage['commit']>>): void;
  onDeath(): void;
}

export function createLife({ fate, onCommit, onDeath }: LifeParts): Life {
  const counts = new Map<PropertyKey, number>();
  let alive = true;
  let struck = false;
  let isDue = fate !== undefined;
  let inFlight = 0;
  /** Set while it stands still. */
  let still: { readonly until: Promise<void>; readonly end: () => void } | undefined;

  const standStill = () => {
    if (still) return;
    let end = () => {};
    const until = new Promise<void>((resolve) => {
      end = resolve;
    });
    still = { until, end };
  };

  const die = () => {
    if (!alive) return;
    alive = false;
    onDeath();
  };

  const strike = () => {
    struck = true;
    if (fate?.then === 'dies') die();
    else standStill();
  };

  const fateOf = (method: PropertyKey): Fate['when'] | undefined => {
    for (const counted of [method, 'any']) counts.set(counted, (counts.get(counted) ?? 0) + 1);
    if (!fate || !isDue || (fate.method !== 'any' && fate.method !== method)) return undefined;
    if (counts.get(fate.method) !== fate.at) return undefined;
    isDue = false;
    return fate.when;
  };

  /** Gives an answer, if there is still somebody to hear it. */
  const answer = <T>(give: () => T): MaybePromise<T> => {
    if (!alive) return NEVER;
    return still ? still.until.then(() => answer(give)) : give();
  };

  const settled = (method: PropertyKey, args: unknown[], value: unknown, when: Fate['when'] | undefined) => {
    if (method === 'commit') onCommit(args[1] as never, value as never);
    if (when === 'after') strike();
    return answer(() => value);
  };

  const apply = (method: PropertyKey, args: unknown[], run: () => unknown): unknown => {
    if (!alive) return NEVER;
    if (still) return still.until.then(() => apply(method, args, run));
    const when = fateOf(method);
    if (when === 'before') {
      if (fate?.then === 'dies') {
        void hostTurn().then(hostTurn).then(strike);
        return NEVER;
      }
      strike();
      return apply(method, args, run);
    }
    const given = run();
    if (!(given instanceof Promise)) return settled(method, args, given, when);
    inFlight += 1;
    return given.then(
      (value) => {
        inFlight -= 1;
        return settled(method, args, value, when);
      },
      (thrown) => {
        inFlight -= 1;
        return answer(() => {
          throw thrown;
        });
      },
    );
  };

  const wrap = <P extends object>(port: P, path: string): P =>
    new Proxy({} as P, {
      get(_empty, key) {
        const value: unknown = Reflect.get(port, key);
        if (typeof value === 'function') {
          if (key === 'watch') return (listener: () => void) => value.call(port, () => void answer(listener));
          const method = path + String(key);
          return (...args: unknown[]) => apply(method, args, () => Reflect.apply(value, port, args));
        }
        const isPort = typeof value === 'object' && value !== null && key !== 'capabilities';
        return isPort ? wrap(value, `${path}${String(key)}.`) : value;
      },
      has: (_empty, key) => key in port,
    });

  return {
    get alive() {
      return alive;
    },
    get struck() {
      return struck;
    },
    get inFlight() {
      return inFlight;
    },
    calls: (method) => counts.get(method) ?? 0,
    die,
    standStill,
    goOn() {
      const before = still;
      still = undefined;
      before?.end();
    },
    storage: (storage) => wrap(storage, ''),
    clock(clock) {
      const setTimer: Clock['setTimer'] = (ms, callback, options) => {
        let cancelled = false;
        const cancel = clock.setTimer(ms, () => void answer(() => (cancelled ? undefined : callback())), options);
        return () => {
          cancelled = true;
          cancel();
        };
      };
      return { now: () => clock.now(), monotonic: () => clock.monotonic(), setTimer, sleep: sleepByTimer(setTimer) };
    },
    call:
      (call) =>
      (...args) => {
        if (!alive) return NEVER as never;
        const given = call(...args);
        if (!(given instanceof Promise)) return given;
        const late = given.then(
          (value) => answer(() => value),
          (thrown) =>
            answer(() => {
              throw thrown;
            }),
        );
        return late as typeof given;
      },
  };
}
