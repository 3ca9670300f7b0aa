/** Changes from outside of a run: cancellation requests, other definitions, the check for ended executions, and the deletion of old ones. */

import { LAST_BUCKET, RATIO } from '../../../../engine/events/tallies/histogram.ts';
import type { ExecutionStatus } from '../../../../engine/execution/execution.ts';
import type { ExecutionStore } from '../../../../engine/storage/storage.port.ts';
import { readBoolean, readNumber, toJsonColumn, toOptionalJsonColumn } from '../../sql/columns.ts';
import { DUE_IN_POSTGRES } from '../../sql/due.ts';
import { PAUSES_IN_POSTGRES } from '../../sql/pauses.ts';
import { MAX_CLOCK_DIFFERENCE_MS, readPosition } from '../../sql/purge.ts';
import { PINNED_COLUMNS, readPinned } from '../../sql/read-execution.ts';
import { IS_DRY } from '../../sql/tables/tallies-table.ts';
import { byLimit, type SqlClient, type SqlParam, statement, toArray } from '../drivers/driver.ts';
import { toTextColumn } from '../tables/columns.ts';
import type { Names } from '../tables/names.ts';
import { endsInto, parameters, STEP_COLUMNS, stepsInto } from './commit-statements.ts';
import { toRow } from './entry-columns.ts';

/** The methods of the storage port in this file. */
export type Ending = Pick<ExecutionStore, 'requestCancel' | 'findEnded' | 'getPinned' | 'repin' | 'purge' | 'delete'>;

/** How many executions that stay one call of `purge` passes at most. */
const MAX_PASSED = 5000;
/** About how many steps one call of `purge` deletes at most. */
const MAX_DELETED_STEPS = 20_000;
/** A list of tags as it is stored. Any other text is damaged, and could fail the whole statement that reads it as JSON. */
const TAG = String.raw`"([^"\\\x01-\x1f]|\\["\\])*"`;
const TAGS = String.raw`^\[${TAG}(,${TAG})*\]$`;

/** The bucket of ms, as `bucketOf`, in SQL. */
const bucketIn = (ms: string) =>
  `CASE WHEN ${ms} < 1 THEN 0 ELSE least(${LAST_BUCKET}, 1 + floor(ln((${ms})::double precision) / ln(${RATIO}::double precision) + 1e-9))::integer END`;

/**
 * @param onFreed - called when an execution became due, or when its worker must be notified of a cancellation request
 */
