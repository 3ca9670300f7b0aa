/** Claims free executions that are due, in turns between ensembles, and finds when the next one is due. */

import type { ClaimedExecution, DamagedExecution } from '../../../../engine/execution/stored-execution.ts';
import type { ClaimQuery, ExecutionStore } from '../../../../engine/storage/storage.port.ts';
import { readNumber } from '../../sql/columns.ts';
import { claimFromQueues, readArrivals } from '../../sql/queues/claim-queues.ts';
import { purgeLimits, sweepLimits } from '../../sql/queues/purge-limits.ts';
import { QueueCursor } from '../../sql/queues/queue-cursor.ts';
import { runNow } from '../../sql/queues/steps.ts';
import { readAccepted, readHandover, readId } from '../../sql/read-execution.ts';
import type { RunTransaction, SqlConnection, SqlRow, SqlValue } from '../drivers/driver.ts';
import { toLiteral, toTextColumn } from '../tables/columns.ts';
import { type Unreadable, whereDamaged } from '../tables/damaged.ts';
import { OPEN_OR_FAILED, SLOTS } from '../tables/names.ts';
import { createDamagedClaiming } from './claim-damaged.ts';
import { createQueues } from './queue-tables.ts';
import { ACCEPTED } from './record-columns.ts';

/** The methods of the storage port in this file. */
export type Claiming = Pick<ExecutionStore, 'claim' | 'take' | 'poll' | 'countQueued'>;

/** The free executions of one ensemble and version, ordered by when they are due. */
interface Lane {
  readonly ensemble: string;
  readonly version: string;
}

const BY_DUE = 'INDEXED BY ensemble_executions_due';
/** The condition of that index, word for word. Executions that run under limits are in queues. */
const IN_LANE = 'due_at IS NOT NULL AND queue IS NULL';
const IS_RUNNABLE = 'version NOT IN (SELECT value FROM json_each(?))';
/** The index contains the caller, so the executions of callers without a free slot are passed over without reading their rows. */
const IS_OPEN = '(account IS NULL OR account NOT IN (SELECT value FROM json_each(?)))';

