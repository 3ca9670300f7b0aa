/** The statements for queues of executions that run under limits, in Postgres. */

import { AFTER_GROUP, FAIR_QUEUES, GROUP_END } from '../../../../engine/execution/limits/flow-limit.ts';
import { DUE_IN_POSTGRES } from '../../sql/due.ts';
import { PAUSES_IN_POSTGRES } from '../../sql/pauses.ts';
import { CLOCKS_MS, HAS_GROUP, HAS_NO_GROUP, isAnyBlocked } from '../../sql/queues/queue-tables.ts';
import { byLimit, statement } from '../drivers/driver.ts';
import type { Names } from '../tables/names.ts';

export const LIMIT = ['id', 'max', 'since', 'period', 'burst', 'used'];
/** For a caller that claims nothing. */
export const NO_CALLERS: Callers = { full: 'full_callers AS (SELECT)', isOpen: 'true', slotsOf: () => '(SELECT) c' };

// Rows are looked up one by one, by `LATERAL` with a limit or by `EXISTS` with an offset: as long as a table has no statistics, the planner
// would read all rows of the namespace in place of them.

/** Whether the execution of a slot `s` has not ended, in SQL. */
const isOpenIn = (executions: string) =>
  `EXISTS (SELECT FROM ${executions} e WHERE e.namespace = $1 AND e.id = s.execution AND e.finished_at IS NULL OFFSET 0)`;

/** Whether a slot `s` is taken, in SQL. */
export const isTakenIn = (
  executions: string,
) => `CASE WHEN s.held AND s.epoch > 0 THEN ${isOpenIn(executions)} ELSE EXISTS (
    SELECT FROM ${executions} e WHERE e.namespace = $1 AND e.id = s.execution AND e.owner IS NOT NULL AND e.epoch = s.epoch OFFSET 0) END`;

/** What is to be done in the queues of a namespace, in SQL. */
export function queueNews({ queues, arrivals }: Names) {
  const isBlocked = isAnyBlocked(queues, 'namespace = $1 AND blocked_by IS NOT NULL');
  return {
    isReady: `EXISTS (SELECT FROM ${queues} WHERE namespace = $1 AND ready)`,
    isBlocked,
    // Slots that were freed are of use only to a queue that waits for one.
    arrivesAt: `least(CASE WHEN ${isBlocked} THEN (SELECT due_at FROM ${arrivals} WHERE namespace = $1 AND freed ORDER BY due_at LIMIT 1) END,
      (SELECT due_at FROM ${arrivals} WHERE namespace = $1 AND NOT freed ORDER BY due_at LIMIT 1))`,
  };
}

/** The statements that read arrivals. */
export function arrivalStatements({ executions, queues, arrivals }: Names) {
  const takeArrivals = statement(
    `WITH due AS MATERIALIZED (
      SELECT seq FROM ${arrivals} WHERE namespace = $1 AND NOT freed AND due_at <= $2::bigint ORDER BY due_at LIMIT 1000 FOR UPDATE SKIP LOCKED
    ), gone AS MATERIALIZED (
      SELECT seq FROM ${arrivals} WHERE namespace = $1 AND freed AND due_at <= $2::bigint ORDER BY due_at LIMIT 1000 FOR UPDATE SKIP LOCKED
    ) DELETE FROM ${arrivals} a USING (SELECT seq FROM due UNION ALL SELECT seq FROM gone) old
    WHERE a.seq = old.seq RETURNING a.queue, a.limits, a.freed, a.execution`,
    ['queue', 'limits', 'freed', 'execution'],
  );
  const putQueues = statement(
    `INSERT INTO ${queues} AS q (namespace, id, ready) SELECT $1, x.id, true FROM unnest($2::text[]) x (id) ORDER BY x.id COLLATE "C"
    ON CONFLICT (namespace, id) DO UPDATE SET ready = true WHERE NOT q.ready AND q.blocked_by IS NULL`,
  );
  const wakeLater = statement(
    `INSERT INTO ${arrivals} (namespace, freed, queue, limits, due_at) SELECT $1, true, x.* FROM unnest($2::text[], $3::text[], $4::bigint[]) x`,
  );
  // Rows are locked in one order: two starts may cancel the same executions.
  const leave = (where: string, change = '') => `UPDATE ${executions} e SET ${change}
      status = ${PAUSES_IN_POSTGRES.status}, ${PAUSES_IN_POSTGRES.left}, due_at = ${DUE_IN_POSTGRES.cancelled('$3::bigint')}
    FROM (
      SELECT id FROM ${executions} WHERE namespace = $1 AND id = ANY ($2::text[]) AND finished_at IS NULL ${where}
      ORDER BY id FOR NO KEY UPDATE
    ) x WHERE e.namespace = $1 AND e.id = x.id`;
  const cancel = statement(leave('', 'cancel_at = coalesce(e.cancel_at, $3::bigint),'));
  const expire = statement(leave("AND status = 'queued' AND queue IS NOT NULL AND owner IS NULL"));
  return {
    takeArrivals,
    putQueues,
    wakeLater,
    cancel,
    expire,
  };
}

