/** Writes step records under their fences: one record, or the records of several entries with one statement. */

import type { CommitEntry, StepRecord } from '../../../../engine/execution/stored-execution.ts';
import { toJsonColumn } from '../../sql/columns.ts';
import { columnsOf, STEP, writeFields } from '../../sql/fields.ts';
import type { SqlConnection, SqlStatement, SqlValue } from '../drivers/driver.ts';
import { toLiteral, toTextColumn } from '../tables/columns.ts';
import { HELD } from '../tables/names.ts';
import type { Fence } from './commit-statements.ts';

/** The maximum number of records of one group. */
export function maxGroupOf({ maxRows = 16 }: SqlConnection): number {
  return maxRows;
}

export interface StepStatements {
  /** @returns false when the write is fenced, or when the key already has its result, which never changes */
  one(step: StepRecord, fence: Fence): boolean;
  /**
   * Writes the results of several entries of a batch with one statement. A call of a driver costs about as much as the
   * row that it writes: without groups, five durable steps of fifty executions at a time would take a third more CPU time.
   * @param places - at most `maxGroupOf` entries, by their index in the batch
   * @returns false when not all were written: then the caller writes each by itself
   */
  group(batch: readonly CommitEntry[], places: readonly number[], worker: string): boolean;
}

/** A record replaces an earlier attempt of its key. A result is never replaced, nor an attempt by an earlier one. */
export const REPLACE = `ON CONFLICT (execution, key) DO UPDATE SET
    ${columnsOf(STEP).map((name) => `${name} = excluded.${name}`)}
  WHERE ensemble_steps.retry_at IS NOT NULL AND ensemble_steps.attempts <= excluded.attempts`;

export function stepStatements(connection: SqlConnection, namespace: string): StepStatements {
  const here = `namespace = ${toLiteral(namespace)}`;
  // The write contains the fence, so that a single step takes a single statement.
  const insert = connection.prepare(`
    INSERT INTO ensemble_steps (execution, ${columnsOf(STEP)})
    SELECT ref, ${columnsOf(STEP).fill('?')} FROM ${HELD} WHERE ${here} AND id = ? AND epoch = ? AND owner = ?
    ${REPLACE}`);
  const prepareGroup = (rows: number) =>
    connection.prepare(`
    INSERT INTO ensemble_steps (execution, key, name, status, attempts, started_at, duration, output)
    SELECT ref, column3, column4, 'completed', column5, column6, column7, column8
    FROM (VALUES ${Array.from({ length: rows }, () => '(?, ?, ?, ?, ?, ?, ?, ?)').join(', ')})
      CROSS JOIN ${HELD} WHERE ${here} AND id = column1 AND epoch = column2 AND owner = ?
    ${REPLACE}`);
  // The most frequent size is prepared now, and each other size at its first use.
  const insertGroup: SqlStatement[] = [];
  const maxGroup = maxGroupOf(connection);
  insertGroup[maxGroup] = prepareGroup(maxGroup);

  return {
    one: (step, { id, epoch, worker }) => insert.run([...writeFields(STEP, step, toTextColumn), id, epoch, worker]) > 0,
    group(batch, places, worker) {
      const params: SqlValue[] = [];
      for (const at of places) {
        const { executionId, epoch, steps } = batch[at] as CommitEntry;
        const { key, name, attempts, startedAt, duration, output } = steps[0] as StepRecord;
        params.push(toTextColumn(executionId), epoch, toTextColumn(key), toTextColumn(name));
        params.push(attempts, startedAt, duration, toJsonColumn(output));
      }
      params.push(worker);
      insertGroup[places.length] ??= prepareGroup(places.length);
      return (insertGroup[places.length] as SqlStatement).run(params) === places.length;
    },
  };
}

/** Whether an entry has one result of an agent that succeeded, and nothing else except an end. */
export function isOneResult({ start, steps, state, signals, release, deliveries }: CommitEntry): boolean {
  if (steps.length !== 1 || start || state || signals || release || deliveries) return false;
  const { status, retryAt, error, note } = steps[0] as StepRecord;
  return status === 'completed' && retryAt === undefined && !error && !note;
}