export function createEnding(client: SqlClient, names: Names, namespace: string, onFreed: () => void): Ending {
  const { executions, steps, ends } = names;
  const selectStatus = statement(`SELECT status FROM ${executions} WHERE namespace = $1 AND id = $2`, ['status']);
  const begun = (column: string, otherwise: string) =>
    `CASE WHEN status = 'queued' AND parent_id IS NULL THEN ${otherwise} ELSE ${column} END`;
  const update = statement(
    `WITH changed AS (UPDATE ${executions} e SET cancel_at = coalesce(cancel_at, $3), ${PAUSES_IN_POSTGRES.left},
      due_at = ${begun(DUE_IN_POSTGRES.cancelled('$3'), 'NULL')},
      status = ${begun(PAUSES_IN_POSTGRES.status, '$4')}, output = ${begun('output', '$5')}, error = ${begun('error', '$6')},
      finished_at = ${begun('finished_at', '$7')}, duration = ${begun('duration', '$8')}, agents = ${begun('agents', '$9')}
    WHERE namespace = $1 AND id = $2 AND finished_at IS NULL AND (cancel_at IS NULL OR status = 'queued')
    RETURNING status, CASE WHEN finished_at IS NOT NULL AND NOT ${IS_DRY} THEN concat_ws('|', finished_at, id, ensemble,
        version, status, ${bucketIn('duration')}, ${bucketIn('finished_at - created_at')}, '', '') END AS counted
    ), ${endsInto(ends, 'changed')} SELECT status FROM changed`,
    ['status'],
  );
  const selectPinned = statement(
    `SELECT ${PINNED_COLUMNS.join(', ')} FROM ${executions} WHERE namespace = $1 AND id = $2`,
    PINNED_COLUMNS,
  );
  const pinned = (more: string, due = 'least(due_at, coalesce($7::bigint, due_at))') =>
    `UPDATE ${executions} SET version = $5, handover = $6, due_at = ${due}${more}
    WHERE namespace = $1 AND id = $2 AND epoch = $3 AND version = $4 AND owner IS NULL AND finished_at IS NULL RETURNING id, ref`;
  const updatePinned = statement(pinned(''), ['id', 'ref']);
  const started = pinned(', epoch = epoch + 1, input = $8, deadline_at = $9::bigint', '$7::bigint');
  const withStep = (changed: string, parameter: number) =>
    statement(
      `WITH changed AS (${changed}),
        put AS (${stepsInto(steps)('c.ref', `${parameters(parameter).row(STEP_COLUMNS)}, changed c`)})
      SELECT id FROM changed`,
      ['id'],
    );
  const updateWithStep = withStep(pinned(', epoch = epoch + 1'), 7);
  const updateStart = statement(started, ['id', 'ref']);
  const updateStartWithStep = withStep(started, 9);
  const selectEnded = statement(
    `SELECT x.nr FROM unnest($2::text[]) WITH ORDINALITY x (id, nr)
    LEFT JOIN LATERAL (
      SELECT e.finished_at IS NULL AS is_open FROM ${executions} e WHERE e.namespace = $1 AND e.id = x.id LIMIT 1
    ) t ON true WHERE t.is_open IS NOT TRUE ORDER BY x.nr`,
    ['nr'],
  );
  const { deleteOld, deleteEnded } = deletions(names);

  return {
    async requestCancel(executionId, now, { status, output, error, finishedAt, duration, agents }) {
      const id = toTextColumn(executionId);
      const end = [status, toJsonColumn(output), toOptionalJsonColumn(error), finishedAt, duration, agents];
      const { rows } = await client.run(update, [namespace, id, now, ...end]);
      if (rows[0]) onFreed();
      // Nothing was changed: the execution has ended, is unknown, or had an earlier request.
      const [row] = rows[0] ? rows : (await client.run(selectStatus, [namespace, id])).rows;
      return (row?.status ?? undefined) as ExecutionStatus | undefined;
    },
    async getPinned(id) {
      const [row] = (await client.run(selectPinned, [namespace, toTextColumn(id)])).rows;
      return row && readPinned(row);
    },
    async repin(executionId, { epoch, from, to, handover, dueAt, step, start }) {
      const params: SqlParam[] = [
        namespace,
        toTextColumn(executionId),
        epoch,
        toTextColumn(from),
        toTextColumn(to),
        ...[JSON.stringify(handover), start?.dueAt ?? dueAt ?? null],
      ];
      const entry = { executionId, epoch, steps: [] };
      if (start) params.push(toJsonColumn(start.input), start.deadlineAt ?? null);
      if (step) params.push(...toRow({ entry, part: step, json: toJsonColumn(step.output) }, STEP_COLUMNS));
      const made = start ? (step ? updateStartWithStep : updateStart) : step ? updateWithStep : updatePinned;
      const { rows } = await client.run(made, params);
      // A worker that lacks a part of the old definition may run it now.
      if (rows[0]) onFreed();
      return rows[0] !== undefined;
    },
    async findEnded(ids) {
      if (ids.length === 0) return [];
      const { rows } = await client.run(selectEnded, [namespace, toArray(ids.map(toTextColumn))]);
      return rows.map((row) => ids[readNumber(row, 'nr', 'an execution') - 1] as string);
    },
    async purge({ worker, before, limit, after }) {
      const [createdAt, id] = readPosition(after);
      const params = [namespace, toTextColumn(worker), before, createdAt, limit, limit + MAX_PASSED, id];
      const [row = {}] = (await client.run(deleteOld(limit + MAX_PASSED), params)).rows;
      if (!readBoolean(row, 'is_first')) return undefined;
      const deleted = readNumber(row, 'deleted', 'a purge');
      const leavesOld = readBoolean(row, 'leaves_old');
      if (!leavesOld && readBoolean(row, 'is_end')) return { deleted };
      const last = leavesOld ? row.last_old : row.last_passed;
      return last == null ? { deleted } : { deleted, next: last };
    },
    async delete(ids) {
      if (ids.length === 0) return 0;
      const { rows } = await client.run(deleteEnded, [namespace, toArray(ids.map(toTextColumn))]);
      return readNumber(rows[0] ?? {}, 'deleted', 'a deletion');
    },
  };
}

