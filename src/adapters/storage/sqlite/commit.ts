/** Writes commits: each entry under its fence, wholly or not at all, a batch in one transaction. */

import type { CommitEntry, ExecutionEnd, StateChange, StepRecord } from '../../../engine/model/stored-execution.ts';
import type { CommitResult, Storage } from '../../../engine/ports/storage.ts';
import { toJsonColumn, toOptionalJsonColumn, toTextColumn } from './columns.ts';
import { createTransaction, type SqlConnection } from './connection.ts';

/** What an entry must own to be stored; its parameters stand last in each statement. */
const FENCE = 'namespace = ? AND id = ? AND epoch = ? AND finished_at IS NULL';

export function createCommit(connection: SqlConnection, namespace: string): Storage['commit'] {
  const transaction = createTransaction(connection);
  const owned = connection.prepare(`SELECT 1 FROM ensemble_executions WHERE ${FENCE}`);
  // The fence stands inside the write, so that one statement does where one step is stored. A result never changes.
  const insertStep = connection.prepare(`
    INSERT INTO ensemble_steps (execution, key, name, status, attempts, started_at, duration, retry_at, error, output)
    SELECT ref, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM ensemble_executions WHERE ${FENCE}
    ON CONFLICT (execution, key) DO UPDATE SET
      name = excluded.name, status = excluded.status, attempts = excluded.attempts, started_at = excluded.started_at,
      duration = excluded.duration, retry_at = excluded.retry_at, error = excluded.error, output = excluded.output
    WHERE ensemble_steps.retry_at IS NOT NULL`);
  const updateEnd = connection.prepare(`
    UPDATE ensemble_executions SET status = ?, output = ?, error = ?, finished_at = ?, duration = ?,
      agents = (SELECT count(*) FROM ensemble_steps WHERE execution = ref AND retry_at IS NULL)
    WHERE ${FENCE}`);
  const insertState = connection.prepare(`
    INSERT INTO ensemble_states (namespace, ensemble, version, updated_at, value) VALUES (?, ?, 1, ?, ?)
    ON CONFLICT DO NOTHING`);
  const updateState = connection.prepare(`
    UPDATE ensemble_states SET version = version + 1, updated_at = ?, value = ?
    WHERE namespace = ? AND ensemble = ? AND version = ?`);

  const isOwned = ({ executionId, epoch }: CommitEntry) =>
    owned.all([namespace, toTextColumn(executionId), epoch]).length > 0;

  const putStep = (step: StepRecord, { executionId, epoch }: CommitEntry): boolean => {
    const { key, name, status, attempts, startedAt, duration, retryAt = null, error, output } = step;
    const fence = [namespace, toTextColumn(executionId), epoch];
    const about = [toTextColumn(key), toTextColumn(name), status, attempts, startedAt, duration, retryAt];
    return insertStep.run([...about, toOptionalJsonColumn(error), toJsonColumn(output), ...fence]) > 0;
  };

  const putEnd = (
    { status, output, error, finishedAt, duration }: ExecutionEnd,
    { executionId, epoch }: CommitEntry,
  ): boolean => {
    const fence = [namespace, toTextColumn(executionId), epoch];
    return (
      updateEnd.run([status, toJsonColumn(output), toOptionalJsonColumn(error), finishedAt, duration, ...fence]) > 0
    );
  };

  const putState = ({ ensemble, expectedVersion, value, updatedAt }: StateChange): boolean => {
    const [name, text] = [toTextColumn(ensemble), toJsonColumn(value)];
    if (expectedVersion === 0) return insertState.run([namespace, name, updatedAt, text]) > 0;
    return updateState.run([updatedAt, text, namespace, name, expectedVersion]) > 0;
  };

  /** Whatever refuses the entry does so before anything of it is written. */
  const commitOne = (entry: CommitEntry): CommitResult => {
    const { steps, state, end } = entry;
    let knownAsOwned = false;
    if (state || (steps.length === 0 && !end)) {
      if (!isOwned(entry)) return 'fenced';
      if (state && !putState(state)) return 'state-conflict';
      knownAsOwned = true;
    }
    for (const step of steps) {
      // A step that wrote nothing was fenced, or its key has its result already.
      if (!putStep(step, entry) && !knownAsOwned && !isOwned(entry)) return 'fenced';
      knownAsOwned = true;
    }
    return end && !putEnd(end, entry) ? 'fenced' : 'stored';
  };

  return (batch) => {
    const [first] = batch;
    if (!first) return [];
    if (batch.length === 1 && countWrites(first) <= 1) return [commitOne(first)];
    return transaction(() => batch.map(commitOne));
  };
}

/** How many statements write for an entry: one is atomic by itself, and a transaction around it would cost more than it. */
function countWrites({ steps, state, end }: CommitEntry): number {
  return steps.length + (state ? 1 : 0) + (end ? 1 : 0);
}
