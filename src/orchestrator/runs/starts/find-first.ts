/** Finds the execution that an earlier start under the same id or idempotency key began, and the newest of its retries. */

import { OrchestratorError } from '../../../engine/base/errors.ts';
import { equalJson } from '../../../engine/base/json/json.ts';
import { isGeneratedId } from '../../../engine/execution/id.ts';
import { retryKeyOf } from '../../../engine/execution/start-once.ts';
import type { NewExecution } from '../../../engine/execution/stored-execution.ts';
import type { RecordReader } from '../../../engine/storage/storage.port.ts';

/**
 * @param execution - what a start would begin
 * @returns the id of the first execution; undefined if there is none
 * @throws IDEMPOTENCY_KEY_REUSED if the first execution has another ensemble or another input, and if the id and the key that were
 *   given are not those of one execution
 */
export async function findFirst({ executions }: FirstReader, execution: NewExecution): Promise<string | undefined> {
  const { id, ensemble, input, idempotencyKey: key } = execution;
  const found = await findStart({ executions }, execution);
  if (!found) return undefined;
  const { accepted, byKey } = found;
  const isOwn = !isGeneratedId(id);
  const given = byKey === undefined ? 'id' : 'idempotency key';
  const refuse = (how: string) => reusedKey(given, accepted.id, how);
  if (accepted.ensemble !== ensemble) throw refuse('for another ensemble');
  if (!equalJson(accepted.input, input)) throw refuse('with another input');
  if (isOwn && accepted.id !== id) throw refuse('with another id');
  if (key !== undefined && byKey === undefined) throw refuse('without this idempotency key');
  return accepted.id;
}

interface FirstReader {
  readonly executions: Pick<RecordReader['executions'], 'findByKey' | 'getAccepted'>;
}
type Identity = Pick<NewExecution, 'id' | 'idempotencyKey'>;

async function findStart({ executions }: FirstReader, { id, idempotencyKey: key }: Identity) {
  const byKey = key === undefined ? undefined : await executions.findByKey(key);
  const first = byKey ?? (isGeneratedId(id) ? undefined : id);
  const accepted = first === undefined ? undefined : await executions.getAccepted(first);
  return accepted && { accepted, byKey };
}

/** What an earlier start under the same id or idempotency key began. */
export async function findAccepted(records: FirstReader, identity: Identity): Promise<NewExecution | undefined> {
  return (await findStart(records, identity))?.accepted;
}

/** The newest execution of a chain of retries. @param id - of any execution of the chain */
export async function newestOf({ executions }: FirstReader, id: string): Promise<string> {
  for (let newest = id; ; ) {
    const next = await executions.findByKey(retryKeyOf(newest));
    if (next === undefined) return newest;
    newest = next;
  }
}

export function reusedKey(given: 'id' | 'idempotency key', executionId: string, how: string): OrchestratorError {
  const message = `the ${given} belongs to execution ${executionId}, which was started ${how}; use a new one for another start`;
  return new OrchestratorError('IDEMPOTENCY_KEY_REUSED', message, { details: { executionId } });
}
