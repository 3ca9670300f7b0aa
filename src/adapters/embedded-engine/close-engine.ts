/**
 * Closes an engine: waits for the active runs, then releases them. In a storage that no other process shares, it cancels them
 * instead: no other process could resume them.
 */

import { cancelInBackground } from './cancel-execution.ts';
import { stopDeferredWrites } from './deferred-writes.ts';
import type { EngineState } from './engine-state.ts';
import { stopPolling } from './poll.ts';

/** How long `close` waits, after its grace, until cancellations and releases are stored. */
const LAST_WRITES_MS = 1_500;
/** How long a step may ignore, after the grace, that its run is cancelled. Its result is then dropped. */
const LAST_STEPS_MS = 1_000;

/** @param graceMs - how long it waits for the active runs. 0: it waits for none */
export async function closeEngine(engine: EngineState, graceMs: number): Promise<void> {
  const { runs, waiters, worker, clock, logger } = engine;
  const { pending } = runs;
  engine.isClosing = true;
  let cancelRetry: (() => void) | undefined;
  const stop = () =>
    stopPolling(engine).catch((err: unknown) => logger.warn({ err }, 'what watches the storage could not be stopped'));
  if (!pending) await stop();
  // Without a grace period, nothing waits for a timer, and no run waits for its current step.
  const stopRuns = (atOnce: boolean) => {
    engine.stopRun = (run) => (pending ? run.cancel(atOnce) : void run.release());
    for (const run of runs.all()) engine.stopRun(run);
    for (const id of [...(pending?.keys() ?? [])]) cancelInBackground(engine, id);
  };
  let cancelTimer: (() => void) | undefined;
  if (!(graceMs > 0)) stopRuns(true);
  else
    cancelTimer = clock.setTimer(graceMs, () => {
      stopRuns(false);
      cancelTimer = clock.setTimer(LAST_STEPS_MS, () => stopRuns(true));
    });
  const retry = new Promise<void>((resolve) => {
    cancelRetry = clock.setTimer(graceMs + LAST_WRITES_MS, () => {
      const message =
        'the storage stored nothing: the next process that opens it resumes the executions that were active';
      logger.error({ active: runs.size }, message);
      resolve();
    });
  });
  await Promise.race([runs.idle(true), retry]);
  cancelRetry?.();
  cancelTimer?.();
  if (pending) await stop();
  stopDeferredWrites(engine);
  waiters.close();
  await worker.unregister().catch((err: unknown) => {
    logger.warn(
      { err, worker: worker.id },
      'this process could not be unregistered; what it held is taken over after its lease',
    );
  });
}
