/** What the cases of signals share: what is stored of them, and who is told. */

import { NEVER, type NewSignal } from '../../../engine/model/stored-execution.ts';
import type { Storage, Survey } from '../../../engine/ports/storage.ts';
import { accept, execution, executionId, OWNER, release } from './context.ts';

export const list = async (
  storage: Storage,
  of: number,
  fields: { name?: string; after?: number; limit?: number } = {},
): Promise<readonly NewSignal[]> =>
  storage.listSignals(executionId(of), { name: 'go', after: 0, limit: 100, ...fields });
export const ids = async (storage: Storage, of: number, fields = {}) =>
  (await list(storage, of, fields)).map(({ id }) => Number(id.slice(4)));
export const told = async (storage: Storage, owner = OWNER): Promise<Survey['signalled']> =>
  (await storage.survey(owner, [])).signalled;
/** Held before, given up until an instant, with no signal heard of. */
export async function waiting(storage: Storage, number: number, dueAt = NEVER): Promise<void> {
  await accept(storage, execution(number));
  await release(storage, number, { status: 'waiting', dueAt, signals: 0 });
}
