/** Orchestrators on a clock that counts its timers and jumps when a test says so. */

import { embeddedEngine } from '../../src/adapters/engine/embedded-engine.ts';
import type { EmbeddedEngineOptions } from '../../src/adapters/engine/engine-options.ts';
import { memoryStorage } from '../../src/adapters/storage/memory-storage.ts';
import { hostTurn, type ManualClock, manualClock } from '../../src/adapters/testing/manual-clock.ts';
import type { EnsembleSource } from '../../src/define.ts';
import { OrchestratorError } from '../../src/engine/errors.ts';
import { type Execution, isFinal } from '../../src/engine/model/execution.ts';
import type { Clock } from '../../src/engine/ports/clock.ts';
import type { Storage } from '../../src/engine/ports/storage.ts';
import type { Script } from '../../src/operations/code.ts';
import { createOrchestrator, type Orchestrator } from '../../src/orchestrator.ts';
import { laterStorage } from '../storage/later-storage.ts';

export interface CountingClock extends ManualClock {
  /** Timers that are set and have not fired. */
  readonly timers: number;
  /** The most that were ever set at once. */
  readonly mostTimers: number;
}

export function countingClock(now?: number): CountingClock {
  const inner = manualClock(now === undefined ? {} : { now });
  let timers = 0;
  let mostTimers = 0;
  const counted: Clock['setTimer'] = (ms, callback, options) => {
    let open = true;
    const over = () => {
      if (open) timers -= 1;
      open = false;
    };
    timers += 1;
    mostTimers = Math.max(mostTimers, timers);
    const cancel = inner.setTimer(
      ms,
      () => {
        over();
        callback();
      },
      options,
    );
    return () => {
      over();
      cancel();
    };
  };
  return {
    ...inner,
    get nextIn() {
      return inner.nextIn;
    },
    get timers() {
      return timers;
    },
    get mostTimers() {
      return mostTimers;
    },
    setTimer: counted,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const onAbort = () => {
          cancel();
          reject(signal?.reason);
        };
        const cancel = counted(ms, () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        });
        signal?.addEventListener('abort', onAbort, { once: true });
      }),
  };
}

/** The same moments, seen by a host whose wall clock is wrong by `ms`. */
export function skewedClock(clock: Clock, ms: number): Clock {
  return {
    now: () => clock.now() + ms,
    monotonic: clock.monotonic,
    setTimer: clock.setTimer,
    sleep: clock.sleep,
  };
}

/** Where executions wait: a store of one process, one that others share, and one that answers later. */
export const PLACES: readonly (readonly [name: string, create: () => Storage])[] = [
  ['memory', () => memoryStorage()],
  ['shared memory', () => memoryStorage({ shared: true })],
  ['a shared store that answers later', () => laterStorage(memoryStorage({ shared: true }))],
];

export interface Timed {
  readonly orchestrator: Orchestrator;
  readonly clock: CountingClock;
  readonly storage: Storage;
  /** For each attempt, when it began: its agent and the monotonic instant. */
  readonly began: readonly (readonly [agent: string, at: number])[];
  /** Moves time on by `ms`, and lets everything happen on the way. */
  advance(ms: number): Promise<void>;
  /** The record once it has ended. @throws Error when it does not within `mostMs` */
  ended(id: string, mostMs: number): Promise<Execution>;
}

export interface TimedOptions {
  readonly now?: number;
  /** Shared with another one. */
  readonly beside?: Pick<Timed, 'clock' | 'storage'>;
  readonly skewMs?: number;
  readonly engine?: EmbeddedEngineOptions;
}

/** @param flow - of the ensemble `e` */
export function timed(
  create: () => Storage,
  flow: readonly object[] | object,
  { now, beside, skewMs = 0, engine = {} }: TimedOptions = {},
): Timed {
  const clock = beside?.clock ?? countingClock(now);
  const storage = beside?.storage ?? create();
  const own = skewMs === 0 ? clock : skewedClock(clock, skewMs);
  const began: [string, number][] = [];
  const noted =
    (script: Script): Script =>
    (context) => {
      began.push([context.execution.agent, clock.monotonic()]);
      return script(context);
    };
  const scripts: Record<string, Script> = {
    echo: ({ input }) => input,
    boom() {
      throw new Error('boom');
    },
    never: () => new Promise(() => {}),
    slow: async ({ input, signal }) => {
      await own.sleep((input as { ms: number }).ms, signal);
      return input;
    },
    // As a peer does that says `Retry-After`.
    later({ input, execution }) {
      if (execution.attempt > 1) return input;
      const details = { retryAfterMs: (input as { ms: number }).ms };
      throw new OrchestratorError('AGENT_FAILED', 'later', { retryable: true, details });
    },
  };
  const definition = Array.isArray(flow) ? { name: 'e', flow } : { name: 'e', ...flow };
  const orchestrator = createOrchestrator({
    ensembles: [definition] as readonly EnsembleSource[],
    scripts: Object.fromEntries(Object.entries(scripts).map(([name, script]) => [name, noted(script)])),
    storage,
    clock: own,
    engine: embeddedEngine(engine),
  }) as Orchestrator;

  const settle = async () => {
    for (let turn = 0; turn < 8; turn++) await hostTurn();
  };
  const step = async (mostMs: number): Promise<number> => {
    const next = clock.nextIn;
    if (next === undefined || next > mostMs) {
      await clock.advance(mostMs);
      await settle();
      return mostMs;
    }
    await clock.advanceToNext();
    await settle();
    return next;
  };
  return {
    orchestrator,
    clock,
    storage,
    began,
    async advance(ms) {
      await settle();
      for (let left = ms; left > 0; ) left -= await step(left);
      await settle();
    },
    async ended(id, mostMs) {
      await settle();
      for (let left = mostMs; ; left -= await step(Math.max(0, left))) {
        const record = await storage.getExecution(id);
        if (record && isFinal(record.status)) return record;
        // What is due at that very instant is still done.
        if (left <= 0 && clock.nextIn !== 0) throw new Error(`${id} is ${record?.status} after ${mostMs} ms`);
      }
    },
  };
}
