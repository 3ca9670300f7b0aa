/** What is free: claiming it in turns, when the next of it is due, and how much of it is queued. */

import { isOrchestratorError } from '../../../engine/errors.ts';
import type { ClaimedExecution, DamagedExecution } from '../../../engine/model/stored-execution.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import { readBoolean, readNumber } from '../sql/columns.ts';
import { readAccepted, readId } from '../sql/read-execution.ts';
import { readList, toText } from './columns.ts';
import type { Names } from './names.ts';
import { ACCEPTED } from './record-columns.ts';
import type { SignalsTable } from './signals-table.ts';
import { type SqlClient, type SqlRow, statement, toArray } from './sql-client.ts';

/** The verbs of the storage port that stand here. */
export type Claiming = Pick<Storage, 'claim' | 'survey' | 'countQueued'>;

/** Looked at beyond what is asked for: others may be about to claim the same. */
const SPARE = 50;

export function createClaiming(
  client: SqlClient,
  names: Names,
  namespace: string,
  giveSent: SignalsTable['giveSent'],
): Claiming {
  const { executions, owners, sentSignals } = names;
  // A lane is what is free of one ensemble in one version. From lane to lane by one step in the index each.
  const lane = (where: string) => `
    SELECT ensemble, version, due_at FROM ${executions} WHERE namespace = $1 AND due_at IS NOT NULL ${where}
    ORDER BY ensemble, version, due_at LIMIT 1`;
  const lanes = `lanes (ensemble, version, due_at) AS (
    (${lane('')})
    UNION ALL
    SELECT n.* FROM lanes l CROSS JOIN LATERAL (${lane('AND (ensemble, version) > (l.ensemble, l.version)')}) n
  )`;
  // The first of each lane, then the second of each, beginning behind the lane that came last. Only what is claimed is locked.
  // A row is found again by its place: one that another has changed meanwhile, and left due, is left for the next claim.
  const select = statement(
    `WITH RECURSIVE ${lanes}, alive AS (
      SELECT ref FROM ${owners} WHERE namespace = $1 AND id = $2 FOR KEY SHARE
    ), ready AS (
      SELECT ensemble, version FROM lanes WHERE due_at <= $3::bigint AND version <> ALL ($4::text[])
    ), share AS (
      SELECT 1 + $8::bigint * 2 / greatest(count(*), 2) AS most FROM ready HAVING count(*) > 0
    ), due AS MATERIALIZED (
      SELECT d.tid, d.turn, (r.ensemble, r.version) <= ($6::text, $7::text) AS behind, r.ensemble, r.version
      FROM ready r CROSS JOIN LATERAL (
        SELECT e.tid, row_number() OVER (ORDER BY e.due_at) AS turn FROM (
          SELECT ctid AS tid, due_at FROM ${executions}
          WHERE namespace = $1 AND ensemble = r.ensemble AND version = r.version AND due_at <= $3::bigint
          ORDER BY due_at LIMIT (SELECT most FROM share)
        ) e
      ) d
      ORDER BY d.turn, behind, r.ensemble, r.version LIMIT $8::bigint
    ), picked AS MATERIALIZED (
      SELECT e.*, d.turn, d.behind FROM due d CROSS JOIN LATERAL (
        SELECT ctid AS tid, started_at IS NOT NULL AS begun FROM ${executions}
        WHERE ctid = d.tid AND due_at <= $3::bigint LIMIT 1 FOR UPDATE SKIP LOCKED
      ) e
      WHERE EXISTS (SELECT FROM alive) LIMIT $5::bigint
    ), claimed AS (
      UPDATE ${executions} e SET owner = alive.ref, epoch = e.epoch + 1, due_at = NULL, status = 'running',
        started_at = coalesce(e.started_at, $3::bigint), signalled_at = NULL, claimed_at = $3::bigint,
        blame = CASE e.status WHEN 'waiting' THEN NULL ELSE e.blame END
      FROM picked p, alive WHERE e.ctid = p.tid
      RETURNING ${ACCEPTED.map((column) => `e.${column}`).join(', ')}, e.epoch, e.started_at, e.recoveries, e.blame, e.cancel_at,
        e.signals, e.parent_id, p.begun, p.turn, p.behind
    )
    SELECT (SELECT count(*) FROM due) >= $8::bigint OR EXISTS (SELECT FROM due, share WHERE due.turn = share.most) AS has_more, c.*
    FROM (SELECT 1) one LEFT JOIN claimed c ON true ORDER BY c.turn, c.behind, c.ensemble, c.version`,
    [
      'has_more',
      ...ACCEPTED,
      'epoch',
      'started_at',
      'recoveries',
      'blame',
      'cancel_at',
      'signals',
      'parent_id',
      'begun',
      'turn',
      'behind',
    ],
  );
  const look = statement(
    `WITH RECURSIVE ${lanes}
    SELECT (SELECT min(due_at) FROM lanes WHERE version <> ALL ($2::text[])) AS next_due_at, (
      SELECT json_agg(id)::text FROM ${executions}
      WHERE cancel_at IS NOT NULL AND owner = (SELECT ref FROM ${owners} WHERE namespace = $1 AND id = $3)
    ) AS to_cancel, (
      SELECT json_agg(json_build_array(id, signals))::text FROM ${executions}
      WHERE signalled_at IS NOT NULL AND owner = (SELECT ref FROM ${owners} WHERE namespace = $1 AND id = $3)
    ) AS signalled, EXISTS (SELECT FROM ${sentSignals} WHERE namespace = $1) AS has_sent`,
    ['next_due_at', 'to_cancel', 'signalled', 'has_sent'],
  );
  const count = statement(
    `SELECT count(*) AS queued
    FROM (SELECT 1 FROM ${executions} WHERE namespace = $1 AND status = 'queued' LIMIT $2::bigint) q`,
    ['queued'],
  );
  /** The lane that was served last. */
  let last: readonly [ensemble: string, version: string] = ['', ''];

  return {
    async claim(owner, { now, limit, except }) {
      const found: (ClaimedExecution | DamagedExecution)[] = [];
      const excepted = toArray(except.map(toText));
      for (let spare = SPARE; found.length < limit; spare *= 4) {
        const left = limit - found.length;
        const window = left + spare;
        const params = [namespace, toText(owner), now, excepted, left, ...last, window];
        const { rows } = await client.run(select, params);
        const claimed = rows.filter(({ id }) => id !== null);
        for (const row of claimed) found.push(readClaimed(row));
        const end = claimed.at(-1);
        if (end) last = [end.ensemble as string, end.version as string];
        // Fewer than asked for: others took some, or one lane holds more than its share, and there may be more behind.
        if (claimed.length === left || rows[0]?.has_more !== 't') break;
      }
      return found;
    },
    async survey(owner, except) {
      const params = [namespace, toArray(except.map(toText)), toText(owner)];
      let [row = {}] = (await client.run(look, params)).rows;
      if (row.has_sent === 't') {
        // Left behind by a process that died, or on its way.
        await giveSent();
        [row = {}] = (await client.run(look, params)).rows;
      }
      const cancelRequested = readList(row, 'to_cancel').map((id) => readId({ id }));
      const held = readList(row, 'signalled') as readonly unknown[] as readonly (readonly [string, number])[];
      const signalled = held.map(([id, signals]) => ({ executionId: readId({ id }), signals }));
      if (row.next_due_at === null) return { cancelRequested, signalled };
      return { nextDueAt: readNumber(row, 'next_due_at', 'a survey'), cancelRequested, signalled };
    },
    async countQueued(limit) {
      const [row = {}] = (await client.run(count, [namespace, limit])).rows;
      return readNumber(row, 'queued', 'a count');
    },
  };
}

/** One that can't be read is given to its owner too, so that it can be ended. */
function readClaimed(row: SqlRow): ClaimedExecution | DamagedExecution {
  const name = `execution ${row.id}`;
  const epoch = readNumber(row, 'epoch', name);
  try {
    return {
      execution: readAccepted(row),
      epoch,
      startedAt: readNumber(row, 'started_at', name),
      begun: readBoolean(row, 'begun'),
      recoveries: readNumber(row, 'recoveries', name),
      blame: row.blame === null ? 0 : readNumber(row, 'blame', name),
      cancelRequested: row.cancel_at !== null,
      signals: row.signals === null ? 0 : readNumber(row, 'signals', name),
    };
  } catch (damage) {
    if (!isOrchestratorError(damage, 'INTERNAL')) throw damage;
    const { parent_id: parentId } = row;
    return { executionId: readId(row), epoch, damage, ...(typeof parentId === 'string' && { parentId }) };
  }
}
