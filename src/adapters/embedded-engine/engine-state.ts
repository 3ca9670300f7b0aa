/** The state of one embedded engine. The functions in this folder take it as their first argument. */

import type { EngineHost, LoadedDefinition } from '../../engine/execution/execution-engine.port.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import { createStorageRetry, type StorageRetry } from '../../engine/running/storage-retry.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import { type ActiveRuns, createActiveRuns, type Run } from './active-runs.ts';
import { type CommitWriter, createCommitWriter } from './commit-writer.ts';
import type { EmbeddedEngineOptions } from './engine-options.ts';
import { createEnginePauses, type EnginePauses } from './engine-pauses.ts';
import { createExecutionBackoff, type ExecutionBackoff } from './execution-backoff.ts';
import { createRunDependencies, type RunPartsOf } from './run-log.ts';
import { BLAME_WINDOW_MS, createSuspects, type Suspects } from './suspects.ts';
import { createWaiters, type Waiters } from './waiters.ts';
import { createWakeups, type RunCycle, type Wakeups } from './wakeups.ts';
import { createWorker, type Worker } from './worker.ts';

/** Definitions that are stored, and those that are being stored. */
export interface AcceptState {
  readonly stored: Set<string>;
  readonly writes: Map<string, Promise<void>>;
  /** Upper bound of the queued executions, as far as this process knows; counted in the storage when it reaches the limit. */
  queued: number;
}

export interface ResumeState {
  /** Definitions of claimed executions, and reads of them that are in progress. */
  readonly definitions: Map<string, MaybePromise<LoadedDefinition | string | undefined>>;
  /** Versions that this process can't run; it no longer claims executions of them. */
  readonly unsupportedVersions: Set<string>;
  /**
   * Executions that were freed from a dead worker and did not end here, with their number of recoveries: the log reports each
   * recovery once.
   */
  readonly recovered: Map<string, number>;
  /** Releases of suspects that have to wait, while they are in progress. */
  readonly postponing: Set<Promise<boolean>>;
  /** How many executions are being resumed that are not suspects. */
  count: number;
  readonly backoff: ExecutionBackoff;
}

export interface PollState {
  isStarted: boolean;
  intervals: number;
  cancelInterval: (() => void) | undefined;
  unwatch: (() => unknown) | undefined;
  /** A claim failed, and may have claimed executions that this process does not know of. */
  hasUnansweredClaim: boolean;
}

export interface ReclaimState {
  inProgress: Promise<void> | undefined;
  /** The monotonic instant at which the latest reclaim began. */
  beganAt: number;
  cancelTimer: (() => void) | undefined;
}

/** See `deferred-writes.ts`. */
export interface DeferredState {
  // Created on first use: a Cloudflare Worker can't create one outside of a request.
  stop: AbortController | undefined;
  isStopped: boolean;
  readonly backoff: ExecutionBackoff;
}

export interface EngineState {
  readonly host: EngineHost;
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: Required<EmbeddedEngineOptions>;
  readonly withRetry: StorageRetry;
  readonly writer: CommitWriter;
  readonly worker: Worker;
  readonly runPartsOf: RunPartsOf;
  readonly runs: ActiveRuns;
  readonly waiters: Waiters;
  readonly suspects: Suspects;
  readonly wakeups: Wakeups;
  readonly pauses: EnginePauses;
  readonly accept: AcceptState;
  readonly resume: ResumeState;
  readonly poll: PollState;
  readonly reclaim: ReclaimState;
  readonly deferred: DeferredState;
  /** Pauses of executions whose runs the storage stopped. */
  readonly brokenRuns: ExecutionBackoff;
  /** The monotonic instant of the next purge. */
  purgeAt: number | undefined;
  /** Whether executions may have ended that are not counted yet, and the monotonic instant of the next count. */
  readonly counts: { hasEnded: boolean; nextAt: number };
  /** It accepts nothing new, and waits for its runs. */
  isClosing: boolean;
  /** Set when its grace period is over: stops a run, also one that is launched after that. */
  stopRun: ((run: Run) => void) | undefined;
  /** Nothing claims, polls, reclaims or purges any more. */
  isStopped: boolean;
}

