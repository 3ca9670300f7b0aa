/**
 * Claims free executions that are due, in turns between ensembles, finds when the next one is due, and counts the
 * queue.
 */

import { isOrchestratorError } from '../../../../engine/base/errors.ts';
import type { ClaimedExecution, DamagedExecution } from '../../../../engine/execution/stored-execution.ts';
import type { ClaimQuery, ExecutionStore } from '../../../../engine/storage/storage.port.ts';
import { readBoolean, readNumber } from '../../sql/columns.ts';
import { claimFromQueues, readArrivals } from '../../sql/queues/claim-queues.ts';
import { purgeLimits, sweepLimits } from '../../sql/queues/purge-limits.ts';
import { QueueCursor } from '../../sql/queues/queue-cursor.ts';
import { runLater } from '../../sql/queues/steps.ts';
import { readAccepted, readHandover, readId } from '../../sql/read-execution.ts';
import { byLimit, type SqlClient, type SqlRow, type Statement, statement, toArray } from '../drivers/driver.ts';
import { readList, toTextColumn } from '../tables/columns.ts';
import { countCharges, isOverLimit, RUNNING, slotRows } from '../tables/count-charges.ts';
import type { Names } from '../tables/names.ts';
import { aliveIn } from './commit-statements.ts';
import { queueNews, settledIn } from './queue-statements.ts';
import { createQueues } from './queue-tables.ts';
import { ACCEPTED } from './record-columns.ts';
import type { SignalsTable } from './signals-table.ts';

/** The methods of the storage port in this file. */
export type Claiming = Pick<ExecutionStore, 'claim' | 'take' | 'poll' | 'countQueued'>;

/**
 * How many more executions than requested are read, because other workers may claim some of them at the same moment.
 */
const SPARE = 50;

const CLAIMED = [
  ...ACCEPTED,
  ...[
    'epoch',
    'started_at',
    'recoveries',
    'blame',
    'cancel_at',
    'signals',
    'parent_id',
    'handover',
    'resumed_at',
    'begun',
    'paused',
  ],
];

