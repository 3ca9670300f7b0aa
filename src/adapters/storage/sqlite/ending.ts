/** How executions come to their end from outside: asked to stop, looked at whether they have ended, and deleted when they are old. */

import { type ExecutionStatus, isFinal } from '../../../engine/model/execution.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import { toJsonColumn, toOptionalJsonColumn } from '../sql/columns.ts';
import { readId } from '../sql/read-execution.ts';
import { toLiteral, toTextColumn } from './columns.ts';
import type { RunTransaction, SqlConnection, SqlValue } from './connection.ts';

/** The verbs of the storage port that stand here. */
export type Ending = Pick<Storage, 'requestCancel' | 'findEnded' | 'purge'>;

/** One call of `purge` walks over so many executions that stay: it holds the process up for some milliseconds at most. */
const WALKED_AT_MOST = 2000;
/** Ids are in the order of time: behind one that was accepted so long after an instant, none had ended before it. */
const CLOCKS_DIFFER_MS = 3_600_000;

export function ending(connection: SqlConnection, namespace: string, transaction: RunTransaction): Ending {
  const here = `namespace = ${toLiteral(namespace)}`;
  const selectStatus = connection.prepare(`SELECT status FROM ensemble_executions WHERE ${here} AND id = ?`);
  const updateCancel = connection.prepare(`
    UPDATE ensemble_executions
    SET cancel_requested = 1, due_at = CASE WHEN due_at > ? THEN ? ELSE due_at END
    WHERE ${here} AND id = ? AND (cancel_requested = 0 OR due_at > ?)`);
  const updateEnd = connection.prepare(`
    UPDATE ensemble_executions SET cancel_requested = 1, due_at = NULL, status = ?, output = ?, error = ?,
      finished_at = ?, duration = ?, agents = ?
    WHERE ${here} AND id = ? AND status = 'queued' AND parent_id IS NULL`);
  const selectOpen = connection.prepare(`
    SELECT id FROM ensemble_executions
    WHERE ${here} AND id IN (SELECT value FROM json_each(?)) AND finished_at IS NULL`);
  const selectFirstOwner = connection.prepare(
    `SELECT owner FROM ensemble_owners WHERE ${here} ORDER BY joined LIMIT 1`,
  );
  const selectBehind = connection.prepare(`
    SELECT ref, id, created_at, finished_at FROM ensemble_executions WHERE ${here} AND id > ? ORDER BY id LIMIT ?`);
  const deletions = [
    'ensemble_steps WHERE execution',
    'ensemble_deliveries WHERE execution',
    'ensemble_signals WHERE execution',
    'ensemble_executions WHERE ref',
  ];
  const deleteRefs = deletions.map((from) =>
    connection.prepare(`DELETE FROM ${from} IN (SELECT value FROM json_each(?))`),
  );

  const statusOf = (id: string) => selectStatus.all([id])[0]?.status as ExecutionStatus | undefined;

  return {
    requestCancel(executionId, now, { status, output, error, finishedAt, duration, agents }) {
      const id = toTextColumn(executionId);
      const before = statusOf(id);
      if (before === undefined || isFinal(before)) return before;
      return transaction(() => {
        const known = statusOf(id);
        if (known === undefined || isFinal(known)) return known;
        const cancelLater = () => {
          updateCancel.run([now, now, id, now]);
          return known;
        };
        if (known !== 'queued') return cancelLater();
        const about = [status, toJsonColumn(output), toOptionalJsonColumn(error), finishedAt, duration, agents];
        return updateEnd.run([...about, id]) > 0 ? status : cancelLater();
      });
    },
    findEnded(ids) {
      const known = ids.map(toTextColumn);
      const open = new Set(selectOpen.all([JSON.stringify(known)]).map(({ id }) => id));
      return ids.filter((_, at) => !open.has(known[at] as string));
    },
    purge({ owner, before, limit, after = '' }) {
      if (selectFirstOwner.all([])[0]?.owner !== toTextColumn(owner)) return undefined;
      const walked = selectBehind.all([toTextColumn(after), limit + WALKED_AT_MOST]);
      let isAll = walked.length < limit + WALKED_AT_MOST;
      const old: number[] = [];
      let last = after;
      for (const row of walked) {
        if (isNumber(row.created_at) && row.created_at >= before + CLOCKS_DIFFER_MS) {
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
        last = readId(row);
      }
      if (old.length > 0) {
        transaction(() => {
          for (const statement of deleteRefs) statement.run([JSON.stringify(old)]);
        });
      }
      return isAll ? { deleted: old.length } : { deleted: old.length, next: last };
    },
  };
}

function isNumber(value: SqlValue | undefined): value is number {
  return typeof value === 'number';
}
