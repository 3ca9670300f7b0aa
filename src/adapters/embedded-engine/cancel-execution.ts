/** Cancels an execution, in whatever process it runs, and the child executions that it waits for. */

import type { CallerSignal } from '../../engine/base/time/caller-signal.ts';
import { type ExecutionStatus, isFinal } from '../../engine/execution/execution.ts';
import type { ExecutionEnd } from '../../engine/execution/stored-execution.ts';
import type { ExecutionPosition } from '../../engine/storage/storage.port.ts';
import type { EngineState } from './engine-state.ts';

const PAGE = 250;

/** @returns the status of the execution after that; undefined if it is unknown */
export async function cancelExecution(engine: EngineState, id: string): Promise<ExecutionStatus | undefined> {
  const { host, storage, clock, withRetry, runs, waiters, wakeups } = engine;
  const run = runs.get(id);
  run?.cancel();
  // In a shared storage the request must be stored: another process may resume the execution.
  if (run && !storage.capabilities.shared) return 'running';
  const end = cancelledEnd(clock.now());
  const status = await withRetry(() => storage.executions.requestCancel(id, end.finishedAt, end));
  wakeups.wake();
  // The children are cancelled at once: the execution may have to wait for a place that they take.
  if (status === 'waiting') await cancelChildren(engine, id);
  if (status !== 'cancelled') return status;
  // It ended before it began: no run reports its end.
  const record = await withRetry(() => storage.executions.get(id));
  if (record?.finishedAt === end.finishedAt && record.metrics.agents === 0) host.ended(record);
  waiters.settle(id, record);
  runs.pending?.delete(id);
  runs.checkIdle();
  return status;
}

export function cancelInBackground(engine: EngineState, id: string): void {
  cancelExecution(engine, id).catch((err: unknown) =>
    engine.logger.warn({ err, executionId: id }, 'a cancel could not be stored'),
  );
}

/** Cancels an execution at the signal of its caller, when no run here listens to that signal. */
export function cancelOnAbort(engine: EngineState, signal: CallerSignal, id: string): void {
  const stop = () => cancelInBackground(engine, id);
  if (signal.aborted) stop();
  else signal.onAbort(stop);
}

async function cancelChildren(engine: EngineState, parentId: string): Promise<void> {
  for (let before: ExecutionPosition | undefined; ; ) {
    const query = { parentId, limit: PAGE, ...(before && { before }) };
    const page = await engine.withRetry(() => engine.storage.executions.list(query));
    for (const { id, status, trigger } of page)
      if (!isFinal(status) && !trigger.detached) await cancelExecution(engine, id);
    before = page.at(-1);
    if (page.length < PAGE) return;
  }
}

/** The end of an execution that is cancelled before it begins. @param now - Unix ms */
function cancelledEnd(now: number): ExecutionEnd {
  const error = { code: 'EXECUTION_CANCELLED', message: 'the execution was cancelled before it began' };
  return { status: 'cancelled', output: null, error, finishedAt: now, duration: 0, agents: 0 };
}