/** Pauses between the attempts to resume, release or end an execution whose storage keeps failing. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 300_000;
const MIN_CYCLE_RETRY_MS = 100;

/** @param runCycle - see `poll.ts` */
export function createEngineState(
  host: EngineHost,
  settings: Required<EmbeddedEngineOptions>,
  runCycle: RunCycle,
): EngineState {
  const { storage, clock, logger } = host;
  const { leaseMs, renewMs, groupCommit } = settings;
  const withRetry = createStorageRetry(clock, logger, leaseMs);
  const writer = createCommitWriter({ storage, clock, withRetry, groupCommit });
  const backoff = () => createExecutionBackoff(clock, FIRST_PAUSE_MS, MAX_PAUSE_MS);
  const runs = createActiveRuns(storage.capabilities.shared);
  const suspects = createSuspects(clock, () => wakeups.wake());
  const wakeups = createWakeups({
    ...{ clock, logger, run: runCycle, retryMs: Math.max(settings.sweepMs, MIN_CYCLE_RETRY_MS) },
    isFull: () => freePlaces({ settings, runs, suspects }) <= 0,
    wakeAt: storage.wakeAt && ((instant) => storage.wakeAt?.(instant)),
  });
  const worker = createWorker({
    ...{ storage, clock, logger, withRetry, leaseMs, renewMs, blameFrom: () => blameFrom({ clock, settings }) },
    newWorkerId: host.newWorkerId,
    onLost() {
      for (const run of runs.all()) run.lose();
      wakeups.wake();
    },
  });
  return {
    ...{ host, storage, clock, logger, settings, withRetry, writer, worker, runs, suspects, wakeups },
    runPartsOf: createRunDependencies({ storage, clock, withRetry, writer, worker }),
    waiters: createWaiters(storage),
    pauses: createEnginePauses({ storage, clock, withRetry }),
    accept: { stored: new Set(), writes: new Map(), queued: 0 },
    resume: {
      definitions: new Map(),
      recovered: new Map(),
      unsupportedVersions: new Set(),
      postponing: new Set(),
      count: 0,
      backoff: backoff(),
    },
    poll: {
      isStarted: false,
      intervals: 0,
      cancelInterval: undefined,
      unwatch: undefined,
      hasUnansweredClaim: false,
    },
    reclaim: { inProgress: undefined, beganAt: Number.NEGATIVE_INFINITY, cancelTimer: undefined },
    deferred: { stop: undefined, isStopped: false, backoff: backoff() },
    brokenRuns: backoff(),
    purgeAt: undefined,
    counts: { hasEnded: true, nextAt: 0 },
    isClosing: false,
    stopRun: undefined,
    isStopped: false,
  };
}

/** How many more runs may start. While suspects run, nothing else is claimed. */
export function freePlaces({ suspects, settings, runs }: Pick<EngineState, 'suspects' | 'settings' | 'runs'>): number {
  return suspects.areActive ? 0 : settings.concurrency - runs.taken;
}

/** Unix ms: what a dead process had claimed since then may be the cause of its death. A death is noticed at most a lease later. */
export function blameFrom({ clock, settings }: Pick<EngineState, 'clock' | 'settings'>): number {
  return clock.now() - BLAME_WINDOW_MS - settings.leaseMs;
}

/** The id of this worker. Undefined while it must not claim. Registers again after its lease was lost. */
export async function registerToClaim(engine: EngineState): Promise<string | undefined> {
  // After `close`, it claims only what no other process can claim.
  if ((engine.isClosing && !engine.runs.pending) || engine.settings.concurrency === 0) return undefined;
  return engine.worker.register();
}
