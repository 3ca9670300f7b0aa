/**
 * The embedded engine: runs executions in the host's own processes, over one storage.
 *
 * An execution is stored before any of its steps run. A worker holds an active execution under an epoch: of two processes that
 * both run the same execution, only one can write.
 */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { andThen } from '../../engine/base/maybe-promise.ts';
import { type Execution, isFinal } from '../../engine/execution/execution.ts';
import type { AttachedEngine, EngineHost, ExecutionEngine } from '../../engine/execution/execution-engine.port.ts';
import { acceptExecution } from './accept-execution.ts';
import { cancelExecution, cancelInBackground } from './cancel-execution.ts';
import { stopDeferredWrites } from './deferred-writes.ts';
import { type EmbeddedEngineOptions, readEngineOptions } from './engine-options.ts';
import { createEngineState, type EngineState } from './engine-state.ts';
import { checkLater } from './launch-run.ts';
import { runCycle, startPolling, stopPolling } from './poll.ts';
import { createRunRecords } from './run-log.ts';

/**
 * Runs executions in this process. Several processes on one shared storage share the work, and resume the executions of processes
 * that die.
 *
 * @param options - see {@link EmbeddedEngineOptions}
 * @throws TypeError for an unknown option, and for an option with an invalid value
 */
export function embeddedEngine(options: EmbeddedEngineOptions = {}): ExecutionEngine {
  const settings = readEngineOptions(options);
  return { attach: (host) => attach(host, settings) };
}

function attach(host: EngineHost, settings: Required<EmbeddedEngineOptions>): AttachedEngine {
  const engine: EngineState = createEngineState(host, settings, (limit, reached) => runCycle(engine, limit, reached));
  const { storage, worker, wakeups, runs } = engine;
  return {
    onlyQueues: settings.concurrency === 0,
    takesTransactions: true,
    runRecords: createRunRecords(storage, engine.withRetry),
    get active() {
      return runs.size;
    },
    begin: (execution, loaded, options) => acceptExecution(engine, execution, loaded, options),
    open() {
      if (engine.isClosing || settings.concurrency === 0) return undefined;
      return andThen(worker.register(), () => {
        startPolling(engine);
        wakeups.wake();
      });
    },
    whenEnded: (id, maxWaitMs = Number.POSITIVE_INFINITY) => whenEnded(engine, id, maxWaitMs),
    cancel: (id) => cancelExecution(engine, id),
    async pause(id, scope) {
      const status = await engine.withRetry(() => storage.executions.pause(id, scope));
      if (status === 'running') runs.get(id)?.pause();
      return status;
    },
    async resume(id, scope) {
      const status = await engine.withRetry(() => storage.executions.resume(id, scope));
      wakeups.wake();
      return status;
    },
    async pauseAll(ensemble) {
      const changed = await engine.pauses.pause(ensemble);
      // The poll of a cycle finds those that run here.
      wakeups.wake();
      return changed;
    },
    async resumeAll(ensemble) {
      const changed = await engine.pauses.resume(ensemble);
      wakeups.wake();
      return changed;
    },
    pauses: () => engine.pauses.list(),
    async signal(signal) {
      const result = await engine.withRetry(() => storage.signals.put(signal));
      wakeups.wake();
      return result;
    },
    wake: () => wakeups.wake(),
    async runDue(limit) {
      if (engine.isClosing) throw new OrchestratorError('OVERLOADED', 'the orchestrator is closed');
      await worker.register();
      await wakeups.cycle(limit);
      if (runs.size > 0) checkLater(engine);
      await runs.idle(false);
      // The runs may have made more executions due, or changed when the next one is due.
      const nextDueAt = await wakeups.cycle(0);
      wakeups.wake(nextDueAt ?? Number.POSITIVE_INFINITY);
      return nextDueAt === undefined ? {} : { nextDueAt };
    },
    close: (graceMs) => closeEngine(engine, graceMs),
  };
}

/** See `AttachedEngine.whenEnded`. */
async function whenEnded(engine: EngineState, id: string, maxWaitMs: number): Promise<Execution | undefined> {
  const { runs, storage, clock, waiters } = engine;
  for (let run = runs.get(id); run; run = runs.get(id)) {
    const record = await run.finished;
    if (record) return record;
    if (run.dueAt !== undefined && run.dueAt - clock.now() > maxWaitMs) return undefined;
  }
  if (engine.isClosing && !runs.pending) {
    const known = await storage.executions.getStatus(id);
    if (!known || isFinal(known.status)) return known && storage.executions.get(id);
    throw new OrchestratorError(
      'OVERLOADED',
      `the orchestrator is closed; execution ${id} continues in another process`,
    );
  }
  startPolling(engine);
  return waiters.wait(id, maxWaitMs);
}

/** How long `close` waits, after its grace, until cancellations and releases are stored. */
const LAST_WRITES_MS = 1_500;
/** How long a step may ignore, after the grace, that its run is cancelled. Its result is then dropped. */
const LAST_STEPS_MS = 1_000;

/** @param graceMs - how long it waits for the active runs. 0: it waits for none */
async function closeEngine(engine: EngineState, graceMs: number): Promise<void> {
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
