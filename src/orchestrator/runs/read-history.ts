/** Reads everything that is stored of one execution. */

import { cloneJson, type Json } from '../../engine/base/json.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import { type FinalStatus, isFinal } from '../../engine/model/execution.ts';
import type { ExecutionHistory } from '../../engine/model/execution-history.ts';
import { isMark } from '../../engine/model/step-kind.ts';
import type { StepRecord } from '../../engine/model/stored-execution.ts';
import type { RecordReader } from '../../engine/ports/storage.ts';

const PAGE = 1000;

/** @throws NOT_FOUND */
export async function readHistory({ executions }: RecordReader, id: string): Promise<ExecutionHistory> {
  const [execution, record] = [await executions.getAccepted(id), await executions.get(id, { agents: false })];
  if (!execution || !record) throw new OrchestratorError('NOT_FOUND', `there is no execution ${id}`);
  const steps: StepRecord[] = [];
  for (let page: readonly StepRecord[] | undefined; page === undefined || page.length === PAGE; ) {
    const query = { after: steps.at(-1)?.key, limit: PAGE, bytes: Number.POSITIVE_INFINITY, notes: true };
    page = await executions.listSteps(id, query);
    steps.push(...page);
  }
  const { status, output, error, finishedAt } = record;
  const needed = steps.filter((step) => !isMark(step));
  const end = finishedAt !== undefined && isFinal(status) && { status: status as FinalStatus, output, finishedAt };
  const history: ExecutionHistory = {
    ...{ format: 1, execution, status, steps: needed },
    ...(end && { end: error ? { ...end, error } : end }),
  };
  return cloneJson(history as unknown as Json) as unknown as ExecutionHistory;
}
