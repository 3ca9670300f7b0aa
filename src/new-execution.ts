/** Puts together what an execution is accepted with, whoever starts it: a call, a schedule, another execution, a retry. */

import type { CompiledEnsemble } from './engine/definition/compiled-ensemble.ts';
import type { NewExecution } from './engine/model/stored-execution.ts';

type Beginning = Omit<NewExecution, 'ensemble' | 'version' | 'deadlineAt'>;

/** What may end it before the ensemble's own `timeout`: the earliest counts. */
export interface EarlierEnd {
  /** ms from its beginning. */
  readonly timeoutMs?: number | undefined;
  /** Unix ms. */
  readonly deadlineAt?: number | undefined;
}

export function newExecution(compiled: CompiledEnsemble, beginning: Beginning, earlier?: EarlierEnd): NewExecution {
  const { id, trigger, input, seed, createdAt, retryOf } = beginning;
  const execution = { id, ensemble: compiled.name, version: compiled.stored.version, trigger, input, seed, createdAt };
  const timeoutMs = Math.min(compiled.timeoutMs ?? Infinity, earlier?.timeoutMs ?? Infinity);
  const deadlineAt = Math.min(createdAt + timeoutMs, earlier?.deadlineAt ?? Infinity);
  const accepted = deadlineAt === Infinity ? execution : { ...execution, deadlineAt };
  return retryOf === undefined ? accepted : { ...accepted, retryOf };
}
