/**
 * Kills, pauses and resumes a simulated process: its calls, its clock and its scripts all stop together.
 *
 * | the process is | calls | clock | scripts |
 * |---|---|---|---|
 * | killed | are never answered again; calls in flight may still have their effect | its timers are cancelled | never return |
 * | paused | calls and answers wait | timers wait | - |
 * | resumed | waiting calls and answers continue | timers that became due fire | - |
 */

import { hostTurn } from '../../adapters/clock/manual-clock.ts';
import { sleepByTimer } from '../../adapters/clock/sleep-by-timer.ts';
import type { CommitEntry } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { CommitResult, Storage } from '../../engine/storage/storage.port.ts';
import { mapMembers } from '../map-members.ts';

/**
 * A simulated process. Everything that the engine does outside of the process goes through `commit`, `call` and `notify`, and all of
 * its timers through `clock`. A process that has died receives no answer, no notification and no timer any more.
 */
export interface SimulatedProcess {
  /** The clock of the world, as this process sees it. */
  readonly clock: Clock;
  /** Stores entries of executions. The suite ends processes before and after each of these calls. */
  commit(
    batch: readonly CommitEntry[],
    store: () => MaybePromise<readonly CommitResult[]>,
  ): MaybePromise<readonly CommitResult[]>;
  /** Makes any other call. @param name - what is called, such as `executions.claim` */
  call<T>(name: string, run: () => MaybePromise<T>): MaybePromise<T>;
  /** Delivers what comes from outside of the process. */
  notify(deliver: () => void): void;
}

/**
 * What happens at the n-th call of the process, before or after it is applied. A process that is killed before a call runs for two
 * more turns of the event loop, with the call in flight: what it does in them, it does too early.
 */
export interface Fault {
  /** `commit`, or the name of another call, such as `executions.claim`. `any`: all calls count. */
  readonly method: string;
  /** Counted from 1. */
  readonly at: number;
  readonly when: 'before' | 'after';
  /** A function: the call waits for it. */
  readonly then: 'kill' | 'pause' | (() => Promise<void>);
}

export interface ProcessControl extends SimulatedProcess {
  readonly alive: boolean;
  /** Whether the fault has happened. */
  readonly triggered: boolean;
  /** Number of calls in flight. */
  readonly inFlight: number;
  /** How often a call was made, by its name or `any`. */
  calls(method: Fault['method']): number;
  kill(): void;
  pause(): void;
  resume(): void;
  /** Returns a function of the process, such as a script. */
  script<A extends unknown[], R>(script: (...args: A) => R): (...args: A) => R;
}

const NEVER = new Promise<never>(() => {});

export interface ProcessControlDependencies {
  /** The clock of the world. */
  readonly clock: Clock;
  readonly fault: Fault | undefined;
  /** Called for every commit that was applied, even if its answer never reaches the process. */
  onCommit(batch: readonly CommitEntry[], results: readonly CommitResult[]): void;
  onKill(): void;
}

