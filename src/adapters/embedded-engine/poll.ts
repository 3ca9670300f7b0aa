/**
 * The engine's work: claims due executions while places are free, polls for cancellations and signals, and purges old executions.
 *
 * A cycle runs at the next instant at which an execution is due. With a shared storage, an interval runs a cycle every `sweepMs`, and
 * reclaims from dead workers twice as often.
 */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { NEVER } from '../../engine/execution/stored-execution.ts';
import { releaseLater } from './deferred-writes.ts';
import { type EngineState, freePlaces, registerToClaim } from './engine-state.ts';
import { countIfDue, purgeIfDue } from './purge.ts';
import {
  RECLAIMS_PER_SWEEP,
  reclaimIfDue,
  reclaimInBackground,
  reclaimIntervalMs,
  stopReclaiming,
} from './reclaim-dead-workers.ts';
import { idOf, resumeExecution } from './resume-execution.ts';

/** The largest number of executions in one claim. */
const MAX_CLAIMED = 500;

/** Begins to work on its own. Does nothing the second time, and where a process has no timers. */
export function startPolling(engine: EngineState): void {
  const { storage, wakeups, poll, logger } = engine;
  if (poll.isStarted || !storage.capabilities.timers) return;
  poll.isStarted = true;
  wakeups.start();
  if (storage.capabilities.shared) onInterval(engine);
  // No timer knows what an earlier process left.
  else if (storage.wakeAt) wakeups.wakeSoon();
  const watching = storage.watch?.(wakeups.wakeSoon);
  Promise.resolve(watching).then(
    (stop) => {
      poll.unwatch = stop;
      if (engine.isStopped) void stop?.();
    },
    (error: unknown) => logger.warn({ err: error }, 'the storage can not report what is new; it is polled instead'),
  );
}

export async function stopPolling(engine: EngineState): Promise<void> {
  engine.isStopped = true;
  engine.poll.cancelInterval?.();
  await engine.poll.unwatch?.();
  await engine.wakeups.stop();
  await stopReclaiming(engine);
}

function onInterval(engine: EngineState): void {
  const { poll, clock, wakeups } = engine;
  if (engine.isStopped) return;
  const next = () => onInterval(engine);
  poll.cancelInterval = clock.setTimer(reclaimIntervalMs(engine), next, { background: true, sweep: true });
  reclaimInBackground(engine);
  poll.intervals += 1;
  if (poll.intervals % RECLAIMS_PER_SWEEP !== 1) return;
  wakeups.wakeSoon();
  countIfDue(engine);
  purgeIfDue(engine);
}

/** One cycle: see `RunCycle`. */
export async function runCycle(engine: EngineState, limit: number, reached: number): Promise<number | undefined> {
  const { storage, runs, waiters, resume, wakeups } = engine;
  const worker = await registerToClaim(engine);
  if (worker === undefined) {
    await waiters.look();
    return undefined;
  }
  if (engine.poll.hasUnansweredClaim) await releaseUnknown(engine, worker);
  await engine.pauses.refresh();
  if (!(await claimDue(engine, worker, limit, reached))) return undefined;
  // After the claims, so that queued executions do not wait for it. With timers, the interval reclaims.
  if (storage.capabilities.shared && limit !== Number.POSITIVE_INFINITY) await reclaimIfDue(engine);
  const found = await storage.executions.poll(worker, [...resume.unsupportedVersions, ...runs.perProcess.full]);
  for (const id of found.cancelRequested) runs.get(id)?.cancel();
  for (const id of found.pauseRequested ?? []) runs.get(id)?.pause();
  for (const { executionId, signals } of found.signalled) runs.get(executionId)?.setSignals(signals);
  // The next run of this process that ends may free a slot. Those of other processes are found by the interval.
  if (found.slotsTaken) wakeups.moreAreDue = true;
  if (found.hasStarts) engine.host.requested?.();
  await waiters.look();
  const { nextDueAt = NEVER } = found;
  return nextDueAt === NEVER ? undefined : nextDueAt;
}

/** @returns false if the worker was considered dead during a claim */
async function claimDue(engine: EngineState, worker: string, limit: number, reached: number): Promise<boolean> {
  const { storage, clock, runs, wakeups, poll, resume } = engine;
  const { perProcess } = runs;
  wakeups.moreAreDue = false;
  // First a few, of which all may be of a definition with few places; then those of all other definitions.
  let isFew = perProcess.room !== Number.POSITIVE_INFINITY;
  for (let left = limit; left > 0 && !engine.isStopped; ) {
    const asked = Math.min(left, freePlaces(engine), isFew ? perProcess.room : MAX_CLAIMED);
    if (asked <= 0) {
      wakeups.moreAreDue = true;
      break;
    }
    const due = Math.max(clock.now(), reached);
    const excludeVersions = [...resume.unsupportedVersions, ...(isFew ? perProcess.full : perProcess.known)];
    // Until the storage has answered, it is not known what it claimed.
    poll.hasUnansweredClaim = true;
    const claimed = await storage.executions.claim(worker, { now: due, limit: asked, excludeVersions });
    // If the lease ended during the claim, another worker may have reclaimed what was claimed.
    if (claimed.length > 0 && !(await isStillRegistered(engine, worker))) return false;
    poll.hasUnansweredClaim = false;
    left -= claimed.length;
    for (const one of claimed) {
      const resumed = runs.takePlace(() => resumeExecution(engine, worker, one, due)) as Promise<void>;
      void runs.starting(idOf(one), resumed);
    }
    if (claimed.length < asked && !isFew) break;
    isFew = false;
  }
  return true;
}

/** @throws OVERLOADED when the storage does not answer: a later cycle then releases what was claimed */
async function isStillRegistered(engine: EngineState, by: string): Promise<boolean> {
  const { worker } = engine;
  if (worker.isLeaseValid(by)) return true;
  await worker.verifyLease();
  if (worker.isLeaseValid(by)) return true;
  if ((await registerToClaim(engine)) !== by) return false;
  throw new OrchestratorError('OVERLOADED', 'the lease has ended and could not be renewed', { retryable: true });
}

/** Releases what this worker holds in the storage, but does not run. */
async function releaseUnknown(engine: EngineState, worker: string): Promise<void> {
  for (const { executionId, epoch } of await engine.storage.workers.listHeld(worker)) {
    if (!engine.runs.has(executionId)) releaseLater(engine, worker, executionId, epoch);
  }
  engine.poll.hasUnansweredClaim = false;
}
