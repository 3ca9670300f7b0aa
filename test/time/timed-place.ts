/** Orchestrators on a clock that counts its timers, and that a test can move. */

import { hostTurn, type ManualClock, manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import type { EmbeddedEngineOptions } from '../../src/adapters/embedded-engine/engine-options.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { EnsembleSource } from '../../src/authoring/define.ts';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import { type Execution, isFinal } from '../../src/engine/execution/execution.ts';
import type { Clock } from '../../src/engine/host/clock.port.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import type { Script } from '../../src/operations/code/script.ts';
import { createOrchestrator, type Orchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { laterStorage } from '../storage/later-storage.ts';

export interface CountingClock extends ManualClock {
  /** The number of timers that are set and have not fired. */
  readonly timers: number;
  /** The largest number of timers that were set at the same time. */
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

/** The clock of a host whose wall clock is wrong by `ms`. */
export function skewedClock(clock: Clock, ms: number): Clock {
  return {
    now: () => clock.now() + ms,
    monotonic: clock.monotonic,
    setTimer: clock.setTimer,
    sleep: clock.sleep,
  };
}

/** The storages of the tests: of one process, shared, and asynchronous. */
export const PLACES: readonly (readonly [name: string, create: () => Storage])[] = [
  ['memory', () => memoryStorage()],
  ['shared memory', () => memoryStorage({ shared: true })],
  ['a shared store that answers later', () => laterStorage(memoryStorage({ shared: true }))],
];

export interface Timed {
  readonly orchestrator: Orchestrator;
  readonly clock: CountingClock;
  readonly storage: Storage;
  /** For each attempt: its agent, and the monotonic instant at which it began. */
  readonly began: readonly (readonly [agent: string, at: number])[];
  /** Advances the time by `ms`, and runs everything that is due on the way. */
  advance(ms: number): Promise<void>;
  /** The record after the end. @throws Error if the execution does not end within `maxMs` */
  ended(id: string, maxMs: number): Promise<Execution>;
}

export interface TimedOptions {
  readonly now?: number;
  /** Shared with another process. */
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
  const recorded =
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
    // Like a peer that answers with `Retry-After`.
    later({ input, execution }) {
      if (execution.attempt > 1) return input;
      const details = { retryAfterMs: (input as { ms: number }).ms };
      throw new OrchestratorError('AGENT_FAILED', 'later', { retryable: true, details });
    },
  };
  const definition = Array.isArray(flow) ? { name: 'e', flow } : { name: 'e', ...flow };
  const orchestrator = createOrchestrator({
    ensembles: [definition] as readonly EnsembleSource[],
    scripts: Object.fromEntries(Object.entries(scripts).map(([name, script]) => [name, recorded(script)])),
    storage,
    clock: own,
    engine: embeddedEngine(engine),
  }) as Orchestrator;

  const settle = async () => {
    for (let turn = 0; turn < 8; turn++) await hostTurn();
  };
  const step = async (maxMs: number): Promise<number> => {
    const next = clock.nextIn;
    if (next === undefined || next > maxMs) {
      await clock.advance(maxMs);
      await settle();
      return maxMs;
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
    async ended(id, maxMs) {
      await settle();
      for (let left = maxMs; ; left -= await step(Math.max(0, left))) {
        const record = await storage.executions.get(id);
        if (record && isFinal(record.status)) return record;
        // Runs what is due at exactly that instant.
        if (left <= 0 && clock.nextIn !== 0) throw new Error(`${id} is ${record?.status} after ${maxMs} ms`);
      }
    },
  };
}