export function createClaiming(
  connection: SqlConnection,
  namespace: string,
  transaction: RunTransaction,
  unreadable: Unreadable,
): Claiming {
  const here = `namespace = ${toLiteral(namespace)}`;
  const { selectLanes, selectNext, selectNextBut, selectOpenLanes, selectNextOpen } = laneStatements(connection, here);
  const {
    selectClaimed,
    selectByRef,
    selectFree,
    selectDue,
    updateClaimed,
    updateFromQueue,
    selectWorker,
    selectToCancel,
    selectToPause,
    selectSignalled,
    countQueued,
  } = claimStatements(connection, here);
  const readFreeSlots = createFreeSlots(connection, namespace);
  const damagedClaiming = createDamagedClaiming(
    connection,
    `ensemble_executions ${BY_DUE} WHERE ${here} AND ${IN_LANE}`,
    here,
    unreadable,
  );
  /** The lane that had the last turn. */
  let served: Lane | undefined;
  const queues = createQueues(connection, namespace);
  const cursor = new QueueCursor();

  const sweep = sweepLimits((now) => runNow(purgeLimits(queues.tables(), cursor, now)));

  const claimQueued = (worker: string, { now, limit, excludeVersions }: ClaimQuery): readonly SqlRow[] => {
    const { isReady, arrivesAt = Number.POSITIVE_INFINITY } = queues.next();
    if (limit <= 0 || !(isReady || arrivesAt <= now)) return [];
    const claim = () => {
      const by = toTextColumn(worker);
      if (selectWorker.all([by]).length === 0) return [];
      const slots = readFreeSlots();
      const tables = queues.tables({
        select: selectClaimed,
        isOpen: `${IS_RUNNABLE} AND ${IS_OPEN}`,
        open: [JSON.stringify(excludeVersions.map(toTextColumn)), slots.full],
        hasCallerSlot: slots.take,
        claim: (rows) => void markClaimed(by, rows, now, updateFromQueue),
      });
      sweep(now);
      runNow(readArrivals(tables, cursor, now));
      return runNow(claimFromQueues(tables, cursor, now, limit));
    };
    const rows = cursor.during(() => transaction(claim));
    cursor.found(rows.length, now);
    return rows;
  };

  const lanesDue = (now: number, excludeVersions: readonly string[]): readonly Lane[] => {
    const excluded = new Set(excludeVersions.map(toTextColumn));
    const { areTaken, full } = readFreeSlots();
    const rows = areTaken ? selectOpenLanes.all([full, now]) : selectLanes.all([now]);
    const found = rows.map(({ ensemble, version }) => ({ ensemble, version }) as Lane);
    const open = excluded.size === 0 ? found : found.filter(({ version }) => !excluded.has(version));
    const next = open.findIndex((lane) => served !== undefined && isAfter(lane, served));
    return next <= 0 ? open : [...open.slice(next), ...open.slice(0, next)];
  };

  /**
   * Takes rows from the lanes in turns: an equal share from each lane, then the rest of the limit from lanes that have
   * more. A lane ends at the first row whose caller has no free slot any more.
   */
  const takeTurns = (lanes: readonly Lane[], now: number, limit: number, slots: FreeSlots): SqlRow[] => {
    const taken = lanes.map((): SqlRow[] => []);
    let left = limit;
    for (let open = lanes.map((_, at) => at); open.length > 0 && left > 0; ) {
      const share = Math.max(1, Math.floor(left / open.length));
      const more = open.slice(left);
      for (const at of open.slice(0, left)) {
        const lane = lanes[at] as Lane;
        const rows = taken[at] as SqlRow[];
        const found = selectDue.all([lane.ensemble, lane.version, now, slots.full, share, rows.length]);
        const free = found.filter(slots.take);
        rows.push(...free);
        left -= free.length;
        if (free.length > 0) served = lane;
        if (free.length === share) more.push(at);
      }
      open = more;
    }
    const turns: SqlRow[][] = [];
    for (const rows of taken) {
      for (const [turn, row] of rows.entries()) {
        turns[turn] ??= [];
        turns[turn].push(row);
      }
    }
    return turns.flat();
  };

  const markClaimed = (by: string, rows: readonly SqlRow[], now: number, update = updateClaimed) =>
    update.run([by, now, now, now, JSON.stringify(rows.map(({ ref }) => ref))]);

  return {
    claim(worker, query) {
      const { now, excludeVersions } = query;
      const share = cursor.share(query.limit);
      const fromQueues = (most: number) =>
        whereDamaged(
          () => claimQueued(worker, { ...query, limit: most }),
          () => [],
        );
      const first = fromQueues(share);
      const limit = query.limit - first.length;
      if (unreadable.unreported.size > 0) damagedClaiming.report();
      const by = toTextColumn(worker);
      const claimRows = (rows: readonly SqlRow[]) => markClaimed(by, rows, now);
      const claimWhole = () => {
        const lanes = limit > 0 ? lanesDue(now, excludeVersions) : [];
        if (lanes.length === 0) return [];
        const rows = transaction(() => {
          if (selectWorker.all([by]).length === 0) return undefined;
          const found: SqlRow[] = [];
          for (;;) {
            const slots = readFreeSlots();
            const rows = takeTurns(lanes, now, limit - found.length, slots);
            claimRows(rows);
            found.push(...rows);
            // Again when a caller had more executions than free slots: the other callers of its lanes are not read yet.
            if (!slots.hasRefused || rows.length === 0 || found.length >= limit) return found;
          }
        });
        // No row at all means that a lane's name is damaged: no parameter equals it.
        return rows?.length === 0 ? claimByRow() : (rows ?? []);
      };
      const claimByRow = () => {
        if (selectWorker.all([by]).length === 0) return [];
        const slots = readFreeSlots();
        const query = { now, limit, excludeVersions: excludeVersions.map(toTextColumn), full: slots.full };
        return damagedClaiming.claim(query, {
          read: (ref) => selectByRef.all([ref])[0],
          claim(row) {
            if (!slots.take(row)) return false;
            claimRows([row]);
            return true;
          },
        });
      };
      const rest = whereDamaged(claimWhole, claimByRow);
      if (limit > 0) cursor.foundRest(rest.length);
      const rows = [...first, ...rest];
      const left = query.limit - rows.length;
      if (left > 0 && first.length === share) rows.push(...fromQueues(left));
      return rows.map((row) => readClaimed(row, now));
    },
    take(worker, id, now) {
      const by = toTextColumn(worker);
      const [row] = transaction(() => {
        if (selectWorker.all([by]).length === 0) return [];
        const found = selectFree.all([toTextColumn(id)]).filter(readFreeSlots().take);
        markClaimed(by, found, now);
        return found;
      });
      return row && readClaimed(row, now);
    },
    poll(worker, excludeVersions) {
      const versions = excludeVersions.map(toTextColumn);
      const slots = readFreeSlots();
      const next = () => {
        if (slots.areTaken) return selectNextOpen.all([slots.full, JSON.stringify(versions)])[0]?.due;
        return (versions.length === 0 ? selectNext.all([]) : selectNextBut.all([JSON.stringify(versions)]))[0]?.due;
      };
      const nextByRow = () => damagedClaiming.next(versions, slots.full);
      const inLanes = unreadable.refs.size > 0 ? nextByRow() : whereDamaged(next, nextByRow);
      const { isReady, isBlocked, arrivesAt } = queues.next();
      const all = [inLanes, arrivesAt, isReady ? cursor.quietUntil : undefined].filter(
        (one) => typeof one === 'number',
      );
      const due = all.length > 0 ? Math.min(...all) : undefined;
      const cancelRequested = selectToCancel.all([toTextColumn(worker)]).map(readId);
      const signalled = selectSignalled
        .all([toTextColumn(worker)])
        .map((held) => ({ executionId: readId(held), signals: held.signals as number }));
      const pauseRequested = selectToPause.all([toTextColumn(worker)]).map(readId);
      const news = {
        ...(pauseRequested.length > 0 && { pauseRequested }),
        cancelRequested,
        signalled,
        ...((slots.areTaken || isBlocked) && { slotsTaken: true }),
      };
      return typeof due === 'number' ? { nextDueAt: due, ...news } : news;
    },
    countQueued: (limit) => countQueued.all([limit])[0]?.queued as number,
  };
}

