/** How executions come to their end from outside: asked to stop, looked at whether they have ended, and deleted when they are old. */

import type { ExecutionStatus } from '../../../engine/model/execution.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import { readBoolean, readNumber, toJsonColumn, toOptionalJsonColumn } from '../sql/columns.ts';
import { readId } from '../sql/read-execution.ts';
import { toText } from './columns.ts';
import type { Names } from './names.ts';
import { type SqlClient, statement, toArray } from './sql-client.ts';

/** The verbs of the storage port that stand here. */
export type Ending = Pick<Storage, 'requestCancel' | 'findEnded' | 'purge'>;

/** One call of `purge` walks over so many executions that stay, and deletes about so many steps. */
const WALKED_AT_MOST = 5000;
const STEPS_AT_ONCE = 20_000;
/** Ids are in the order of time: behind one that was accepted so long after an instant, none had ended before it. */
const CLOCKS_DIFFER_MS = 3_600_000;

/** @param onFreed - told when something became due, or its owner is to hear that it should stop */
export function createEnding(client: SqlClient, names: Names, namespace: string, onFreed: () => void): Ending {
  const { executions, steps, deliveries, signals, owners } = names;
  const selectStatus = statement(`SELECT status FROM ${executions} WHERE namespace = $1 AND id = $2`, ['status']);
  const begun = (column: string, otherwise: string) =>
    `CASE WHEN status = 'queued' AND parent_id IS NULL THEN ${otherwise} ELSE ${column} END`;
  const update = statement(
    `UPDATE ${executions} SET cancel_at = coalesce(cancel_at, $3),
      due_at = ${begun('least(due_at, CASE WHEN owner IS NULL THEN $3 END)', 'NULL')},
      status = ${begun('status', '$4')}, output = ${begun('output', '$5')}, error = ${begun('error', '$6')},
      finished_at = ${begun('finished_at', '$7')}, duration = ${begun('duration', '$8')}, agents = ${begun('agents', '$9')}
    WHERE namespace = $1 AND id = $2 AND finished_at IS NULL AND (cancel_at IS NULL OR status = 'queued')
    RETURNING status`,
    ['status'],
  );
  const selectEnded = statement(
    `SELECT x.nr FROM unnest($2::text[]) WITH ORDINALITY x (id, nr)
    LEFT JOIN LATERAL (
      SELECT e.finished_at IS NULL AS is_open FROM ${executions} e WHERE e.namespace = $1 AND e.id = x.id LIMIT 1
    ) t ON true WHERE t.is_open IS NOT TRUE ORDER BY x.nr`,
    ['nr'],
  );
  const selectFirst = `(SELECT id FROM ${owners} WHERE namespace = $1 ORDER BY ref LIMIT 1)`;
  // From id to id, however few of them are old: a read of the index and of short rows.
  const deleteOld = statement(
    `WITH walked AS MATERIALIZED (
      SELECT id, created_at, coalesce(finished_at < $3, false) AS is_old, coalesce(agents, 0) AS agents FROM ${executions}
      WHERE namespace = $1 AND id > $4 AND ${selectFirst} = $2 ORDER BY id LIMIT $6::bigint
    ), old AS (
      SELECT $1 AS namespace, id FROM (
        SELECT id, row_number() OVER w AS nr, sum(agents) OVER w - agents AS before_it FROM walked WHERE is_old
        WINDOW w AS (ORDER BY id)
      ) o WHERE nr <= $5::bigint AND before_it < ${STEPS_AT_ONCE}
    ), gone AS (
      DELETE FROM ${executions} e USING old o
      WHERE e.namespace = o.namespace AND e.id = o.id AND e.finished_at < $3 RETURNING e.ref
    ), gone_steps AS (
      DELETE FROM ${steps} WHERE execution IN (SELECT ref FROM gone)
    ), gone_deliveries AS (
      DELETE FROM ${deliveries} WHERE execution IN (SELECT ref FROM gone)
    ), gone_signals AS (
      DELETE FROM ${signals} WHERE execution IN (SELECT ref FROM gone)
    )
    SELECT ${selectFirst} = $2 AS is_first, (SELECT count(*) FROM gone) AS deleted,
      (SELECT count(*) FROM walked WHERE is_old) > (SELECT count(*) FROM old) AS leaves_old,
      (SELECT max(id) FROM old) AS last_old, (SELECT max(id) FROM walked) AS last_walked,
      (SELECT count(*) FROM walked) < $6::bigint
        OR (SELECT min(created_at) FROM walked) >= $3 + ${CLOCKS_DIFFER_MS} AS is_end`,
    ['is_first', 'deleted', 'leaves_old', 'last_old', 'last_walked', 'is_end'],
  );

  return {
    async requestCancel(executionId, now, { status, output, error, finishedAt, duration, agents }) {
      const id = toText(executionId);
      const end = [status, toJsonColumn(output), toOptionalJsonColumn(error), finishedAt, duration, agents];
      const { rows } = await client.run(update, [namespace, id, now, ...end]);
      if (rows[0]) onFreed();
      // There was nothing to change: it has ended, was asked before, or is not known.
      const [row] = rows[0] ? rows : (await client.run(selectStatus, [namespace, id])).rows;
      return (row?.status ?? undefined) as ExecutionStatus | undefined;
    },
    async findEnded(ids) {
      if (ids.length === 0) return [];
      const { rows } = await client.run(selectEnded, [namespace, toArray(ids.map(toText))]);
      return rows.map((row) => ids[readNumber(row, 'nr', 'an execution') - 1] as string);
    },
    async purge({ owner, before, limit, after }) {
      const params = [namespace, toText(owner), before, after === undefined ? '' : toText(after)];
      const [row = {}] = (await client.run(deleteOld, [...params, limit, limit + WALKED_AT_MOST])).rows;
      if (!readBoolean(row, 'is_first')) return undefined;
      const deleted = readNumber(row, 'deleted', 'a purge');
      const leavesOld = readBoolean(row, 'leaves_old');
      if (!leavesOld && readBoolean(row, 'is_end')) return { deleted };
      const last = leavesOld ? row.last_old : row.last_walked;
      return last == null ? { deleted } : { deleted, next: readId({ id: last }) };
    },
  };
}
