/** The queues of executions that run under limits, in SQLite. Every call is inside a transaction, so nothing needs a lock of its own. */

import {
  AFTER_GROUP,
  FAIR_QUEUES,
  type FlowLimit,
  groupOf,
  type ListedExecution,
  limitId,
} from '../../../../engine/execution/limits/flow-limit.ts';
import { readJson } from '../../sql/columns.ts';
import { DUE_IN_SQLITE } from '../../sql/due.ts';
import { PAUSES_IN_SQLITE } from '../../sql/pauses.ts';
import { limitColumns, namedId, readLimitStates, rowsOfLimits } from '../../sql/queues/limit-state.ts';
import {
  CLOCKS_MS,
  HAS_GROUP,
  HAS_NO_GROUP,
  isAnyBlocked,
  type QueueTables,
  type SettledQueue,
  type TakenSlot,
} from '../../sql/queues/queue-tables.ts';
import type { SqlConnection, SqlRow, SqlValue } from '../drivers/driver.ts';
import { toLiteral } from '../tables/columns.ts';
import { HELD } from '../tables/names.ts';

/** What a claim from the queues gets of the claim around it. */
export interface ClaimRows {
  /** Selects what a claim returns, from the table of executions. */
  readonly select: string;
  /** Which executions may be claimed, in SQL, with its parameters. */
  readonly isOpen: string;
  readonly open: readonly SqlValue[];
  hasCallerSlot(row: SqlRow): boolean;
  claim(rows: readonly SqlRow[]): void;
}

export interface Queues {
  /** Whether a queue is ready, or becomes so at an instant (Unix ms), and whether one waits for a free slot. */
  next(): { readonly isReady: boolean; readonly isBlocked: boolean; readonly arrivesAt: number | undefined };
  /** @param rows - for a claim */
  tables(rows?: ClaimRows): QueueTables<SqlRow>;
}

/** For a caller that claims nothing. */
const NO_ROWS: ClaimRows = {
  ...{ select: '', isOpen: '', open: [] },
  hasCallerSlot: () => false,
  claim() {},
};

/** Comes after the ids of all queues. */
const LAST = '~';
const idsOf = (rows: readonly SqlRow[]) => rows.map(({ id }) => id as string);

/** Whether the execution of a slot has not ended, in SQL. @param here - the rows of a namespace */
const isOpenIn = (here: string) =>
  `EXISTS (SELECT 1 FROM ensemble_executions AS e WHERE e.${here} AND e.id = execution AND e.finished_at IS NULL)`;

/** Whether a slot is taken, in SQL: its execution is held, or keeps its slots while it waits. @param here - the rows of a namespace */
export const isTakenIn = (here: string) => `CASE WHEN held AND epoch > 0 THEN ${isOpenIn(here)} ELSE EXISTS (
    SELECT 1 FROM ${HELD} WHERE ${here} AND owner IS NOT NULL AND id = execution AND epoch = ensemble_slots.epoch) END`;