function isAfter(lane: Lane, served: Lane): boolean {
  return lane.ensemble === served.ensemble ? lane.version > served.version : lane.ensemble > served.ensemble;
}

/** An execution that can't be read is claimed too, so that the worker can end it. */
function readClaimed(row: SqlRow, now: number): ClaimedExecution | DamagedExecution {
  const epoch = row.epoch as number;
  try {
    const name = `execution ${String(row.id)}`;
    const begun = row.started_at !== null;
    return {
      execution: readAccepted(row, name),
      epoch,
      startedAt: begun ? readNumber(row, 'started_at', name) : now,
      begun,
      recoveries: readNumber(row, 'recoveries', name),
      blame: readNumber(row, 'blame', name),
      cancelRequested: row.cancel_requested === 1,
      ...(row.paused !== null && { pauseRequested: true }),
      signals: readNumber(row, 'signals', name),
      resumedAt: now,
      ...readHandover(row, name),
    };
  } catch (error) {
    const { parent_id: parentId } = row;
    const damaged = { executionId: readId(row), epoch, damage: error as Error };
    return typeof parentId === 'string' ? { ...damaged, parentId } : damaged;
  }
}

interface FreeSlots {
  /** The callers that had no free slot at the begin of the claim, as JSON. Their executions need not be read. */
  readonly full: string;
  /** Whether there are such callers. */
  readonly areTaken: boolean;
  /** Takes a slot for a row with `account` and `slots`, if its caller has a free one. A row without a caller needs none. */
  take(row: SqlRow): boolean;
  /** Whether `take` has refused a row. */
  readonly hasRefused: boolean;
}

/** @returns reads the slots that are taken now */
function createFreeSlots(connection: SqlConnection, namespace: string): () => FreeSlots {
  const select = connection.prepare(
    `SELECT account, count(*) AS taken, max(slots) AS slots FROM ${SLOTS} AND namespace = ${toLiteral(namespace)} GROUP BY account`,
  );
  return () => {
    const free = new Map<SqlValue | undefined, number>();
    for (const { account, taken, slots } of select.all([])) free.set(account, (slots as number) - (taken as number));
    const full = [...free].flatMap(([account, left]) => (left <= 0 ? [account as SqlValue] : []));
    let hasRefused = false;
    return {
      full: JSON.stringify(full),
      areTaken: full.length > 0,
      take({ account = null, slots }) {
        if (account === null) return true;
        const left = free.get(account) ?? (slots as number);
        if (left > 0) free.set(account, left - 1);
        else hasRefused = true;
        return left > 0;
      },
      get hasRefused() {
        return hasRefused;
      },
    };
  };
}

