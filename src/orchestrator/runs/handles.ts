/** The handles of executions: their results and their events, in whatever process they run. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { cloneJson } from '../../engine/base/json/json.ts';
import { andThen, type MaybePromise } from '../../engine/base/maybe-promise.ts';
import type { CallerSignal } from '../../engine/base/time/caller-signal.ts';
import type { OrchestratorEvent } from '../../engine/events/event.ts';
import type { KeptEvents } from '../../engine/events/rules/event-stream.ts';
import type { StoredEvent } from '../../engine/events/rules/execution-events.ts';
import { endEvent } from '../../engine/execution/end-event.ts';
import { type Execution, PLAN_KEY, type PlannedStep } from '../../engine/execution/execution.ts';
import type { AcceptedRun, AttachedEngine } from '../../engine/execution/execution-engine.port.ts';
import { toOwnCopy } from '../../engine/execution/execution-record.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { RecordReader } from '../../engine/storage/storage.port.ts';

/** An execution that was accepted. */
export interface ExecutionHandle<Output = unknown> {
  readonly id: string;
  /** Waits for the end, and returns the record. A failed execution is a result: it is not thrown. */
  result(): Promise<Execution<Output>>;
  /** Like `result`, but returns undefined as soon as the execution only waits, for longer than `maxWaitMs`. */
  resultUnlessWaiting(maxWaitMs: number): Promise<Execution<Output> | undefined>;
  /** Cancels the execution in whichever process it runs: it ends at the next step boundary, and the signal of the current step aborts. */
  cancel(): void;
  /** The events from the first one to the end of the execution. */
  events(): AsyncIterableIterator<OrchestratorEvent>;
}

/** A run of an execution that an earlier start began. */
const EARLIER: AcceptedRun = { finished: Promise.resolve(undefined) };

/** The record with its plan, if it is that of a dry run that has ended. */
export function withPlan(record: Execution, { executions }: Pick<RecordReader, 'executions'>): MaybePromise<Execution> {
  if (!record.dryRun || record.finishedAt === undefined) return record;
  return andThen(executions.getStep(record.id, PLAN_KEY), (note) =>
    note ? { ...record, plan: cloneJson(note.output) as unknown as readonly PlannedStep[] } : record,
  );
}

export interface Handles {
  /** The record at the end of an execution that this process accepted. */
  result(id: string, run: AcceptedRun): Promise<Execution<unknown>>;
  /** @param kept - the events that are kept for the caller, if they are */
  toHandle(id: string, run: AcceptedRun, kept: KeptEvents | undefined): ExecutionHandle;
  /** The handle of the execution that an earlier start began, in whatever process it runs. */
  toEarlier(id: string, signal: CallerSignal | undefined): ExecutionHandle;
}

export function createHandles(dependencies: {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly engine: AttachedEngine;
  readonly records: RecordReader;
  /** Whether another process may continue an execution. */
  readonly isShared: boolean;
  readonly storedEvents: (id: string, after: number) => AsyncIterableIterator<StoredEvent>;
}): Handles {
  const { clock, logger, engine, records, isShared, storedEvents } = dependencies;

  async function* allEvents(id: string): AsyncIterableIterator<OrchestratorEvent> {
    for await (const { event } of storedEvents(id, 0)) yield event;
  }
  const resultUnlessWaiting = async (id: string, run: AcceptedRun, maxWaitMs: number) => {
    const own = await run.finished;
    if (own) return withPlan(toOwnCopy(own), records);
    if (run.dueAt !== undefined && run.dueAt - clock.now() > maxWaitMs) return undefined;
    const record = await engine.whenEnded(id, maxWaitMs);
    return record && cloneJson(record);
  };
  const result = async (id: string, run: AcceptedRun): Promise<Execution<unknown>> => {
    const own = await run.finished;
    if (own) return withPlan(toOwnCopy(own), records);
    const record = await engine.whenEnded(id);
    if (record) return withPlan(cloneJson(record), records);
    throw new OrchestratorError('NOT_FOUND', `execution ${id} was deleted before its result was read`);
  };
  // A suspended or released execution may continue in any process: then its events are read from the storage.
  const stopKeeping = (id: string, kept: KeptEvents | undefined) => {
    if (!kept || !isShared || !kept.drop()) return;
    const ended = (record: Execution | undefined) => kept.end(record && endEvent(record));
    engine.whenEnded(id).then(ended, () => kept.end());
  };
  const toHandle: Handles['toHandle'] = (id, run, kept) => {
    run.finished.then(
      (record) => (record ? kept?.end() : stopKeeping(id, kept)),
      () => kept?.end(),
    );
    let given: Promise<Execution<unknown>> | undefined;
    return {
      id,
      result() {
        given ??= result(id, run);
        return given;
      },
      resultUnlessWaiting: (maxWaitMs) => resultUnlessWaiting(id, run, maxWaitMs),
      cancel() {
        engine
          .cancel(id)
          .catch((error: unknown) =>
            logger.warn({ err: error, executionId: id }, 'a cancellation could not be requested'),
          );
      },
      events: () => kept?.read() ?? allEvents(id),
    };
  };
  return {
    result,
    toHandle,
    toEarlier(id, signal) {
      const handle = toHandle(id, EARLIER, undefined);
      if (signal?.aborted) handle.cancel();
      else signal?.onAbort(handle.cancel);
      return {
        ...handle,
        // The instant at which it is due is not known here.
        async resultUnlessWaiting(maxWaitMs) {
          const found = await records.executions.getStatus(id);
          return found?.status === 'waiting' ? undefined : handle.resultUnlessWaiting(maxWaitMs);
        },
      };
    },
  };
}