/** The statements for limits. */
export function limitStatements({ executions, queues, limits, slots }: Names) {
  const putLimits = statement(
    `INSERT INTO ${limits} AS l (namespace, id, name, max, since, period, burst)
    SELECT $1, x.* FROM unnest($2::text[], $3::text[], $4::integer[], $5::bigint[], $6::bigint[], $7::integer[]) x (id, name, max, since, period, burst)
    ORDER BY x.id COLLATE "C"
    ON CONFLICT (namespace, id) DO UPDATE SET max = excluded.max, since = excluded.since, period = excluded.period, burst = excluded.burst
    WHERE l.since < excluded.since RETURNING id`,
    ['id'],
  );
  const lockLimits = statement(
    `WITH own AS MATERIALIZED (
      SELECT l.* FROM (SELECT id FROM unnest($2::text[]) x (id) ORDER BY id COLLATE "C") x CROSS JOIN LATERAL (
        SELECT ${LIMIT} FROM ${limits} WHERE namespace = $1 AND id = x.id LIMIT 1 FOR NO KEY UPDATE
      ) l
    ) SELECT * FROM own UNION ALL SELECT l.* FROM unnest($3::text[]) x (id) CROSS JOIN LATERAL (
      SELECT ${LIMIT} FROM ${limits} WHERE namespace = $1 AND id = x.id LIMIT 1
    ) l`,
    LIMIT,
  );
  const putUses = statement(
    `UPDATE ${limits} l SET used = x.used FROM unnest($2::text[], $3::text[]) x (id, used) WHERE l.namespace = $1 AND l.id = x.id`,
  );
  const forgetWakes = statement(
    `UPDATE ${limits} SET used = (used::jsonb || '{"wakesAt": 0}')::text WHERE namespace = $1 AND id = ANY ($2::text[]) AND used IS NOT NULL`,
  );
  const limitsAfter = statement(
    `SELECT id FROM ${limits} WHERE namespace = $1 AND id > $2 AND since < $3::bigint ORDER BY id LIMIT $4::bigint`,
    ['id'],
  );
  const deleteLimits = statement(
    `DELETE FROM ${limits} l WHERE namespace = $1 AND id = ANY ($2::text[])
      AND NOT EXISTS (SELECT FROM ${slots} WHERE namespace = $1 AND limit_id = l.id)
      AND NOT ${isAnyBlocked(queues, 'namespace = $1 AND blocked_by = l.id')} RETURNING id`,
    ['id'],
  );
  const limitsIn = statement(
    `SELECT e.limits FROM unnest($2::text[]) x (id) CROSS JOIN LATERAL (
      SELECT limits FROM ${executions} WHERE namespace = $1 AND queue = x.id AND due_at IS NOT NULL ORDER BY due_at, ref LIMIT 1
    ) e`,
    ['limits'],
  );
  const list = statement(
    `SELECT s.limit_id, e.id, e.status = 'queued' AS queued FROM ${slots} s
    JOIN ${executions} e ON e.namespace = s.namespace AND e.id = s.execution
    WHERE s.namespace = $1 AND s.limit_id = ANY ($2::text[]) AND e.finished_at IS NULL AND e.cancel_at IS NULL
      AND (e.status <> 'queued' OR e.queue IS NOT NULL)
    ORDER BY e.created_at, e.ref`,
    ['limit_id', 'id', 'queued'],
  );
  return { putLimits, lockLimits, putUses, forgetWakes, limitsAfter, deleteLimits, limitsIn, list };
}