export function createClaiming(
  client: SqlClient,
  names: Names,
  namespace: string,
  deliverSent: SignalsTable['deliverSent'],
): Claiming {
  const { select, selectOne, look, count, claimPlaces, callers } = claimStatements(names);
  const queuesOn = createQueues(names, namespace, callers);
  const cursor = new QueueCursor();
  const sweep = sweepLimits((now) => client.transaction((on) => runLater(purgeLimits(queuesOn(on), cursor, now))));
  /** Whether a queue may be ready, as far as this process knows. */
  let hasQueues = true;
  /** The lane that had the last turn. */
  let last: readonly [ensemble: string, version: string] = ['', ''];

  const claimQueued = async (
    worker: string,
    { now, limit, excludeVersions }: ClaimQuery,
  ): Promise<(ClaimedExecution | DamagedExecution)[]> => {
    if (limit <= 0 || !hasQueues) return [];
    sweep(now);
    const how = {
      claim: claimPlaces,
      worker: toTextColumn(worker),
      excludedVersions: toArray(excludeVersions.map(toTextColumn)),
    };
    const claim = () =>
      client.transaction(
        (on) => runLater(claimFromQueues(queuesOn(on, how), cursor, now, limit)),
        (on) => runLater(readArrivals(queuesOn(on, how), cursor, now)),
      );
    const rows = await unlessOverLimit(() => cursor.during(claim));
    cursor.found(rows.length, now);
    return rows.map(readClaimed);
  };

  return {
    async claim(worker, query) {
      const { now, excludeVersions } = query;
      const share = cursor.share(query.limit);
      const found = await claimQueued(worker, { ...query, limit: share });
      // Whether the queues had their share and may have more, or were not looked at.
      const mayHaveMore = found.length === share || !hasQueues;
      const { limit } = query;
      const excluded = toArray(excludeVersions.map(toTextColumn));
      for (let spare = SPARE; found.length < limit; spare *= 4) {
        const left = limit - found.length;
        const window = left + spare;
        const params = [namespace, toTextColumn(worker), now, excluded, left, ...last, window];
        const { rows } = await unlessOverLimit(() => client.run(select(window), params));
        const claimed = rows.filter(({ id }) => id !== null);
        hasQueues = rows[0]?.has_queues === 't';
        cursor.foundRest(claimed.length);
        for (const row of claimed) found.push(readClaimed(row));
        const end = claimed.at(-1);
        if (end) last = [end.ensemble as string, end.version as string];
        // When fewer executions were claimed than requested, others took some, or a lane has more than its share. Then
        // there may be more to claim.
        if (claimed.length === left || rows[0]?.has_more !== 't') break;
      }
      if (mayHaveMore) found.push(...(await claimQueued(worker, { ...query, limit: limit - found.length })));
      return found;
    },
    async take(worker, id, now) {
      const params = [namespace, toTextColumn(worker), toTextColumn(id), now];
      const [row] = (await unlessOverLimit(() => client.run(selectOne, params))).rows;
      return row && readClaimed(row);
    },
    async poll(worker, excludeVersions) {
      const params = [namespace, toArray(excludeVersions.map(toTextColumn)), toTextColumn(worker)];
      let [row = {}] = (await client.run(look, params)).rows;
      if (row.has_sent === 't') {
        // A process that died did not deliver them, or a process is about to deliver them.
        await deliverSent();
        [row = {}] = (await client.run(look, params)).rows;
      }
      const cancelRequested = readList(row, 'to_cancel').map((id) => readId({ id }));
      const held = readList(row, 'signalled') as readonly unknown[] as readonly (readonly [string, number])[];
      const signalled = held.map(([id, signals]) => ({ executionId: readId({ id }), signals }));
      const isReady = row.is_ready === 't';
      const instants = (['next_due_at', 'arrives_at'] as const).flatMap((column) =>
        typeof row[column] === 'string' ? [readNumber(row, column, 'a poll')] : [],
      );
      hasQueues = isReady || typeof row.arrives_at === 'string';
      if (isReady) instants.push(cursor.quietUntil);
      const pauseRequested = readList(row, 'to_pause').map((id) => readId({ id }));
      const asked = pauseRequested.length > 0 ? { pauseRequested } : {};
      const news = { ...asked, cancelRequested, signalled, ...(row.slots_taken === 't' && { slotsTaken: true }) };
      if (row.has_starts === 't') Object.assign(news, { hasStarts: true });
      return instants.length === 0 ? news : { nextDueAt: Math.min(...instants), ...news };
    },
    async countQueued(limit) {
      const [row = {}] = (await client.run(count(limit), [namespace, limit])).rows;
      return readNumber(row, 'queued', 'a count');
    },
  };
}

