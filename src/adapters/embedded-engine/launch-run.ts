/** Launches the run of an execution that this process holds, and does what follows when the run ends here. */

import type { Execution } from '../../engine/execution/execution.ts';
import type { LoadedDefinition } from '../../engine/execution/execution-engine.port.ts';
import { NEVER, type NewExecution } from '../../engine/execution/stored-execution.ts';
import { NO_LINE } from '../../engine/host/logger.port.ts';
import { ActiveRun } from '../../engine/running/active-run.ts';
import type { Run, WorkersExecution } from './active-runs.ts';
import { cancelOnAbort } from './cancel-execution.ts';
import { releaseLater } from './deferred-writes.ts';
import type { EngineState } from './engine-state.ts';
import { countIfDue, purgeIfDue } from './purge.ts';

/** A host that wakes this process resumes a run at most this long after its process has ended. */
const HOST_CHECK_MS = 30_000;

export function launchRun(engine: EngineState, held: WorkersExecution, loaded: LoadedDefinition): Run {
  const { runs } = engine;
  const began = runs.pending?.get(held.execution.id);
  const run: Run = new ActiveRun(
    engine.runPartsOf(held.worker),
    began === undefined ? held : { ...held, began },
    loaded,
  );
  runs.add(run);
  checkLater(engine);
  run.finished.then(
    (record) => onEnd(engine, run, record),
    (error) => onBroken(engine, run, error),
  );
  if (!held.cancelled) engine.stopRun?.(run);
  return run;
}

/** Asks a host with alarms to look again soon, in case this process ends while a run is active. */
export function checkLater({ storage, wakeups, clock }: EngineState): void {
  if (storage.wakeAt) wakeups.wake(clock.now() + HOST_CHECK_MS);
}

function onEnd(engine: EngineState, run: Run, record: Execution | undefined): void {
  engine.runs.remove(run);
  if (record) onRecord(engine, run, record);
  else onStopped(engine, run);
  engine.runs.checkIdle();
}

/** The storage stored nothing of the run any more. */
function onBroken(engine: EngineState, run: Run, err: unknown): void {
  const { worker, epoch, execution } = run.held;
  const { ensemble } = execution;
  engine.runs.remove(run);
  const { pauseMs, times, isNew } = engine.brokenRuns.next(execution.id, err);
  if (isNew)
    engine.logger.error(
      { err, executionId: execution.id, ensemble, worker },
      'an execution was stopped here, because the storage stores nothing of it; it is resumed later',
    );
  releaseLater(engine, worker, execution.id, epoch, times === 1 ? 0 : pauseMs);
  onStopped(engine, run);
  engine.runs.checkIdle();
}

function onRecord(engine: EngineState, { held }: Run, record: Execution): void {
  const { host, runs, waiters, wakeups } = engine;
  const { id } = held.execution;
  runs.pending?.delete(id);
  engine.resume.recovered.delete(id);
  host.ended(record, held.worker);
  engine.counts.hasEnded = true;
  if (waiters.size > 0) waiters.settle(id, record);
  // The end may make its parent due.
  if (record.parentId !== undefined) wakeups.wake();
  onFreePlace(engine, held.execution);
}

/** The run was suspended, released or lost. */
function onStopped(engine: EngineState, { held, dueAt, began, isSuspended }: Run): void {
  const { runs, worker, waiters, wakeups, clock, logger, host } = engine;
  const { signal, execution } = held;
  if (isSuspended && logger.debug !== NO_LINE) {
    const { id: executionId, ensemble } = execution;
    const about = { executionId, ensemble, worker: held.worker, until: dueAt === NEVER ? undefined : dueAt };
    logger.debug(about, 'execution suspended');
  }
  runs.pending?.set(execution.id, began);
  host.left(execution.id);
  if (signal) cancelOnAbort(engine, signal, execution.id);
  // The run was lost by a refused write: perhaps this worker lost all its executions.
  if (dueAt === undefined && worker.id === held.worker) void worker.verifyLease();
  if (dueAt !== undefined && waiters.size > 0) waiters.notifyWait(execution.id, dueAt - clock.now());
  wakeups.wake(dueAt);
  onFreePlace(engine, execution);
}

function onFreePlace(engine: EngineState, { version }: NewExecution): void {
  const { perProcess } = engine.runs;
  const isOfFew = perProcess.isUsed && perProcess.known.includes(version);
  if (isOfFew || engine.wakeups.moreAreDue) engine.wakeups.wakeSoon();
  countIfDue(engine);
  purgeIfDue(engine);
}