/** @param here - the rows of a namespace */
function laneStatements(connection: SqlConnection, here: string) {
  // One index lookup leads from the first execution of a lane to the first of the next lane, however many executions a
  // lane has. The comparison includes the instant (x'' is greater than every number), because a comparison of ensemble
  // and version alone would start at the lane's first entry and walk through the lane. The plus signs remove the column
  // types from the comparison; without them the index could not answer it.
  const first = (after: string) => `
    (SELECT ref FROM ensemble_executions ${BY_DUE} WHERE ${here} AND ${IN_LANE} ${after}
      ORDER BY ensemble, version, due_at LIMIT 1)`;
  const lanes = `
    WITH RECURSIVE firsts (ref) AS (
      SELECT ${first('')}
      UNION ALL
      SELECT ${first("AND (ensemble, version, due_at) > (+this.ensemble, +this.version, x'')")}
      FROM firsts JOIN ensemble_executions AS this ON this.ref = firsts.ref
    ), lanes (ensemble, version, due) AS (
      SELECT ensemble, version,
        (SELECT min(due_at) FROM ensemble_executions AS lane ${BY_DUE} WHERE lane.${here} AND lane.due_at IS NOT NULL AND lane.queue IS NULL
          AND lane.ensemble = head.ensemble AND lane.version = head.version)
      FROM firsts JOIN ensemble_executions AS head ON head.ref = firsts.ref
    )`;
  const selectLanes = connection.prepare(`${lanes} SELECT ensemble, version FROM lanes WHERE due <= ?`);
  const selectNext = connection.prepare(`${lanes} SELECT min(due) AS due FROM lanes`);
  const selectNextBut = connection.prepare(
    `${lanes} SELECT min(due) AS due FROM lanes WHERE version NOT IN (SELECT value FROM json_each(?))`,
  );
  const openLanes = `${lanes}, open_lanes AS (
    SELECT ensemble, version,
      (SELECT min(due_at) FROM ensemble_executions AS lane ${BY_DUE} WHERE lane.${here} AND lane.due_at IS NOT NULL AND lane.queue IS NULL
        AND lane.ensemble = lanes.ensemble AND lane.version = lanes.version AND ${IS_OPEN}) AS due
    FROM lanes)`;
  const selectOpenLanes = connection.prepare(`${openLanes} SELECT ensemble, version FROM open_lanes WHERE due <= ?`);
  const selectNextOpen = connection.prepare(
    `${openLanes} SELECT min(due) AS due FROM open_lanes WHERE version NOT IN (SELECT value FROM json_each(?))`,
  );
  return { selectLanes, selectNext, selectNextBut, selectOpenLanes, selectNextOpen };
}

/** @param here - the rows of a namespace */
function claimStatements(connection: SqlConnection, here: string) {
  const claimed = `SELECT ref, ${ACCEPTED}, epoch + 1 AS epoch,
      started_at, recoveries, CASE status WHEN 'waiting' THEN 0 ELSE coalesce(blame, 0) END AS blame, cancel_requested, coalesce(signals, 0) AS signals, parent_id,
      handover, resumed_at, account, slots, queue, kept_until_end, paused
    FROM ensemble_executions`;
  const selectByRef = connection.prepare(`${claimed} WHERE ref = ?`);
  const selectFree = connection.prepare(`${claimed} WHERE ${here} AND id = ? AND ${IN_LANE}`);
  const selectDue = connection.prepare(`
    ${claimed} ${BY_DUE} WHERE ${here} AND ${IN_LANE} AND ensemble = ? AND version = ? AND due_at <= ? AND ${IS_OPEN}
    ORDER BY due_at, account, ref LIMIT ? OFFSET ?`);
  const update = (change: string) => `
    UPDATE ensemble_executions
    SET epoch = epoch + 1, owner = ?, due_at = NULL, status = 'running', started_at = coalesce(started_at, ?),
      signalled_at = NULL, claimed_at = ?, resumed_at = coalesce(resumed_at, ?), blame = CASE status WHEN 'waiting' THEN NULL ELSE blame END
      ${change} WHERE ref IN (SELECT value FROM json_each(?))`;
  const updateClaimed = connection.prepare(update(''));
  const updateFromQueue = connection.prepare(update(", queue = nullif(coalesce(queue_after_begin, queue), '')"));
  const selectWorker = connection.prepare(`SELECT 1 FROM ensemble_owners WHERE ${here} AND owner = ?`);
  const selectToCancel = connection.prepare(`
    SELECT id FROM ensemble_executions INDEXED BY ensemble_executions_to_cancel
    WHERE ${here} AND owner = ? AND cancel_requested = 1`);
  const selectToPause = connection.prepare(`
    SELECT id FROM ensemble_executions INDEXED BY ensemble_executions_to_pause
    WHERE ${here} AND owner = ? AND paused IS NOT NULL`);
  const selectSignalled = connection.prepare(`
    SELECT id, signals FROM ensemble_executions INDEXED BY ensemble_executions_signalled
    WHERE ${here} AND owner = ? AND signalled_at IS NOT NULL`);
  const countQueued = connection.prepare(`
    SELECT count(*) AS queued FROM (
      SELECT 1 FROM ensemble_executions WHERE ${here} AND ${OPEN_OR_FAILED} AND status = 'queued' LIMIT ?
    )`);
  return {
    selectClaimed: claimed,
    selectByRef,
    selectFree,
    selectDue,
    updateClaimed,
    updateFromQueue,
    selectWorker,
    selectToCancel,
    selectToPause,
    selectSignalled,
    countQueued,
  };
}
