/** Writes step records under their fences: one, or those of several entries with one statement. */

import type { CommitEntry, StepRecord } from '../../../engine/model/stored-execution.ts';
import { toJsonColumn, toOptionalJsonColumn } from '../sql/columns.ts';
import { toLiteral, toTextColumn } from './columns.ts';
import type { SqlConnection, SqlValue } from './connection.ts';
import type { Fence } from './entry-writes.ts';
import { sizedStatement } from './sized-statement.ts';
import { HELD } from './statuses.ts';

export interface StepWrites {
  /** False when it is fenced, and when its key has its result already: that never changes. */
  one(step: StepRecord, fence: Fence): boolean;
  /** The results at so many places of a batch. False when not all were written: then each is to be written by itself. */
  group(batch: readonly CommitEntry[], places: readonly number[], owner: string): boolean;
}

/** How a record is replaced: a result never is, and no attempt by an earlier one. */
const REPLACE = `ON CONFLICT (execution, key) DO UPDATE SET
    name = excluded.name, status = excluded.status, attempts = excluded.attempts, started_at = excluded.started_at,
    duration = excluded.duration, retry_at = excluded.retry_at, error = excluded.error, output = excluded.output,
    note = excluded.note
  WHERE ensemble_steps.retry_at IS NOT NULL AND ensemble_steps.attempts <= excluded.attempts`;

export function stepWrites(connection: SqlConnection, namespace: string): StepWrites {
  const here = `namespace = ${toLiteral(namespace)}`;
  // The fence stands inside the write, so that one statement does where one step is stored.
  const insert = connection.prepare(`
    INSERT INTO ensemble_steps
      (execution, key, name, status, attempts, started_at, duration, retry_at, error, output, note)
    SELECT ref, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM ${HELD} WHERE ${here} AND id = ? AND epoch = ? AND owner = ?
    ${REPLACE}`);
  const insertGroup = sizedStatement(
    connection,
    8,
    (rows) => `
    INSERT INTO ensemble_steps (execution, key, name, status, attempts, started_at, duration, output)
    SELECT ref, column3, column4, 'completed', column5, column6, column7, column8
    FROM ${rows} CROSS JOIN ${HELD} WHERE ${here} AND id = column1 AND epoch = column2 AND owner = ?
    ${REPLACE}`,
  );
  return {
    one(step, { id, epoch, owner }) {
      const { status, attempts, startedAt, duration, retryAt = null, error, note } = step;
      return (
        insert.run([
          toTextColumn(step.key),
          toTextColumn(step.name),
          status,
          attempts,
          startedAt,
          duration,
          retryAt,
          toOptionalJsonColumn(error),
          toJsonColumn(step.output),
          note ? 1 : null,
          id,
          epoch,
          owner,
        ]) > 0
      );
    },
    group(batch, places, owner) {
      const params: SqlValue[] = [];
      for (const at of places) {
        const { executionId, epoch, steps } = batch[at] as CommitEntry;
        const { key, name, attempts, startedAt, duration, output } = steps[0] as StepRecord;
        params.push(toTextColumn(executionId), epoch, toTextColumn(key), toTextColumn(name));
        params.push(attempts, startedAt, duration, toJsonColumn(output));
      }
      params.push(owner);
      return insertGroup.run(places.length, params) === places.length;
    },
  };
}

/** Whether steps are the result of one agent that succeeded. */
export function isOneResult(steps: readonly StepRecord[]): boolean {
  if (steps.length !== 1) return false;
  const { status, retryAt, error, note } = steps[0] as StepRecord;
  return status === 'completed' && retryAt === undefined && !error && !note;
}
