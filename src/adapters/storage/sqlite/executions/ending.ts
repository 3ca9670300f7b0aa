/** Changes from outside of a run: cancellation requests, other definitions, the check for ended executions, and the deletion of old ones. */

import type { Json } from '../../../../engine/base/json/json.ts';
import { type ExecutionStatus, isFinal } from '../../../../engine/execution/execution.ts';
import type { ExecutionStore } from '../../../../engine/storage/storage.port.ts';
import { toJsonColumn, toOptionalJsonColumn } from '../../sql/columns.ts';
import { DUE_IN_SQLITE } from '../../sql/due.ts';
import { columnsOf, STEP, writeFields } from '../../sql/fields.ts';
import { PAUSES_IN_SQLITE } from '../../sql/pauses.ts';
import { MAX_CLOCK_DIFFERENCE_MS, readPosition } from '../../sql/purge.ts';
import { PINNED_COLUMNS, readPinned } from '../../sql/read-execution.ts';
import type { RunTransaction, SqlConnection, SqlRow, SqlValue } from '../drivers/driver.ts';
import { toLiteral, toTextColumn } from '../tables/columns.ts';
import type { EndsTable } from './ends-table.ts';
import { REPLACE } from './step-statements.ts';

/** The methods of the storage port in this file. */
export type Ending = Pick<ExecutionStore, 'requestCancel' | 'findEnded' | 'getPinned' | 'repin' | 'purge' | 'delete'>;

/**
 * How many executions that stay one call of `purge` passes at most. The call then blocks the process for a few
 * milliseconds.
 */
const MAX_PASSED = 2000;