export function createQueues(connection: SqlConnection, namespace: string): Queues {
  const here = `namespace = ${toLiteral(namespace)}`;
  const listed = '(SELECT value FROM json_each(?))';
  const selectReady = connection.prepare(`SELECT 1 FROM ensemble_queues WHERE ${here} AND ready LIMIT 1`);
  const selectBlocked = connection.prepare(
    `SELECT 1 WHERE ${isAnyBlocked('ensemble_queues', `${here} AND blocked_by IS NOT NULL`)}`,
  );
  const selectArrival = connection.prepare(
    `SELECT (SELECT min(due_at) FROM ensemble_arrivals WHERE ${here} AND freed) AS free_at,
      (SELECT min(due_at) FROM ensemble_arrivals WHERE ${here} AND NOT freed) AS due`,
  );
  const [isOpen, isTaken] = [isOpenIn(here), isTakenIn(here)];
  const prepare = () => ({
    selectArrivals: connection.prepare(
      `SELECT * FROM (SELECT seq, queue, limits, freed, execution FROM ensemble_arrivals
        WHERE ${here} AND NOT freed AND due_at <= ? ORDER BY due_at LIMIT 1000)
      UNION ALL SELECT * FROM (SELECT seq, queue, limits, freed, execution FROM ensemble_arrivals
        WHERE ${here} AND freed AND due_at <= ? ORDER BY due_at LIMIT 1000)`,
    ),
    deleteArrivals: connection.prepare(`DELETE FROM ensemble_arrivals WHERE seq IN ${listed}`),
    putQueue: connection.prepare(
      `INSERT INTO ensemble_queues (namespace, id, ready) VALUES (${toLiteral(namespace)}, ?, 1)
      ON CONFLICT (namespace, id) DO UPDATE SET ready = 1 WHERE NOT ready AND blocked_by IS NULL`,
    ),
    putLimit: connection.prepare(
      `INSERT INTO ensemble_limits (namespace, id, name, max, since, period, burst) VALUES (${toLiteral(namespace)}, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (namespace, id) DO UPDATE SET max = excluded.max, since = excluded.since, period = excluded.period, burst = excluded.burst
      WHERE since < excluded.since`,
    ),
    wake: connection.prepare(
      `UPDATE ensemble_queues SET ready = 1, blocked_by = NULL WHERE ${here} AND id IN (
        SELECT id FROM ensemble_queues WHERE ${here} AND blocked_by = ? AND ${HAS_NO_GROUP} ORDER BY blocked_at LIMIT ?)`,
    ),
    wakeNamed: connection.prepare(
      `UPDATE ensemble_queues SET ready = 1, blocked_by = NULL WHERE ${here} AND blocked_by IS NOT NULL AND EXISTS (
        SELECT 1 FROM ensemble_limits AS l WHERE l.${here} AND l.id = blocked_by AND l.name IN ${listed})`,
    ),
    selectQueues: connection.prepare(
      `SELECT id FROM ensemble_queues WHERE ${here} AND ready AND ${HAS_NO_GROUP} AND id > ? ORDER BY id LIMIT ?`,
    ),
    selectLimits: connection.prepare(
      `SELECT id, max, since, period, burst, used FROM ensemble_limits WHERE ${here} AND id IN ${listed}`,
    ),
    deleteSlots: connection.prepare(
      `DELETE FROM ensemble_slots WHERE ${here} AND limit_id IN ${listed} AND NOT CASE WHEN listed THEN ${isOpen} ELSE ${isTaken} END`,
    ),
    countSlots: connection.prepare(
      `SELECT limit_id, count(*) AS taken FROM ensemble_slots WHERE ${here} AND limit_id IN ${listed} AND (listed IS NULL OR ${isTaken})
      GROUP BY limit_id`,
    ),
    ...groupStatements(connection, here),
    ...stepStatements(connection, here, toLiteral(namespace)),
    ...ruleStatements(connection, here, toLiteral(namespace)),
    selectDue: connection.prepare(
      `SELECT 1 FROM ensemble_executions WHERE ${here} AND queue = ? AND due_at IS NOT NULL AND due_at <= ? LIMIT 1`,
    ),
    selectBlocked: connection.prepare(
      `SELECT 1 WHERE ${isAnyBlocked('ensemble_queues', `${here} AND blocked_by = ?`)}`,
    ),
    putSlot: connection.prepare(
      `INSERT INTO ensemble_slots (namespace, limit_id, execution, epoch, held, listed) VALUES (${toLiteral(namespace)}, ?, ?, ?, ?, ?)
      ON CONFLICT (namespace, limit_id, execution, step) DO UPDATE SET epoch = excluded.epoch`,
    ),
    ...settleStatements(connection, here, toLiteral(namespace)),
  });
  // Most stores have no limits.
  let prepared: ReturnType<typeof prepare> | undefined;
  const heads = new Map<string, ReturnType<SqlConnection['prepare']>>();
  const headsOf = ({ select, isOpen }: ClaimRows) => {
    const sql = `${select} WHERE ${here} AND queue = ? AND due_at <= ? AND ${isOpen} ORDER BY due_at, ref LIMIT ?`;
    const known = heads.get(sql) ?? connection.prepare(sql);
    heads.set(sql, known);
    return known;
  };

  return {
    next() {
      const { due, free_at: freeAt } = selectArrival.all([])[0] ?? {};
      const isReady = selectReady.all([]).length > 0;
      const isBlocked = selectBlocked.all([]).length > 0;
      // What was freed is of use only to a queue that waits for it.
      const instants = [due, isBlocked ? freeAt : null].filter((one) => typeof one === 'number');
      return { isReady, isBlocked, arrivesAt: instants.length > 0 ? Math.min(...instants) : undefined };
    },
    tables(rows = NO_ROWS) {
      prepared ??= prepare();
      const on = prepared;
      const inGroups = (blockedBy: string | undefined, after: string, before: string, most: number) => {
        const range = [after, before, most];
        return idsOf(
          blockedBy === undefined
            ? on.selectReadyOfGroups.all(range)
            : on.selectBlockedOfGroups.all([blockedBy, ...range]),
        );
      };
      const putSlots = (slots: readonly TakenSlot[]) => {
        for (const { limit, execution, epoch, held, listed } of slots)
          on.putSlot.run([limit, execution, epoch, held ? 1 : null, listed ? 1 : null]);
      };
      const settle = (queues: readonly SettledQueue[], now: number) => {
        for (const { id, blockedBy } of queues) {
          if (on.deleteQueue.run([id, now]) > 0) on.arriveAgain.run([id, now + CLOCKS_MS]);
          else if (blockedBy !== null) on.block.run([blockedBy, now, id]);
        }
      };
      return {
        takeArrivals(now) {
          const found = on.selectArrivals.all([now, now]);
          if (found.length > 0) on.deleteArrivals.run([JSON.stringify(found.map(({ seq }) => seq))]);
          return found.map((row) => ({
            queue: row.queue as string,
            limits: readJson(row, 'limits', 'an arrival') as unknown as readonly FlowLimit[],
            freed: row.freed === 1,
            ...(typeof row.execution === 'string' && { late: row.execution }),
          }));
        },
        putQueues(ids) {
          for (const id of ids) on.putQueue.run([id]);
        },
        putLimits: (limits, areNamed) =>
          limits.flatMap((limit) => {
            const id = areNamed ? namedId(limit.name) : limitId(limit);
            return on.putLimit.run([id, ...limitColumns(limit)]) > 0 ? [id] : [];
          }),
        wakeNamed: (names) => on.wakeNamed.run([JSON.stringify(names)]),
        lock() {},
        wake(wakes) {
          let woken = 0;
          for (const { limit, count } of wakes) woken += on.wake.run([limit, count]);
          const limits = wakes.flatMap(({ limit }) =>
            inGroups(limit, FAIR_QUEUES, LAST, 1).length > 0 ? [limit] : [],
          );
          return { isAny: woken > 0, limits };
        },
        makeReady: (ids) => on.makeReady.run([JSON.stringify(ids)]),
        lockReady(after, most) {
          const plain = idsOf(on.selectQueues.all([after, most]));
          return inGroups(undefined, FAIR_QUEUES, LAST, 1).length > 0 ? [...plain, FAIR_QUEUES] : plain;
        },
        groups(blockedBy, after, most) {
          const found: string[] = [];
          let at = after;
          for (let [id] = inGroups(blockedBy, at, LAST, 1); id !== undefined; [id] = inGroups(blockedBy, at, LAST, 1)) {
            found.push(id);
            if (found.length === most) break;
            at = `${groupOf(id)}${AFTER_GROUP}`;
          }
          return found;
        },
        lockOfGroups: (blockedBy, groups, most) =>
          groups.flatMap(({ group, after }) => {
            const isLater = after > group;
            const later = inGroups(blockedBy, isLater ? after : group, group + AFTER_GROUP, most);
            const first = isLater ? inGroups(blockedBy, group, `${after}\0`, most) : [];
            return [...later, ...first];
          }),
        readLimits(limits) {
          const ids = JSON.stringify(limits);
          on.deleteSlots.run([ids]);
          const taken = new Map(on.countSlots.all([ids]).map((row) => [row.limit_id, row.taken as number]));
          const rows = on.selectLimits.all([JSON.stringify([...limits, ...rowsOfLimits(limits)])]);
          return readLimitStates(limits, rows, taken);
        },
        limitsAfter: (id, since, most) => idsOf(on.selectLimitIds.all([id, since, most])),
        deleteLimits: (ids) => ids.filter((id) => on.deleteLimit.run([id]) > 0),
        limitsIn: (ids) =>
          ids.flatMap((id) =>
            on.selectLimitsIn
              .all([id])
              .flatMap((row) => readJson(row, 'limits', 'an execution') as unknown as readonly FlowLimit[]),
          ),
        putUses(uses) {
          for (const [id, use] of uses) on.updateUse.run([JSON.stringify(use), id]);
        },
        forgetWakes: (ids) => on.forgetWakes.run([JSON.stringify(ids)]),
        wakeLater(wakes) {
          for (const { limit, at } of wakes) on.insertWake.run([limitId(limit), JSON.stringify([limit]), at]);
        },
        list: (ids) =>
          new Map(
            ids.map((id) => [
              id,
              on.selectListed
                .all([id])
                .map((row): ListedExecution => ({ id: row.id as string, isQueued: row.queued === 1 })),
            ]),
          ),
        cancel: (ids, now) => on.cancel.run([now, JSON.stringify(ids)]),
        expire: (ids, now) => on.expire.run([now, JSON.stringify(ids)]),
        heads: (turns, now) =>
          turns.flatMap(({ id, most }) =>
            headsOf(rows)
              .all([id, now, ...rows.open, most])
              .map((row) => ({ queue: id, row })),
          ),
        waitedFor: (asked, now) =>
          new Set(
            asked.flatMap(({ queue, limit, isShared }) =>
              on.selectDue.all([queue, now]).length > 0 ||
              on.selectBlocked.all([limit, limit]).length > 0 ||
              (isShared && selectReady.all([]).length > 0)
                ? [queue]
                : [],
            ),
          ),
        hasCallerSlot: rows.hasCallerSlot,
        keptOf: ({ kept_until_end: kept }) => (typeof kept === 'string' ? kept : undefined),
        claim(heads, settled, now) {
          const taken = heads.map(({ row }) => row);
          rows.claim(taken);
          for (const { row, slots } of heads) {
            const { id, epoch } = row as { readonly id: string; readonly epoch: number };
            putSlots(slots.map((slot) => ({ ...slot, execution: id, epoch })));
          }
          settle(settled, now);
          return taken;
        },
        putStepSlot: (limit, { executionId, key }, isFull) =>
          on.putStepSlot.run([limit, key, executionId, isFull ? 1 : 0, limit, key]) > 0,
        freeStepSlot(limit, { executionId, key }) {
          on.deleteStepSlot.run([limit, executionId, key]);
          if (on.selectBlocked.all([limit, limit]).length > 0) on.insertWake.run([limit, '[]', 0]);
        },
        putSlots,
        settle,
      };
    },
  };
}

