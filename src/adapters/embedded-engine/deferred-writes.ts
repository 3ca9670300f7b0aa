/**
 * Writes that a failed storage left undone: releases of executions that this worker holds and no longer runs, and ends of starts
 * whose storing is uncertain. They are retried until the storage answers, or the engine closes.
 */

import { lineOfEnd } from '../../engine/events/tallies/end-line.ts';
import { isRepeatable } from '../../engine/execution/start-once.ts';
import type { CommitEntry, ExecutionEnd } from '../../engine/execution/stored-execution.ts';
import { isTransient } from '../../engine/running/storage-retry.ts';
import type { EngineState } from './engine-state.ts';

const PAUSE_MS = 1000;

/** Releases an execution, so that it is resumed. @param afterMs - the shortest time until then */
export function releaseLater(
  engine: EngineState,
  worker: string,
  executionId: string,
  epoch: number,
  afterMs = 0,
): void {
  void keepTrying(engine, executionId, async () => {
    const release = { status: 'running' as const, dueAt: engine.clock.now() + afterMs };
    await engine.writer.write(worker, { executionId, epoch, steps: [], release });
    engine.wakeups.wake();
  });
}

/**
 * Handles a start that may or may not be stored. Its caller got an error, so the execution is ended. It is released instead, to run
 * if it is stored, when the start is repeated: by the parent of a child execution, or by a caller that gave an id or a key.
 * @param worker - undefined for an execution that was to be queued
 */
export function endUnconfirmed(engine: EngineState, worker: string | undefined, entry: CommitEntry): void {
  const { executionId, epoch, start } = entry;
  if (start && (start.trigger.parentId !== undefined || isRepeatable(start))) {
    if (worker !== undefined) releaseLater(engine, worker, executionId, epoch);
    return;
  }
  const { clock, storage, writer } = engine;
  const error = { code: 'OVERLOADED', message: 'the storage did not confirm the start, and the caller got an error' };
  const end = (): ExecutionEnd => {
    const finishedAt = clock.now();
    const duration = Math.max(0, finishedAt - (start?.createdAt ?? finishedAt));
    return { status: 'cancelled', output: null, error, finishedAt, duration, agents: 0 };
  };
  const endEntry = (end: ExecutionEnd): CommitEntry => {
    const counted = start && lineOfEnd(start, start.createdAt, end);
    return { executionId, epoch, steps: [], end, counted };
  };
  void keepTrying(engine, executionId, () =>
    worker === undefined
      ? storage.executions.requestCancel(executionId, clock.now(), end())
      : writer.write(worker, endEntry(end())),
  );
}

/** Stops all retries. */
export function stopDeferredWrites({ deferred }: EngineState): void {
  deferred.isStopped = true;
  deferred.stop?.abort();
}

async function keepTrying(engine: EngineState, executionId: string, work: () => unknown): Promise<void> {
  const { deferred, clock, logger } = engine;
  deferred.stop ??= new AbortController();
  while (!deferred.isStopped) {
    try {
      await work();
      return;
    } catch (error) {
      const { pauseMs, isNew } = deferred.backoff.next(executionId, error);
      const text = 'the storage does not store the state of an execution; it is tried again';
      if (isNew) logger.warn({ err: error, executionId }, text);
      // A storage that does not answer becomes available for all executions at once, so the pause does not grow.
      await clock.sleep(isTransient(error) ? PAUSE_MS : pauseMs, deferred.stop.signal).catch(() => undefined);
    }
  }
}
