/** Workers: registration, leases, and the removal of workers whose lease has expired or whose process is gone. */

import { OrchestratorError } from '../../../../engine/base/errors.ts';
import type { WorkerStore } from '../../../../engine/storage/storage.port.ts';
import { readBoolean, readNumber } from '../../sql/columns.ts';
import { readId } from '../../sql/read-execution.ts';
import {
  type SqlClient,
  type SqlResult,
  type SqlRow,
  type SqlTransaction,
  statement,
  toArray,
} from '../drivers/driver.ts';
import { codeOf } from '../drivers/failure.ts';
import { LOCK_NOT_AVAILABLE, WAIT_FOR_LOCKS } from '../drivers/query-timeout.ts';
import { toTextColumn } from './columns.ts';
import { countCharges, slotRows } from './count-charges.ts';
import { lockKey } from './migrations.ts';
import type { Names } from './names.ts';
import type { Sessions } from './sessions.ts';
import type { Processes } from './this-process.ts';

export interface WorkersTableDependencies {
  readonly client: SqlClient;
  readonly names: Names;
  readonly namespace: string;
  /** Absent where only the leases show which workers live. */
  readonly sessions: Sessions | undefined;
  readonly processes: Processes;
  /** How long the lock of a worker must have been free, in ms, before the worker is considered dead. */
  readonly sessionGraceMs: number;
  /** Called when executions became free. */
  readonly onFreed: () => void;
}

/** The blame for one death, in thousandths. */
const BLAME = 1000;
/** How long the removal of a worker waits for rows that other transactions have locked. */
const MAX_LOCK_WAIT_MS = 2000;
/** How often `workers.unregister` tries. After that, the server has ended a transaction that hangs. */
const MAX_REMOVAL_TRIES = 3;