/** The statements for queues in groups. */
function groupStatements(connection: SqlConnection, here: string) {
  return {
    makeReady: connection.prepare(
      `UPDATE ensemble_queues SET ready = 1, blocked_by = NULL WHERE ${here} AND id IN (SELECT value FROM json_each(?))`,
    ),
    selectReadyOfGroups: connection.prepare(
      `SELECT id FROM ensemble_queues WHERE ${here} AND ready AND ${HAS_GROUP} AND id > ? AND id < ? ORDER BY id LIMIT ?`,
    ),
    selectBlockedOfGroups: connection.prepare(
      `SELECT id FROM ensemble_queues WHERE ${here} AND blocked_by = ? AND ${HAS_GROUP} AND id > ? AND id < ? ORDER BY id LIMIT ?`,
    ),
  };
}

/** The statements for queues that a claim has looked at. @param namespace - as a literal */
function settleStatements(connection: SqlConnection, here: string, namespace: string) {
  const isDue = `EXISTS (
    SELECT 1 FROM ensemble_executions WHERE ${here} AND queue = ensemble_queues.id AND due_at IS NOT NULL AND due_at <= ?)`;
  return {
    deleteQueue: connection.prepare(`DELETE FROM ensemble_queues WHERE ${here} AND id = ? AND NOT ${isDue}`),
    arriveAgain: connection.prepare(
      `INSERT INTO ensemble_arrivals (namespace, freed, queue, limits, due_at)
      SELECT ${namespace}, 0, queue, limits, due_at FROM ensemble_executions
      WHERE ${here} AND queue = ? AND due_at IS NOT NULL AND due_at <= ? ORDER BY due_at, ref LIMIT 1`,
    ),
    block: connection.prepare(
      `UPDATE ensemble_queues SET ready = 0, blocked_by = ?, blocked_at = ? WHERE ${here} AND id = ?`,
    ),
  };
}