function claimStatements(names: Names) {
  const { executions, owners, charges, slots } = names;
  const slotsOf = (account: string) =>
    `${charges} c WHERE c.namespace = $1 AND c.account = ${account} AND c.period = '${RUNNING}'`;
  // The callers without a free slot: some of their executions are held.
  const full = `full_callers AS MATERIALIZED (
    SELECT h.account FROM (
      SELECT DISTINCT account FROM ${executions} WHERE namespace = $1 AND account IS NOT NULL AND owner IS NOT NULL
    ) h WHERE (SELECT c.charged >= c.max FROM ${slotsOf('h.account')})
  )`;
  const isOpen = '(account IS NULL OR account NOT IN (SELECT account FROM full_callers))';
  // A lane is the free executions of one ensemble and version. One index lookup leads from a lane to the next.
  const lane = (where: string) => `
    SELECT ensemble, version, due_at FROM ${executions} WHERE namespace = $1 AND due_at IS NOT NULL AND queue IS NULL AND ${isOpen} ${where}
    ORDER BY ensemble, version, due_at LIMIT 1`;
  const lanes = `${full}, lanes (ensemble, version, due_at) AS (
    (${lane('')})
    UNION ALL
    SELECT n.* FROM lanes l CROSS JOIN LATERAL (${lane('AND (ensemble, version) > (l.ensemble, l.version)')}) n
  )`;
  const [alive, news] = [aliveIn(owners), queueNews(names)];
  /** @param now - the parameter with the instant @param columns - further columns to return @param changes - further columns to set */
  const claimPicked = (now: string, columns = '', changes = '') => `claimed AS (
      UPDATE ${executions} e SET owner = alive.ref, epoch = e.epoch + 1, due_at = NULL, status = 'running',
        started_at = coalesce(e.started_at, ${now}::bigint), signalled_at = NULL, claimed_at = ${now}::bigint,
        resumed_at = coalesce(e.resumed_at, ${now}::bigint),
        blame = CASE e.status WHEN 'waiting' THEN NULL ELSE e.blame END${changes}
      FROM picked p, alive WHERE e.ctid = p.tid
      RETURNING ${ACCEPTED.map((column) => `e.${column}`).join(', ')}, e.epoch, e.started_at, e.recoveries, e.blame, e.cancel_at,
        e.signals, e.parent_id, e.handover, e.resumed_at, p.begun, e.paused, e.account${columns}
    ), counted AS (${countCharges(charges, slotRows('claimed', 1))})`;
  // Takes the first execution of each lane, then the second of each, starting after the lane that was served last. Only
  // claimed rows are locked. Rows are found again by their `ctid`, so a row that changed meanwhile is left for the next
  // claim.
  const select = byLimit(
    (most) => `WITH RECURSIVE ${lanes}, ${alive}, ready AS (
      SELECT ensemble, version FROM lanes WHERE due_at <= $3::bigint AND version <> ALL ($4::text[])
    ), share AS (
      SELECT 1 + $8::bigint * 2 / greatest(count(*), 2) AS most FROM ready HAVING count(*) > 0
    ), due AS MATERIALIZED (
      SELECT d.tid, d.turn, d.account, (r.ensemble, r.version) <= ($6::text, $7::text) AS had_turn, r.ensemble, r.version
      FROM ready r CROSS JOIN LATERAL (
        SELECT e.tid, e.account, row_number() OVER (ORDER BY e.due_at) AS turn FROM (
          SELECT * FROM (
            SELECT ctid AS tid, account, due_at FROM ${executions}
            WHERE namespace = $1 AND ensemble = r.ensemble AND version = r.version AND due_at <= $3::bigint AND queue IS NULL AND ${isOpen}
            ORDER BY due_at LIMIT ${most}
          ) head LIMIT (SELECT most FROM share)
        ) e
      ) d
      ORDER BY d.turn, had_turn, r.ensemble, r.version LIMIT $8::bigint
    ), limited AS (
      SELECT *, row_number() OVER (PARTITION BY account ORDER BY turn) AS nr FROM due
    ), picked AS MATERIALIZED (
      SELECT e.*, d.turn, d.had_turn FROM limited d CROSS JOIN LATERAL (
        SELECT ctid AS tid, started_at IS NOT NULL AS begun FROM ${executions}
        WHERE ctid = d.tid AND due_at <= $3::bigint LIMIT 1 FOR UPDATE SKIP LOCKED
      ) e
      WHERE EXISTS (SELECT FROM alive) AND (d.account IS NULL OR d.nr <= (SELECT c.max - c.charged FROM ${slotsOf('d.account')}))
      LIMIT $5::bigint
    ), ${claimPicked('$3', ', p.turn, p.had_turn')}
    SELECT (SELECT count(*) FROM due) >= $8::bigint OR EXISTS (SELECT FROM due, share WHERE due.turn = share.most) AS has_more,
      ${news.isReady} OR (${news.arrivesAt}) <= $3::bigint AS has_queues, c.*
    FROM (SELECT 1) one LEFT JOIN claimed c ON true ORDER BY c.turn, c.had_turn, c.ensemble, c.version`,
    ['has_more', 'has_queues', ...CLAIMED, 'turn', 'had_turn'],
  );
  const selectOne = statement(
    `WITH ${alive}, picked AS MATERIALIZED (
      SELECT ctid AS tid, started_at IS NOT NULL AS begun FROM ${executions} e
      WHERE namespace = $1 AND id = $3 AND due_at IS NOT NULL AND queue IS NULL AND EXISTS (SELECT FROM alive)
        AND (account IS NULL OR EXISTS (SELECT FROM ${slotsOf('e.account')} AND c.charged < c.max))
      LIMIT 1 FOR UPDATE SKIP LOCKED
    ), ${claimPicked('$4')}
    SELECT * FROM claimed`,
    CLAIMED,
  );
  const look = lookStatement(names, lanes, news);
  // In the order of its index: the planner would read the table when nearly all executions are queued.
  const count = byLimit(
    (most) => `SELECT count(*) AS queued FROM (
      SELECT FROM (SELECT FROM ${executions} WHERE namespace = $1 AND status = 'queued' ORDER BY created_at, id LIMIT ${most}) q LIMIT $2::bigint
    ) c`,
    ['queued'],
  );
  const claimPlaces = statement(
    `WITH ${alive}, picked AS MATERIALIZED (
      SELECT ctid AS tid, started_at IS NOT NULL AS begun FROM ${executions} WHERE ctid = ANY ($3::tid[]) AND EXISTS (SELECT FROM alive)
    ), ${claimPicked('$4', ', p.tid', ", queue = nullif(coalesce(e.queue_after_begin, e.queue), '')")}, slotted AS (
      INSERT INTO ${slots} (namespace, limit_id, execution, epoch, held) SELECT $1, x.limit_id, c.id, c.epoch, x.held
      FROM unnest($5::tid[], $6::text[], $7::boolean[]) x (tid, limit_id, held) JOIN claimed c ON c.tid = x.tid
      ON CONFLICT (namespace, limit_id, execution, step) DO UPDATE SET epoch = excluded.epoch
    ), ${settledIn(names, '$8', '$9', '$4', { executions: 'ctid <> ALL ($3::tid[])', queues: 'EXISTS (SELECT FROM alive)' })}
    SELECT * FROM claimed`,
    [...CLAIMED, 'account', 'tid'],
  );
  return { select, selectOne, look, count, claimPlaces, callers: { full, isOpen, slotsOf } };
}