export function createEnding(
  connection: SqlConnection,
  namespace: string,
  transaction: RunTransaction,
  ends: EndsTable,
): Ending {
  const here = `namespace = ${toLiteral(namespace)}`;
  const selectStatus = connection.prepare(`SELECT status FROM ensemble_executions WHERE ${here} AND id = ?`);
  const updateCancel = connection.prepare(`
    UPDATE ensemble_executions AS e SET cancel_requested = 1, status = ${PAUSES_IN_SQLITE.status}, ${PAUSES_IN_SQLITE.left},
      due_at = ${DUE_IN_SQLITE.cancelled('?')}
    WHERE ${here} AND id = ? AND cancel_requested = 0`);
  const updateEnd = connection.prepare(`
    UPDATE ensemble_executions SET cancel_requested = 1, due_at = NULL, status = ?, output = ?, error = ?,
      finished_at = ?, duration = ?, agents = ?
    WHERE ${here} AND id = ? AND status = 'queued' AND parent_id IS NULL`);
  const selectPinned = connection.prepare(`
    SELECT ${PINNED_COLUMNS.join(', ')} FROM ensemble_executions WHERE ${here} AND id = ?`);
  const updatePinned = connection.prepare(`
    UPDATE ensemble_executions SET version = ?, handover = ?, due_at = min(due_at, coalesce(?, due_at)), epoch = epoch + ?
    WHERE ${here} AND id = ? AND epoch = ? AND version = ? AND owner IS NULL AND finished_at IS NULL`);
  const updateStart = connection.prepare(`
    UPDATE ensemble_executions SET input = ?, deadline_at = ?, due_at = ? WHERE ${here} AND id = ?`);
  const putStep = connection.prepare(`
    INSERT INTO ensemble_steps (execution, ${columnsOf(STEP)})
    SELECT ref, ${columnsOf(STEP).fill('?')} FROM ensemble_executions WHERE ${here} AND id = ? ${REPLACE}`);
  const selectOpen = connection.prepare(`
    SELECT id FROM ensemble_executions
    WHERE ${here} AND id IN (SELECT value FROM json_each(?)) AND finished_at IS NULL`);
  const selectFirstWorker = connection.prepare(
    `SELECT owner FROM ensemble_owners WHERE ${here} ORDER BY joined LIMIT 1`,
  );
  const selectAfter = connection.prepare(`
    SELECT ref, id, created_at, finished_at FROM ensemble_executions INDEXED BY ensemble_executions_by_creation
    WHERE ${here} AND (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?`);
  const selectEnded = connection.prepare(`
    SELECT ref FROM ensemble_executions
    WHERE ${here} AND id IN (SELECT value FROM json_each(?)) AND finished_at IS NOT NULL`);
  // The keys of the tags of an execution. A damaged list finds none; a list by tag passes the entries that then remain.
  const deleteTags = connection.prepare(`
    DELETE FROM ensemble_tags WHERE (namespace, tag, created_at, id) IN (
      SELECT e.namespace, t.value, e.created_at, e.id FROM json_each(?) AS o JOIN ensemble_executions AS e ON e.ref = o.value
      JOIN json_each(CASE WHEN json_valid(e.tags) THEN e.tags ELSE '[]' END) AS t
    )`);
  const updateRetried = connection.prepare(`
    UPDATE ensemble_executions SET retried = NULL WHERE (namespace, id) IN (
      SELECT e.namespace, e.retry_of FROM json_each(?) AS o JOIN ensemble_executions AS e ON e.ref = o.value
      WHERE e.retry_of IS NOT NULL
    )`);
  const deletions = [
    'ensemble_steps WHERE execution',
    'ensemble_signals WHERE execution',
    'ensemble_executions WHERE ref',
  ];
  const deleteRefs = deletions.map((from) =>
    connection.prepare(`DELETE FROM ${from} IN (SELECT value FROM json_each(?))`),
  );

  const deleteAll = (refs: readonly SqlValue[]) => {
    for (const statement of [deleteTags, updateRetried, ...deleteRefs]) statement.run([JSON.stringify(refs)]);
  };
  const statusOf = (id: string) => selectStatus.all([id])[0]?.status as ExecutionStatus | undefined;

  return {
    requestCancel(executionId, now, end) {
      const { status, output, error, finishedAt, duration, agents } = end;
      const id = toTextColumn(executionId);
      const before = statusOf(id);
      if (before === undefined || isFinal(before)) return before;
      return transaction(() => {
        const known = statusOf(id);
        if (known === undefined || isFinal(known)) return known;
        const cancelLater = () => {
          updateCancel.run([now, id]);
          return statusOf(id);
        };
        if (known !== 'queued') return cancelLater();
        const about = [status, toJsonColumn(output), toOptionalJsonColumn(error), finishedAt, duration, agents];
        if (updateEnd.run([...about, id]) === 0) return cancelLater();
        ends.putUnbegun(id, end);
        return status;
      });
    },
    getPinned(id) {
      const [row] = selectPinned.all([toTextColumn(id)]);
      return row && readPinned(row);
    },
    repin: (id, { epoch, from, to, handover, dueAt, step, start }) =>
      transaction(() => {
        const isChanged =
          updatePinned.run([
            ...[toTextColumn(to), toJsonColumn(handover as unknown as Json), dueAt ?? null, step || start ? 1 : 0],
            ...[toTextColumn(id), epoch, toTextColumn(from)],
          ]) > 0;
        if (isChanged && start)
          updateStart.run([toJsonColumn(start.input), start.deadlineAt ?? null, start.dueAt, toTextColumn(id)]);
        if (isChanged && step) putStep.run([...writeFields(STEP, step, toTextColumn), toTextColumn(id)]);
        return isChanged;
      }),
    findEnded(ids) {
      const known = ids.map(toTextColumn);
      const open = new Set(selectOpen.all([JSON.stringify(known)]).map(({ id }) => id));
      return ids.filter((_, at) => !open.has(known[at] as string));
    },
    purge({ worker, before, limit, after }) {
      if (selectFirstWorker.all([])[0]?.owner !== toTextColumn(worker)) return undefined;
      const found = selectAfter.all([...readPosition(after), limit + MAX_PASSED]);
      let isAll = found.length < limit + MAX_PASSED;
      const old: number[] = [];
      let last: SqlRow | undefined;
      for (const row of found) {
        if (isNumber(row.created_at) && row.created_at >= before + MAX_CLOCK_DIFFERENCE_MS) {
          isAll = true;
          break;
        }
        if (isNumber(row.finished_at) && row.finished_at < before) {
          if (old.length === limit) {
            isAll = false;
            break;
          }
          old.push(row.ref as number);
        }
        last = row;
      }
      if (old.length > 0) transaction(() => deleteAll(old));
      return isAll || !last ? { deleted: old.length } : { deleted: old.length, next: `${last.created_at} ${last.id}` };
    },
    delete: (ids) =>
      transaction(() => {
        const refs = selectEnded.all([JSON.stringify(ids.map(toTextColumn))]).map(({ ref }) => ref as number);
        deleteAll(refs);
        return refs.length;
      }),
  };
}

function isNumber(value: SqlValue | undefined): value is number {
  return typeof value === 'number';
}