/** The statements that make queues ready which a limit blocks. */
export function wakeStatements({ queues, limits }: Names) {
  const wake = statement(
    `WITH woken AS MATERIALIZED (
      SELECT q.id FROM unnest($2::text[], $3::integer[]) x (id, count) CROSS JOIN LATERAL (
        SELECT id FROM ${queues} WHERE namespace = $1 AND blocked_by = x.id AND ${HAS_NO_GROUP}
        ORDER BY blocked_at LIMIT x.count FOR NO KEY UPDATE SKIP LOCKED
      ) q
    ), made AS (UPDATE ${queues} SET ready = true, blocked_by = NULL WHERE namespace = $1 AND id = ANY (ARRAY (SELECT id FROM woken)))
    SELECT x.id, EXISTS (SELECT FROM woken) AS woken, EXISTS (
      SELECT FROM ${queues} WHERE namespace = $1 AND blocked_by = x.id AND ${HAS_GROUP}
    ) AS in_groups FROM unnest($2::text[]) x (id)`,
    ['id', 'woken', 'in_groups'],
  );
  const makeReady = statement(
    `UPDATE ${queues} SET ready = true, blocked_by = NULL WHERE namespace = $1 AND id = ANY ($2::text[])`,
  );
  const wakeNamed = statement(
    `UPDATE ${queues} q SET ready = true, blocked_by = NULL FROM ${limits} l
    WHERE q.namespace = $1 AND q.blocked_by IS NOT NULL AND l.namespace = $1 AND l.id = q.blocked_by AND l.name = ANY ($2::text[])`,
  );
  return { wake, makeReady, wakeNamed };
}

/** The statements for queues in groups. @param queues - the table */
function groupStatements(queues: string) {
  const groups = (which: string) =>
    statement(
      `WITH RECURSIVE found AS (
        (SELECT id, 1 AS nr FROM ${queues} WHERE namespace = $1 AND ${which} AND ${HAS_GROUP} AND id > $2 ORDER BY id LIMIT 1)
        UNION ALL SELECT n.id, f.nr + 1 FROM found f CROSS JOIN LATERAL (
          SELECT id FROM ${queues}
          WHERE namespace = $1 AND ${which} AND ${HAS_GROUP} AND id > split_part(f.id, '${GROUP_END}', 1) || '${GROUP_END}${AFTER_GROUP}'
          ORDER BY id LIMIT 1
        ) n WHERE f.nr < $3::integer
      ) SELECT id FROM found ORDER BY nr`,
      ['id'],
    );
  const lockOfGroups = (which: string) => {
    const lock = (range: string) =>
      `SELECT id FROM ${queues} WHERE namespace = $1 AND ${which} AND ${HAS_GROUP} AND ${range} ORDER BY id LIMIT $4::bigint
      FOR NO KEY UPDATE SKIP LOCKED`;
    return statement(
      `SELECT q.id FROM unnest($2::text[], $3::text[]) WITH ORDINALITY x (prefix, after, nr) CROSS JOIN LATERAL (
        SELECT id, 1 AS turn FROM (${lock(`id > greatest(x.prefix, x.after) AND id < x.prefix || '${AFTER_GROUP}'`)}) later
        UNION ALL SELECT id, 2 FROM (${lock('id > x.prefix AND id <= x.after')}) first
      ) q ORDER BY x.nr, q.turn, q.id`,
      ['id'],
    );
  };
  const [ready, blocked] = ['ready', 'blocked_by ='];
  return {
    readyGroups: groups(ready),
    blockedGroups: groups(`${blocked} $4`),
    lockReadyOfGroups: lockOfGroups(ready),
    lockBlockedOfGroups: lockOfGroups(`${blocked} $5`),
  };
}

