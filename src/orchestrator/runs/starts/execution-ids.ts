/** Creates the ids of new executions, so that the engine or the storage can decide where an execution is kept. */

import { OrchestratorError } from '../../../engine/base/errors.ts';
import type { AttachedEngine } from '../../../engine/execution/execution-engine.port.ts';
import type { IdSource } from '../../../engine/execution/id.ts';
import type { Storage } from '../../../engine/storage/storage.port.ts';

/** Creates the id of a new execution of an ensemble. @param now - Unix ms */
export type NewExecutionId = (ensemble: string, now: number) => string;

/** @throws INVALID_REQUEST unless the engine and the storage of this process can keep an execution under this id */
export function checkPlace(id: string, storage: Pick<Storage, 'accepts'>, engine: Pick<AttachedEngine, 'newId'>): void {
  if (!engine.newId && storage.accepts?.(id) !== false) return;
  const why = engine.newId ? 'the engine places executions by the ids that it creates' : 'this storage keeps other ids';
  const message = `an execution can't have the id ${id} here: ${why}; start it where the id is kept, or give an \`idempotencyKey\` instead of an \`id\``;
  throw new OrchestratorError('INVALID_REQUEST', message);
}

/** For a storage that keeps one part of 1,000, this number of attempts finds an id with a probability of more than 99.99 %. */
const MAX_ATTEMPTS = 10_000;

/** @throws INTERNAL from the created function if the storage accepts none of 10,000 ids */
export function createExecutionIds(
  ids: IdSource,
  storage: Pick<Storage, 'accepts'>,
  engine: () => Pick<AttachedEngine, 'newId'>,
): NewExecutionId {
  return (ensemble, now) => {
    const attached = engine();
    if (attached.newId) return attached.newId(ensemble, now);
    if (!storage.accepts) return ids.id('exec_', now);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const id = ids.id('exec_', now);
      if (storage.accepts(id)) return id;
    }
    throw new OrchestratorError('INTERNAL', `the storage accepted none of ${MAX_ATTEMPTS} new ids of executions`);
  };
}
