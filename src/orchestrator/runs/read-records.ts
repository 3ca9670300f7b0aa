/** Reads all that is stored of an execution, in pages. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { cloneJson } from '../../engine/base/json/json.ts';
import { isMark } from '../../engine/ensemble/step-kind.ts';
import type { Turns } from '../../engine/events/rules/execution-events.ts';
import { type FinalStatus, isFinal } from '../../engine/execution/execution.ts';
import type { ExecutionHistory } from '../../engine/execution/execution-history.ts';
import { outputsOf } from '../../engine/execution/execution-record.ts';
import type { StepRecord } from '../../engine/execution/stored-execution.ts';
import type { RecordReader } from '../../engine/storage/storage.port.ts';

/** @throws NOT_FOUND */
export async function readHistory(records: RecordReader, turns: Turns, id: string): Promise<ExecutionHistory> {
  const { executions } = records;
  const [execution, record] = [await executions.getAccepted(id), await executions.get(id, { agents: false })];
  if (!execution || !record) throw new OrchestratorError('NOT_FOUND', `there is no execution ${id}`);
  const steps: StepRecord[] = [];
  for await (const step of readRecords(records, turns, id)) if (!isMark(step)) steps.push(cloneJson(step));
  const { status, error, finishedAt } = record;
  const output = outputsOf(record);
  const end = finishedAt !== undefined && isFinal(status) && { status: status as FinalStatus, output, finishedAt };
  const history: ExecutionHistory = {
    ...{ format: 1, execution: cloneJson(execution), status, steps },
    ...(end && { end: cloneJson(error ? { ...end, error } : end) }),
  };
  return history;
}

/** How many records, and bytes of their outputs, are read at once. */
const PAGE = 250;
const READ_BYTES = 1024 * 1024;

/** The records, with decisions and marks, in the order in which they were first stored. */
export async function* readRecords({ executions }: RecordReader, turns: Turns, id: string): AsyncGenerator<StepRecord> {
  for (let after: string | undefined; ; ) {
    await turns.pause();
    const page = await executions.listSteps(id, { after, limit: PAGE, bytes: READ_BYTES, notes: true });
    if (page.length === 0) return;
    yield* page;
    after = page.at(-1)?.key;
  }
}