/** The statements for steps that take slots. @param namespace - as a literal */
function stepStatements(connection: SqlConnection, here: string, namespace: string) {
  return {
    putStepSlot: connection.prepare(
      `INSERT INTO ensemble_slots (namespace, limit_id, execution, step, epoch)
      SELECT ${namespace}, ?, e.id, ?, e.epoch FROM ensemble_executions AS e WHERE e.${here} AND e.id = ? AND e.owner IS NOT NULL AND (? = 0 OR EXISTS (
        SELECT 1 FROM ensemble_slots AS s WHERE s.${here} AND s.limit_id = ? AND s.execution = e.id AND s.step = ? AND s.epoch = e.epoch))
      ON CONFLICT (namespace, limit_id, execution, step) DO UPDATE SET epoch = excluded.epoch`,
    ),
    deleteStepSlot: connection.prepare(
      `DELETE FROM ensemble_slots WHERE ${here} AND limit_id = ? AND execution = ? AND step = ?`,
    ),
  };
}

/** The statements for rates, and for executions that are too many or too late. */
function ruleStatements(connection: SqlConnection, here: string, namespace: string) {
  const listed = '(SELECT value FROM json_each(?))';
  return {
    selectLimitIds: connection.prepare(
      `SELECT id FROM ensemble_limits WHERE ${here} AND id > ? AND since < ? ORDER BY id LIMIT ?`,
    ),
    deleteLimit: connection.prepare(
      `DELETE FROM ensemble_limits WHERE ${here} AND id = ?
        AND NOT EXISTS (SELECT 1 FROM ensemble_slots AS s WHERE s.${here} AND s.limit_id = ensemble_limits.id)
        AND NOT ${isAnyBlocked('ensemble_queues', `${here} AND blocked_by = ensemble_limits.id`)}`,
    ),
    selectLimitsIn: connection.prepare(
      `SELECT limits FROM ensemble_executions WHERE ${here} AND queue = ? AND due_at IS NOT NULL ORDER BY due_at, ref LIMIT 1`,
    ),
    updateUse: connection.prepare(`UPDATE ensemble_limits SET used = ? WHERE ${here} AND id = ?`),
    forgetWakes: connection.prepare(
      `UPDATE ensemble_limits SET used = json_set(used, '$.wakesAt', 0) WHERE ${here} AND id IN ${listed} AND used IS NOT NULL`,
    ),
    insertWake: connection.prepare(
      `INSERT INTO ensemble_arrivals (namespace, freed, queue, limits, due_at) VALUES (${namespace}, 1, ?, ?, ?)`,
    ),
    selectListed: connection.prepare(
      `SELECT e.id, e.status = 'queued' AS queued FROM ensemble_slots AS s
      JOIN ensemble_executions AS e ON e.namespace = s.namespace AND e.id = s.execution
      WHERE s.${here} AND s.limit_id = ? AND e.finished_at IS NULL AND e.cancel_requested = 0 AND (e.status <> 'queued' OR e.queue IS NOT NULL)
      ORDER BY e.created_at, e.ref`,
    ),
    cancel: connection.prepare(
      `UPDATE ensemble_executions AS e SET cancel_requested = 1, status = ${PAUSES_IN_SQLITE.status}, ${PAUSES_IN_SQLITE.left},
        due_at = ${DUE_IN_SQLITE.cancelled('?')}
      WHERE ${here} AND id IN ${listed} AND finished_at IS NULL`,
    ),
    expire: connection.prepare(
      `UPDATE ensemble_executions AS e SET queue = NULL, due_at = min(e.due_at, ?)
      WHERE ${here} AND id IN ${listed} AND finished_at IS NULL AND status = 'queued' AND queue IS NOT NULL AND owner IS NULL`,
    ),
  };
}