function deletions({ executions, steps, signals, tags, owners }: Names) {
  const selectFirst = `(SELECT id FROM ${owners} WHERE namespace = $1 ORDER BY ref LIMIT 1)`;
  const lastOf = (of: string) =>
    `(SELECT created_at || ' ' || id FROM ${of} ORDER BY created_at DESC, id DESC LIMIT 1)`;
  // What belongs to the executions in `gone`. Damaged tags stay; a list by tag passes them, because their execution is gone.
  const returning = 'RETURNING e.ref, e.namespace, e.created_at, e.id, e.tags, e.retry_of';
  const deleteRest = `gone_steps AS (
      DELETE FROM ${steps} WHERE execution IN (SELECT ref FROM gone)
    ), gone_tags AS (
      DELETE FROM ${tags} t USING (
        SELECT namespace, json_array_elements_text(CASE WHEN tags ~ '${TAGS}' THEN tags ELSE '[]' END::json) AS tag, created_at, id
        FROM gone
      ) g WHERE t.namespace = g.namespace AND t.tag = g.tag AND t.created_at = g.created_at AND t.id = g.id
    ), gone_signals AS (
      DELETE FROM ${signals} WHERE execution IN (SELECT ref FROM gone)
    ), not_retried AS (
      UPDATE ${executions} e SET retried = NULL FROM gone g
      WHERE e.namespace = g.namespace AND e.id = g.retry_of AND e.id NOT IN (SELECT id FROM gone)
    )`;
  // Walks from the oldest execution on, however few have ended. This reads the index and short rows.
  const deleteOld = byLimit(
    (most) =>
      `WITH passed AS MATERIALIZED (
      SELECT * FROM (
        SELECT id, created_at, coalesce(finished_at < $3, false) AS is_old, coalesce(agents, 0) AS agents FROM ${executions}
        WHERE namespace = $1 AND created_at >= $4::bigint AND (created_at, id) > ($4::bigint, $7) AND ${selectFirst} = $2
        ORDER BY created_at, id LIMIT ${most}
      ) m LIMIT $6::bigint
    ), old AS (
      SELECT $1 AS namespace, id, created_at FROM (
        SELECT id, created_at, row_number() OVER w AS nr, sum(agents) OVER w - agents AS before_it FROM passed WHERE is_old
        WINDOW w AS (ORDER BY created_at, id)
      ) o WHERE nr <= $5::bigint AND before_it < ${MAX_DELETED_STEPS}
    ), gone AS (
      DELETE FROM ${executions} e USING old o
      WHERE e.namespace = o.namespace AND e.id = o.id AND e.finished_at < $3 ${returning}
    ), ${deleteRest}
    SELECT ${selectFirst} = $2 AS is_first, (SELECT count(*) FROM gone) AS deleted,
      (SELECT count(*) FROM passed WHERE is_old) > (SELECT count(*) FROM old) AS leaves_old,
      ${lastOf('old')} AS last_old, ${lastOf('passed')} AS last_passed,
      (SELECT count(*) FROM passed) < $6::bigint
        OR (SELECT min(created_at) FROM passed) >= $3 + ${MAX_CLOCK_DIFFERENCE_MS} AS is_end`,
    ['is_first', 'deleted', 'leaves_old', 'last_old', 'last_passed', 'is_end'],
  );
  const deleteEnded = statement(
    `WITH gone AS (
      DELETE FROM ${executions} e WHERE namespace = $1 AND id = ANY ($2::text[]) AND finished_at IS NOT NULL ${returning}
    ), ${deleteRest}
    SELECT count(*) AS deleted FROM gone`,
    ['deleted'],
  );
  return { deleteOld, deleteEnded };
}