/** Which callers may have free slots, in SQL. */
export interface Callers {
  /** A CTE that `isOpen` reads. */
  readonly full: string;
  readonly isOpen: string;
  /** The row `c` with the slots of a caller. */
  slotsOf(account: string): string;
}

/** The statements that store slots. */
export function slotStatements({ executions, queues, slots, arrivals }: Names) {
  const putSlots = statement(
    `INSERT INTO ${slots} (namespace, limit_id, execution, epoch, held, listed)
    SELECT $1, x.* FROM unnest($2::text[], $3::text[], $4::integer[], $5::boolean[], $6::boolean[]) x
    ON CONFLICT (namespace, limit_id, execution, step) DO UPDATE SET epoch = excluded.epoch`,
  );
  const putStepSlot = statement(
    `INSERT INTO ${slots} (namespace, limit_id, execution, step, epoch)
    SELECT $1, $2, e.id, $4, e.epoch FROM ${executions} e WHERE e.namespace = $1 AND e.id = $3 AND e.owner IS NOT NULL AND ($5 = 'free' OR EXISTS (
      SELECT FROM ${slots} s WHERE s.namespace = $1 AND s.limit_id = $2 AND s.execution = e.id AND s.step = $4 AND s.epoch = e.epoch))
    ON CONFLICT (namespace, limit_id, execution, step) DO UPDATE SET epoch = excluded.epoch RETURNING epoch`,
    ['epoch'],
  );
  const freeStepSlot = statement(
    `WITH gone AS (DELETE FROM ${slots} WHERE namespace = $1 AND limit_id = $2 AND execution = $3 AND step = $4)
    INSERT INTO ${arrivals} (namespace, freed, queue, limits, due_at) SELECT $1, true, $2, '[]', 0
    WHERE ${isAnyBlocked(queues, 'namespace = $1 AND blocked_by = $2')}`,
  );
  return { putSlots, putStepSlot, freeStepSlot };
}

/**
 * CTEs that settle queues, see `QueueTables.settle`. Also what another process has locked is due: it may leave it as it is.
 * @param ids - the parameters: the queues, the limits that block them, and the instant
 * @param which - of the executions and of the queues, in SQL: those that count
 */
export function settledIn(
  { executions, queues, arrivals }: Pick<Names, 'executions' | 'queues' | 'arrivals'>,
  ids: string,
  blockedBy: string,
  now: string,
  which = { executions: 'true', queues: 'true' },
): string {
  return `settled AS MATERIALIZED (
      SELECT q.tid, x.blocked_by, EXISTS (
        SELECT FROM ${executions} WHERE namespace = $1 AND queue = x.id AND due_at <= ${now}::bigint AND ${which.executions} OFFSET 0
      ) AS is_due FROM unnest(${ids}::text[], ${blockedBy}::text[]) x (id, blocked_by)
      CROSS JOIN LATERAL (SELECT ctid AS tid FROM ${queues} WHERE namespace = $1 AND id = x.id LIMIT 1) q WHERE ${which.queues}
    ), gone AS (DELETE FROM ${queues} q USING settled x WHERE q.ctid = x.tid AND NOT x.is_due RETURNING q.id),
    again AS (
      INSERT INTO ${arrivals} (namespace, freed, queue, limits, due_at) SELECT $1, false, e.* FROM gone CROSS JOIN LATERAL (
        SELECT queue, limits, due_at FROM ${executions}
        WHERE namespace = $1 AND queue = gone.id AND due_at <= ${now}::bigint + ${CLOCKS_MS} AND ${which.executions} ORDER BY due_at, ref LIMIT 1
      ) e
    ), blocked AS (
      UPDATE ${queues} q SET ready = false, blocked_by = x.blocked_by, blocked_at = ${now}::bigint FROM settled x
      WHERE q.ctid = x.tid AND x.blocked_by IS NOT NULL AND x.is_due
    )`;
}