export function workersTable(dependencies: WorkersTableDependencies): WorkerStore {
  const { client, names, namespace, sessions, processes, sessionGraceMs, onFreed } = dependencies;
  const { insert, updateLease, selectSuspects, markUnlocked, markLocked } = leaseStatements(names);
  const { remove, removeEnded, removeUnlocked, free, freeOfDead, selectHeld } = removalStatements(names);
  const freedBy = ({ rows: [row = {}] }: SqlResult) => readNumber(row, 'freed', 'freed executions');

  /** @returns undefined when other transactions have locked the rows: a slow write, or a process that hangs */
  const unlessLocked = async <T>(work: (on: SqlTransaction) => Promise<T>): Promise<T | undefined> => {
    try {
      return await client.transaction(async (on) => {
        await on.run(WAIT_FOR_LOCKS, [String(MAX_LOCK_WAIT_MS)]);
        return work(on);
      });
    } catch (error) {
      if (codeOf(error) === LOCK_NOT_AVAILABLE) return undefined;
      throw error;
    }
  };

  const reclaim = async (ref: number, ended: boolean, now: number, blameFrom: number): Promise<number> => {
    const freed = await unlessLocked(async (on) => {
      const { count } = ended
        ? await on.run(removeEnded, [namespace, ref, now])
        : await on.run(removeUnlocked, [namespace, ref]);
      return count === 0 ? 0 : freedBy(await on.run(freeOfDead, [namespace, ref, now, blameFrom]));
    });
    return freed ?? 0;
  };

  const forget = (worker: string, now: number): Promise<number | undefined> =>
    unlessLocked(async (on) => {
      const [row] = (await on.run(remove, [namespace, toTextColumn(worker)])).rows;
      return row ? freedBy(await on.run(free, [namespace, readNumber(row, 'ref', `worker ${worker}`), now])) : 0;
    });

  /**
   * How much longer a worker is waited for, in ms, whose lock is free: by how long it was seen free, and by whether its
   * process lives.
   */
  const remainingMs = ({ unlocked_for: ms, process }: SqlRow): number => {
    const seen = process === null || process === undefined ? undefined : processes.look(process);
    if (seen === 'gone') return 0;
    // The process lives and lost only its connection, so only its lease counts.
    return seen === 'alive' ? Number.POSITIVE_INFINITY : sessionGraceMs - Number(ms ?? 0);
  };

  return {
    async register(worker, { leaseUntil }) {
      // The connection comes first, because a registered worker without a lock is considered dead by others.
      await sessions?.open();
      const locks = sessions !== undefined && client.sessionLocks;
      const process = (locks && processes.own) || null;
      const [row] = (await client.run(insert, [namespace, toTextColumn(worker), leaseUntil, locks, process])).rows;
      await sessions?.hold(worker, readNumber(row ?? {}, 'ref', `worker ${worker}`));
    },
    async renew(worker, leaseUntil) {
      sessions?.check();
      return (await client.run(updateLease, [namespace, toTextColumn(worker), leaseUntil])).count > 0;
    },
    async unregister(worker, now) {
      let freed: number | undefined;
      for (let times = 0; freed === undefined && times < MAX_REMOVAL_TRIES; times++) freed = await forget(worker, now);
      if (freed !== undefined && freed > 0) onFreed();
      await sessions?.release(worker);
      if (freed !== undefined) return;
      const message =
        'the worker could not be unregistered, because other transactions have locked its rows; other workers soon consider it dead and remove it';
      throw new OrchestratorError('OVERLOADED', message, { retryable: true });
    },
    async listHeld(worker) {
      const { rows } = await client.run(selectHeld, [namespace, toTextColumn(worker)]);
      return rows.map((row) => ({ executionId: readId(row), epoch: readNumber(row, 'epoch', `execution ${row.id}`) }));
    },
    async reclaimFromDead(worker, now, blameFrom = Number.MAX_SAFE_INTEGER) {
      const { rows } = await client.run(selectSuspects, [namespace, toTextColumn(worker), now]);
      const dead: { readonly ref: number; readonly ended: boolean }[] = [];
      const unlocked: number[] = [];
      const locked: number[] = [];
      let leftMs = Number.POSITIVE_INFINITY;
      for (const row of rows) {
        const ref = readNumber(row, 'ref', 'a worker');
        const ended = readBoolean(row, 'ended');
        const isUnlocked = readBoolean(row, 'unlocked');
        const waitsMs = isUnlocked ? remainingMs(row) : 0;
        if (ended || (isUnlocked && waitsMs <= 0)) dead.push({ ref, ended });
        else if (!isUnlocked) locked.push(ref);
        else {
          if (row.unlocked_for === null) unlocked.push(ref);
          leftMs = Math.min(leftMs, waitsMs);
        }
      }
      if (unlocked.length > 0) await client.run(markUnlocked, [namespace, toArray(unlocked)]);
      if (locked.length > 0) await client.run(markLocked, [namespace, toArray(locked)]);
      let freed = 0;
      for (const { ref, ended } of dead) freed += await reclaim(ref, ended, now, blameFrom);
      if (freed > 0) onFreed();
      return Number.isFinite(leftMs) ? { freed, againInMs: leftMs } : { freed };
    },
  };
}

function leaseStatements({ owners, schema }: Names) {
  const key = lockKey(schema);
  const insert = statement(
    `INSERT INTO ${owners} AS o (namespace, id, lease_until, locks, process) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (namespace, id) DO UPDATE
    SET lease_until = excluded.lease_until, locks = excluded.locks, process = excluded.process, unlocked_at = NULL
    RETURNING ref`,
    ['ref'],
  );
  const updateLease = statement(
    `UPDATE ${owners} SET lease_until = $3, unlocked_at = NULL WHERE namespace = $1 AND id = $2`,
  );
  // A time before the server's last start does not count, because all locks were free then. Nor does a time in the
  // future, which remains when the clock was set back.
  const unlockedAt =
    'CASE WHEN unlocked_at BETWEEN pg_postmaster_start_time() AND clock_timestamp() THEN unlocked_at END';
  // Locks are read and not tried, because another process would see the tried lock as taken.
  const selectSuspects = statement(
    `SELECT o.ref, o.lease_until <= $3 AS ended, o.locks AND l.pid IS NULL AS unlocked, o.process,
      (extract(epoch FROM clock_timestamp() - ${unlockedAt}) * 1000)::bigint AS unlocked_for
    FROM ${owners} o LEFT JOIN pg_locks l ON l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
      AND l.classid = ${key} AND l.objid::bigint = o.ref
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    WHERE o.namespace = $1 AND o.id <> $2
      AND (o.lease_until <= $3 OR (o.locks AND l.pid IS NULL) OR o.unlocked_at IS NOT NULL)`,
    ['ref', 'ended', 'unlocked', 'process', 'unlocked_for'],
  );
  // All processes share the time since when a lock was seen free. So a process that starts or dies delays no removal.
  // No process waits for another.
  const mark = (to: string, where: string) =>
    statement(
      `UPDATE ${owners} SET unlocked_at = ${to} WHERE ref IN (
        SELECT ref FROM ${owners} WHERE namespace = $1 AND ref = ANY ($2::integer[]) AND ${where}
        FOR NO KEY UPDATE SKIP LOCKED
      )`,
    );
  const markUnlocked = mark('clock_timestamp()', `(${unlockedAt}) IS NULL`);
  const markLocked = mark('NULL', 'unlocked_at IS NOT NULL');
  return { insert, updateLease, selectSuspects, markUnlocked, markLocked };
}