export function controlProcess({ clock, fault, onCommit, onKill }: ProcessControlDependencies): ProcessControl {
  const counts = new Map<string, number>();
  const timers = new Set<() => void>();
  let alive = true;
  let triggered = false;
  let isArmed = fault !== undefined;
  let inFlight = 0;
  /** Set while the process is paused. */
  let paused: { readonly until: Promise<void>; readonly end: () => void } | undefined;

  const pause = () => {
    if (paused) return;
    let end = () => {};
    const until = new Promise<void>((resolve) => {
      end = resolve;
    });
    paused = { until, end };
  };

  const kill = () => {
    if (!alive) return;
    alive = false;
    for (const cancel of timers) cancel();
    onKill();
  };

  /** @returns a promise if the call waits */
  const trigger = (): Promise<void> | undefined => {
    triggered = true;
    if (fault?.then === 'kill') kill();
    else if (fault?.then === 'pause') pause();
    else return fault?.then();
    return undefined;
  };

  const faultAt = (method: string): Fault['when'] | undefined => {
    for (const counted of [method, 'any']) counts.set(counted, (counts.get(counted) ?? 0) + 1);
    if (!fault || !isArmed || (fault.method !== 'any' && fault.method !== method)) return undefined;
    if (counts.get(fault.method) !== fault.at) return undefined;
    isArmed = false;
    return fault.when;
  };

  /** Delivers an answer: never to a killed process, later to a paused one. */
  const deliver = <T>(give: () => T): MaybePromise<T> => {
    if (!alive) return NEVER;
    return paused ? paused.until.then(() => deliver(give)) : give();
  };

  const answered = <T>(value: T, when: Fault['when'] | undefined): MaybePromise<T> => {
    const waits = when === 'after' ? trigger() : undefined;
    return waits ? waits.then(() => deliver(() => value)) : deliver(() => value);
  };

  const settled = <T>(running: MaybePromise<T>, when: Fault['when'] | undefined): MaybePromise<T> => {
    if (!(running instanceof Promise)) return answered(running, when);
    inFlight += 1;
    return running.then(
      (value) => {
        inFlight -= 1;
        return answered(value, when);
      },
      (thrown) => {
        inFlight -= 1;
        return deliver(() => {
          throw thrown;
        });
      },
    );
  };

  const call = <T>(method: string, run: () => MaybePromise<T>): MaybePromise<T> => {
    if (!alive) return NEVER;
    if (paused) return paused.until.then(() => call(method, run));
    const when = faultAt(method);
    if (when !== 'before') return settled(run(), when);
    if (fault?.then === 'kill') {
      void hostTurn().then(hostTurn).then(trigger);
      return NEVER;
    }
    const waits = trigger();
    return waits ? waits.then(() => call(method, run)) : call(method, run);
  };

  const setTimer: Clock['setTimer'] = (ms, callback, options) => {
    let cancelled = false;
    const fire = () => {
      timers.delete(cancel);
      void deliver(() => (cancelled ? undefined : callback()));
    };
    const stop = alive ? clock.setTimer(ms, fire, options) : () => {};
    const cancel = () => {
      cancelled = true;
      timers.delete(cancel);
      stop();
    };
    timers.add(cancel);
    return cancel;
  };

  return {
    get alive() {
      return alive;
    },
    get triggered() {
      return triggered;
    },
    get inFlight() {
      return inFlight;
    },
    calls: (method) => counts.get(method) ?? 0,
    kill,
    pause,
    resume() {
      const before = paused;
      paused = undefined;
      before?.end();
    },
    clock: { now: () => clock.now(), monotonic: () => clock.monotonic(), setTimer, sleep: sleepByTimer(setTimer) },
    call,
    commit(batch, store) {
      const noted = (results: readonly CommitResult[]) => {
        onCommit(batch, results);
        return results;
      };
      return call('commit', () => {
        const storing = store();
        return storing instanceof Promise ? storing.then(noted) : noted(storing);
      });
    },
    notify: (notice) => void deliver(notice),
    script:
      (script) =>
      (...args) => {
        if (!alive) return NEVER as never;
        const answer = script(...args);
        if (!(answer instanceof Promise)) return answer;
        const late = answer.then(
          (value) => deliver(() => value),
          (thrown) =>
            deliver(() => {
              throw thrown;
            }),
        );
        // Nobody may wait for it, as nobody may wait for the answer.
        late.catch(() => {});
        return late as typeof answer;
      },
  };
}

/** A storage whose calls belong to a process. */
export function ofProcess(process: SimulatedProcess, storage: Storage): Storage {
  const wrap = <P extends object>(port: P, path: string): P =>
    mapMembers(port, (value, key) => {
      if (typeof value !== 'function') {
        const isPart = typeof value === 'object' && value !== null && key !== 'capabilities';
        return isPart ? wrap(value, `${path}${String(key)}.`) : value;
      }
      const apply = (...args: unknown[]) => Reflect.apply(value, port, args);
      const name = path + String(key);
      if (name === 'watch') return (listener: () => void) => apply(() => process.notify(listener));
      if (name === 'commit') {
        return (...args: Parameters<Storage['commit']>) => process.commit(args[1], () => apply(...args));
      }
      return (...args: unknown[]) => process.call(name, () => apply(...args));
    });
  return wrap(storage, '');
}