/** The statements that claim. */
export function claimStatements({ executions, queues, slots, arrivals }: Names, callers: Callers) {
  const lockReady = byLimit(
    (most) => `(SELECT id FROM (
      SELECT id FROM ${queues} WHERE namespace = $1 AND ready AND ${HAS_NO_GROUP} AND id > $2
      ORDER BY id LIMIT ${most} FOR NO KEY UPDATE SKIP LOCKED
    ) q LIMIT $3::bigint)
    UNION ALL SELECT '${FAIR_QUEUES}' WHERE EXISTS (SELECT FROM ${queues} WHERE namespace = $1 AND ready AND ${HAS_GROUP})`,
    ['id'],
  );
  const [isOpen, isTaken] = [isOpenIn(executions), isTakenIn(executions)];
  // In a statement of its own: it sees all that was stored before the locks were taken.
  const countSlots = statement(
    `WITH found AS MATERIALIZED (
      SELECT s.*, ${isTaken} AS taken FROM unnest($2::text[]) x (id) CROSS JOIN LATERAL (
        SELECT ctid AS tid, limit_id, execution, epoch, held, listed FROM ${slots} WHERE namespace = $1 AND limit_id = x.id OFFSET 0
      ) s
    ), gone AS (DELETE FROM ${slots} g USING found s WHERE g.ctid = s.tid AND g.epoch = s.epoch
      AND NOT CASE WHEN s.listed THEN ${isOpen} ELSE s.taken END)
    SELECT limit_id, count(*) AS taken FROM found WHERE taken GROUP BY 1`,
    ['limit_id', 'taken'],
  );
  const heads = statement(
    `WITH ${callers.full}
    SELECT x.id AS queue, h.tid::text, h.account, h.kept_until_end, (SELECT c.max - c.charged FROM ${callers.slotsOf('h.account')}) AS free
    FROM unnest($2::text[], $3::integer[]) WITH ORDINALITY x (id, most, nr) CROSS JOIN LATERAL (
      SELECT ctid AS tid, account, kept_until_end, due_at, ref FROM ${executions}
      WHERE namespace = $1 AND queue = x.id AND due_at <= $4::bigint AND version <> ALL ($5::text[]) AND ${callers.isOpen}
      ORDER BY due_at, ref LIMIT x.most FOR UPDATE SKIP LOCKED
    ) h ORDER BY x.nr, h.due_at, h.ref`,
    ['queue', 'tid', 'account', 'kept_until_end', 'free'],
  );
  const waitedFor = statement(
    `SELECT DISTINCT x.queue FROM unnest($2::text[], $3::text[], $4::boolean[]) x (queue, limit_id, shared)
    WHERE EXISTS (SELECT FROM ${executions} e WHERE e.namespace = $1 AND e.queue = x.queue AND e.due_at <= $5::bigint OFFSET 0)
      OR ${isAnyBlocked(queues, 'namespace = $1 AND blocked_by = x.limit_id')}
      OR (x.shared AND EXISTS (SELECT FROM ${queues} q WHERE q.namespace = $1 AND q.ready))`,
    ['queue'],
  );
  const settle = statement(`WITH ${settledIn({ executions, queues, arrivals }, '$2', '$3', '$4')} SELECT`);
  return {
    lockReady,
    ...groupStatements(queues),
    countSlots,
    heads,
    waitedFor,
    settle,
  };
}