function removalStatements({ owners, executions, steps, charges, schema }: Names) {
  const key = lockKey(schema);
  // The removal waits for the worker's running writes, because each locks the worker's row. Later writes find no row.
  const remove = statement(`DELETE FROM ${owners} WHERE namespace = $1 AND id = $2 RETURNING ref`, ['ref']);
  const removeEnded = statement(`DELETE FROM ${owners} WHERE namespace = $1 AND ref = $2 AND lease_until <= $3`);
  const removeUnlocked = statement(
    `DELETE FROM ${owners} WHERE namespace = $1 AND ref = $2 AND pg_try_advisory_xact_lock(${key}, ref)`,
  );
  const freeing = (update: string) => `freed AS (${update} RETURNING account),
    counted AS (${countCharges(charges, slotRows('freed', -1))})
    SELECT count(*) AS freed FROM freed`;
  // A separate statement after the removal, so that it sees what those writes stored.
  const free = statement(
    `WITH ${freeing(`
      UPDATE ${executions} SET owner = NULL, due_at = $3, blame = NULL
      WHERE namespace = $1 AND status = 'running' AND owner = $2`)}`,
    ['freed'],
  );
  const claimedAt = 'coalesce(e.claimed_at, e.started_at)';
  // The executions that may have caused the worker's death share the blame.
  const freeOfDead = statement(
    `WITH held AS MATERIALIZED (
      SELECT e.ref, ${claimedAt} >= $4 AND NOT EXISTS (
        SELECT FROM ${steps} s WHERE s.execution = e.ref AND s.started_at > ${claimedAt}
      ) AS blamed
      FROM ${executions} e WHERE e.namespace = $1 AND e.status = 'running' AND e.owner = $2
    ), share AS (
      SELECT greatest(count(*) FILTER (WHERE blamed), 1) AS many,
        coalesce((SELECT max(o.ref) FROM ${owners} o WHERE o.namespace = $1), 0) AS newest
      FROM held
    ), ${freeing(`
    UPDATE ${executions} e SET owner = NULL, due_at = $3, recoveries = e.recoveries + 1, blamed_at = share.newest,
      blame = CASE
        WHEN h.blamed AND e.blame > 0 THEN e.blame + ${BLAME} / (share.many * greatest(share.newest - e.blamed_at, 1))
        WHEN h.blamed THEN 1
      END
    FROM held h, share WHERE e.namespace = $1 AND e.status = 'running' AND e.owner = $2 AND e.ref = h.ref`)}`,
    ['freed'],
  );
  const selectHeld = statement(
    `SELECT e.id, e.epoch FROM ${executions} e JOIN ${owners} o ON o.ref = e.owner
    WHERE o.namespace = $1 AND o.id = $2 AND e.namespace = $1 AND e.status = 'running'`,
    ['id', 'epoch'],
  );
  return { remove, removeEnded, removeUnlocked, free, freeOfDead, selectHeld };
}
