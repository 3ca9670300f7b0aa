/** What is free and due: claims of it, fair to every ensemble, and when the next one is due. */

import type { ClaimedExecution, DamagedExecution } from '../../../engine/model/stored-execution.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import { readNumber } from '../sql/columns.ts';
import { readAccepted, readId } from '../sql/read-execution.ts';
import { toLiteral, toTextColumn } from './columns.ts';
import type { RunTransaction, SqlConnection, SqlRow } from './connection.ts';
import { type Lost, whereDamaged } from './damaged.ts';
import { createDamagedDue } from './damaged-due.ts';
import { STARTED_AT } from './started-at.ts';
import { OPEN_OR_FAILED } from './statuses.ts';

/** The verbs of the storage port that this table answers. */
export type DueTable = Pick<Storage, 'claim' | 'survey' | 'countQueued'>;

/** The executions of one ensemble and version that are free, by the instant from which they are due. */
interface Lane {
  readonly ensemble: string;
  readonly version: string;
}

const BY_DUE = 'INDEXED BY ensemble_executions_due';

export function dueTable(
  connection: SqlConnection,
  namespace: string,
  transaction: RunTransaction,
  lost: Lost,
): DueTable {
  const here = `namespace = ${toLiteral(namespace)}`;
  // From lane to lane by one look into the index each, however many executions wait in it: the first of a lane stands for it.
  // Behind a lane is behind every instant in it: a comparison of its name alone would begin at its first and walk through it.
  // The plus signs keep the types of the columns out of the comparison, which the index could not answer otherwise.
  const first = (behind: string) => `
    (SELECT ref FROM ensemble_executions ${BY_DUE} WHERE ${here} AND due_at IS NOT NULL ${behind}
      ORDER BY ensemble, version, due_at LIMIT 1)`;
  const lanes = `
    WITH RECURSIVE firsts (ref) AS (
      SELECT ${first('')}
      UNION ALL
      SELECT ${first("AND (ensemble, version, due_at) > (+this.ensemble, +this.version, x'')")}
      FROM firsts JOIN ensemble_executions AS this ON this.ref = firsts.ref
    ), lanes (ensemble, version, due) AS (
      SELECT ensemble, version,
        (SELECT min(due_at) FROM ensemble_executions AS lane ${BY_DUE} WHERE lane.${here} AND lane.due_at IS NOT NULL
          AND lane.ensemble = head.ensemble AND lane.version = head.version)
      FROM firsts JOIN ensemble_executions AS head ON head.ref = firsts.ref
    )`;
  const selectLanes = connection.prepare(`${lanes} SELECT ensemble, version FROM lanes WHERE due <= ?`);
  const selectNext = connection.prepare(`${lanes} SELECT min(due) AS due FROM lanes`);
  const selectNextBut = connection.prepare(
    `${lanes} SELECT min(due) AS due FROM lanes WHERE version NOT IN (SELECT value FROM json_each(?))`,
  );
  const claimed = `SELECT ref, id, ensemble, version, epoch + 1 AS epoch, seed, started_by, created_at, deadline_at, input, retry_of,
      ${STARTED_AT}, recoveries, CASE status WHEN 'waiting' THEN 0 ELSE coalesce(blame, 0) END AS blame, cancel_requested, coalesce(signals, 0) AS signals, parent_id
    FROM ensemble_executions`;
  const selectByRef = connection.prepare(`${claimed} WHERE ref = ?`);
  const selectDue = connection.prepare(`
    ${claimed} ${BY_DUE} WHERE ${here} AND ensemble = ? AND version = ? AND due_at <= ?
    ORDER BY due_at, ref LIMIT ? OFFSET ?`);
  const updateClaimed = connection.prepare(`
    UPDATE ensemble_executions
    SET epoch = epoch + 1, owner = ?, due_at = NULL, status = 'running', started_at = coalesce(started_at, ?),
      signalled_at = NULL, claimed_at = ?, blame = CASE status WHEN 'waiting' THEN NULL ELSE blame END
    WHERE ref IN (SELECT value FROM json_each(?))`);
  const selectOwner = connection.prepare(`SELECT 1 FROM ensemble_owners WHERE ${here} AND owner = ?`);
  const selectToCancel = connection.prepare(`
    SELECT id FROM ensemble_executions INDEXED BY ensemble_executions_to_cancel
    WHERE ${here} AND owner = ? AND cancel_requested = 1`);
  const selectSignalled = connection.prepare(`
    SELECT id, signals FROM ensemble_executions INDEXED BY ensemble_executions_signalled
    WHERE ${here} AND owner = ? AND signalled_at IS NOT NULL`);
  const countQueued = connection.prepare(`
    SELECT count(*) AS queued FROM (
      SELECT 1 FROM ensemble_executions WHERE ${here} AND ${OPEN_OR_FAILED} AND status = 'queued' LIMIT ?
    )`);
  const damagedDue = createDamagedDue(connection, `ensemble_executions ${BY_DUE} WHERE ${here}`, here, lost);
  /** Whose turn it was last. */
  let served: Lane | undefined;

  const lanesDue = (now: number, except: readonly string[]): readonly Lane[] => {
    const excepted = new Set(except.map(toTextColumn));
    const found = selectLanes.all([now]).map(({ ensemble, version }) => ({ ensemble, version }) as Lane);
    const open = excepted.size === 0 ? found : found.filter(({ version }) => !excepted.has(version));
    const next = open.findIndex((lane) => served !== undefined && isBehind(lane, served));
    return next <= 0 ? open : [...open.slice(next), ...open.slice(0, next)];
  };

  /** Rows of lanes that take turns: a share for each, and what is left of the limit for those that have more. */
  const takeTurns = (lanes: readonly Lane[], now: number, limit: number): SqlRow[] => {
    const taken = lanes.map((): SqlRow[] => []);
    let left = limit;
    for (let open = lanes.map((_, at) => at); open.length > 0 && left > 0; ) {
      const share = Math.max(1, Math.floor(left / open.length));
      const more = open.slice(left);
      for (const at of open.slice(0, left)) {
        const lane = lanes[at] as Lane;
        const rows = taken[at] as SqlRow[];
        const found = selectDue.all([lane.ensemble, lane.version, now, share, rows.length]);
        rows.push(...found);
        left -= found.length;
        if (found.length > 0) served = lane;
        if (found.length === share) more.push(at);
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

  return {
    claim(owner, { now, limit, except }) {
      if (lost.untold.size > 0) damagedDue.tell();
      const by = toTextColumn(owner);
      const claimRows = (rows: readonly SqlRow[]) =>
        updateClaimed.run([by, now, now, JSON.stringify(rows.map(({ ref }) => ref))]);
      const claimWhole = () => {
        const lanes = limit > 0 ? lanesDue(now, except) : [];
        if (lanes.length === 0) return [];
        const rows = transaction(() => {
          if (selectOwner.all([by]).length === 0) return undefined;
          const found = takeTurns(lanes, now, limit);
          claimRows(found);
          return found;
        });
        // A lane without rows has a name that is damaged: no parameter is equal to it.
        return rows?.length === 0 ? claimByRow() : (rows ?? []);
      };
      const claimByRow = () => {
        if (selectOwner.all([by]).length === 0) return [];
        const query = { now, limit, except: except.map(toTextColumn) };
        return damagedDue.claim(query, { read: (ref) => selectByRef.all([ref])[0], claim: (row) => claimRows([row]) });
      };
      return whereDamaged(claimWhole, claimByRow).map((row) => readClaimed(row, now));
    },
    survey(owner, except) {
      const versions = except.map(toTextColumn);
      const next = () =>
        (versions.length === 0 ? selectNext.all([]) : selectNextBut.all([JSON.stringify(versions)]))[0]?.due;
      const nextByRow = () => damagedDue.next(versions);
      const due = lost.refs.size > 0 ? nextByRow() : whereDamaged(next, nextByRow);
      const cancelRequested = selectToCancel.all([toTextColumn(owner)]).map(readId);
      const signalled = selectSignalled
        .all([toTextColumn(owner)])
        .map((held) => ({ executionId: readId(held), signals: held.signals as number }));
      const told = { cancelRequested, signalled };
      return typeof due === 'number' ? { nextDueAt: due, ...told } : told;
    },
    countQueued: (limit) => countQueued.all([limit])[0]?.queued as number,
  };
}

function isBehind(lane: Lane, served: Lane): boolean {
  return lane.ensemble === served.ensemble ? lane.version > served.version : lane.ensemble > served.ensemble;
}

/** One that can't be read is claimed all the same: its owner can end it. */
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
      signals: readNumber(row, 'signals', name),
    };
  } catch (error) {
    const { parent_id: parentId } = row;
    const damaged = { executionId: readId(row), epoch, damage: error as Error };
    return typeof parentId === 'string' ? { ...damaged, parentId } : damaged;
  }
}
