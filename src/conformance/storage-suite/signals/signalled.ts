/** What the cases of signals share: the stored signals, what `poll` reports of them, and an execution that waits. */

import { NEVER, type NewSignal } from '../../../engine/execution/stored-execution.ts';
import type { PollResult, Storage } from '../../../engine/storage/storage.port.ts';
import { accept, execution, executionId, release, WORKER } from '../context.ts';

export const list = async (
  storage: Storage,
  of: number,
  fields: { name?: string; after?: number; limit?: number } = {},
): Promise<readonly NewSignal[]> =>
  storage.signals.list(executionId(of), { name: 'go', after: 0, limit: 100, ...fields });
export const ids = async (storage: Storage, of: number, fields = {}) =>
  (await list(storage, of, fields)).map(({ id }) => Number(id.slice(4)));
export const pollSignals = async (storage: Storage, worker = WORKER): Promise<PollResult['signalled']> =>
  (await storage.executions.poll(worker, [])).signalled;
/** Accepts an execution, and releases it as waiting until an instant, before any signal. */
export async function waiting(storage: Storage, number: number, dueAt = NEVER): Promise<void> {
  await accept(storage, execution(number));
  await release(storage, number, { status: 'waiting', dueAt, signals: 0 });
}
