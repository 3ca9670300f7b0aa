/**
 * Reclaims the executions of dead workers at intervals, so that other workers resume them. It runs separately from the cycles of
 * work: a process that hangs while it holds row locks delays a reclaim, and must not delay new work.
 */

import { blameFrom, type EngineState, registerToClaim } from './engine-state.ts';

/** Executions of a dead worker are to be resumed within two seconds, and the storage may need most of that time. */
export const RECLAIMS_PER_SWEEP = 2;

export function reclaimIntervalMs({ settings }: EngineState): number {
  return settings.sweepMs / RECLAIMS_PER_SWEEP;
}

/** Reclaims in the background, unless a reclaim is already in progress. */
export function reclaimInBackground(engine: EngineState): void {
  reclaimOnce(engine).catch((error: unknown) => {
    engine.logger.warn({ err: error }, 'the storage could not be asked which processes are dead; it is asked again');
  });
}

/** Reclaims when the last reclaim began at least an interval ago, or waits for the one in progress. @throws what the storage throws */
export async function reclaimIfDue(engine: EngineState): Promise<void> {
  const { inProgress, beganAt } = engine.reclaim;
  if (inProgress || engine.clock.monotonic() - beganAt >= reclaimIntervalMs(engine)) await reclaimOnce(engine);
}

/** Resolves when the reclaim in progress is over. */
export async function stopReclaiming({ reclaim }: EngineState): Promise<void> {
  reclaim.cancelTimer?.();
  await reclaim.inProgress?.catch(() => undefined);
}

function reclaimOnce(engine: EngineState): Promise<void> {
  engine.reclaim.inProgress ??= reclaim(engine).finally(() => {
    engine.reclaim.inProgress = undefined;
  });
  return engine.reclaim.inProgress;
}

async function reclaim(engine: EngineState): Promise<void> {
  const { storage, clock, wakeups } = engine;
  engine.reclaim.cancelTimer?.();
  engine.reclaim.beganAt = clock.monotonic();
  const worker = await registerToClaim(engine);
  if (worker === undefined || engine.isStopped) return;
  const intervalMs = reclaimIntervalMs(engine);
  const answer = await storage.workers.reclaimFromDead(worker, clock.now(), blameFrom(engine));
  const { freed, againInMs = intervalMs } = answer;
  if (againInMs < intervalMs && !engine.isStopped) {
    const again = () => reclaimInBackground(engine);
    engine.reclaim.cancelTimer = clock.setTimer(againInMs, again, { background: true, sweep: true });
  }
  if (freed > 0) wakeups.wakeSoon();
}