/** Runs a claim again when another process took the slots that it meant to take. It ends: each time, another process has claimed. */
async function unlessOverLimit<T>(claim: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await claim();
    } catch (error) {
      if (!isOverLimit(error)) throw error;
    }
  }
}

/** An execution that can't be read is claimed too, so that the worker can end it. */
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
      ...(row.paused !== null && { pauseRequested: true }),
      signals: row.signals === null ? 0 : readNumber(row, 'signals', name),
      resumedAt: readNumber(row, 'resumed_at', name),
      ...readHandover(row, name),
    };
  } catch (damage) {
    if (!isOrchestratorError(damage, 'INTERNAL')) throw damage;
    const { parent_id: parentId } = row;
    return { executionId: readId(row), epoch, damage, ...(typeof parentId === 'string' && { parentId }) };
  }
}

/** What is new for a worker. @param lanes - the lanes of free executions */
function lookStatement(
  { executions, owners, sentSignals, documents }: Names,
  lanes: string,
  news: ReturnType<typeof queueNews>,
): Statement {
  const heldIds = (where: string, listed = 'id') => `SELECT json_agg(${listed})::text FROM ${executions}
      WHERE ${where} AND owner = (SELECT ref FROM ${owners} WHERE namespace = $1 AND id = $3)`;
  return statement(
    `WITH RECURSIVE ${lanes}
    SELECT (SELECT min(due_at) FROM lanes WHERE version <> ALL ($2::text[])) AS next_due_at, (${heldIds('cancel_at IS NOT NULL')}) AS to_cancel,
      (${heldIds('namespace = $1 AND paused IS NOT NULL AND owner IS NOT NULL')}) AS to_pause,
      (${heldIds('signalled_at IS NOT NULL', 'json_build_array(id, signals)')}) AS signalled, EXISTS (SELECT FROM ${sentSignals} WHERE namespace = $1) AS has_sent,
    EXISTS (SELECT FROM ${documents} WHERE namespace = $1 AND kind = 'start') AS has_starts,
    EXISTS (SELECT FROM full_callers) OR ${news.isBlocked} AS slots_taken,
    ${news.isReady} AS is_ready,
    ${news.arrivesAt} AS arrives_at`,
    [
      'next_due_at',
      'to_cancel',
      'to_pause',
      'signalled',
      'has_sent',
      'has_starts',
      'slots_taken',
      'is_ready',
      'arrives_at',
    ],
  );
}
