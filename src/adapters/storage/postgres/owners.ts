/** Owners: joining, leases, leaving, and taking those for dead whose lease has ended or whose process is gone. */

import { OrchestratorError } from '../../../engine/errors.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import { readBoolean, readNumber } from '../sql/columns.ts';
import { readId } from '../sql/read-execution.ts';
import { toText } from './columns.ts';
import { codeOf } from './failure.ts';
import { lockKey } from './migrations.ts';
import type { Names } from './names.ts';
import type { Sessions } from './sessions.ts';
import { type SqlClient, type SqlRow, type SqlTransaction, statement, toArray } from './sql-client.ts';
import type { Processes } from './this-process.ts';
import { LOCK_NOT_AVAILABLE, WAIT_FOR_LOCKS } from './time-limit.ts';

/** The verbs of the storage port that stand here. */
export type Owners = Pick<Storage, 'join' | 'renew' | 'leave' | 'recover' | 'listHeld'>;

export interface OwnersParts {
  readonly client: SqlClient;
  readonly names: Names;
  readonly namespace: string;
  /** Absent where owners live by their leases alone. */
  readonly sessions: Sessions | undefined;
  readonly processes: Processes;
  /** For so long the lock of an owner must have been free before it is taken for dead. */
  readonly sessionGraceMs: number;
  /** Told when executions became free. */
  readonly onFreed: () => void;
}

/** For one death. */
const BLAME = 1000;
/** For so long a takeover waits for what others write or take over. */
const LOCKED_FOR_MS = 2000;
/** So often an owner that leaves waits: behind that, the server has ended whatever hangs. */
const LEAVES = 3;

export function createOwners(parts: OwnersParts): Owners {
  const { client, names, namespace, sessions, processes, sessionGraceMs, onFreed } = parts;
  const { owners, executions, steps } = names;
  const key = lockKey(names.schema);
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
  // What was seen before the server last started says nothing: all locks were free then. Nor does an instant that a clock
  // which was set back has not come to.
  const unlockedAt =
    'CASE WHEN unlocked_at BETWEEN pg_postmaster_start_time() AND clock_timestamp() THEN unlocked_at END';
  // Locks are looked at, not tried: a try would be seen as a lock by others who look at the same moment.
  const selectDoubtful = statement(
    `SELECT o.ref, o.lease_until <= $3 AS ended, o.locks AND l.pid IS NULL AS unlocked, o.process,
      (extract(epoch FROM clock_timestamp() - ${unlockedAt}) * 1000)::bigint AS unlocked_for
    FROM ${owners} o LEFT JOIN pg_locks l ON l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
      AND l.classid = ${key} AND l.objid::bigint = o.ref
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    WHERE o.namespace = $1 AND o.id <> $2
      AND (o.lease_until <= $3 OR (o.locks AND l.pid IS NULL) OR o.unlocked_at IS NOT NULL)`,
    ['ref', 'ended', 'unlocked', 'process', 'unlocked_for'],
  );
  // All who look share what they see, so that one which begins to look or dies delays nothing. None waits for another.
  const mark = (to: string, where: string) =>
    statement(
      `UPDATE ${owners} SET unlocked_at = ${to} WHERE ref IN (
        SELECT ref FROM ${owners} WHERE namespace = $1 AND ref = ANY ($2::integer[]) AND ${where}
        FOR NO KEY UPDATE SKIP LOCKED
      )`,
    );
  const markUnlocked = mark('clock_timestamp()', `(${unlockedAt}) IS NULL`);
  const markLocked = mark('NULL', 'unlocked_at IS NOT NULL');
  // Waits for the owner's writes that are on their way: each holds its row, and finds it gone once this is stored.
  const remove = statement(`DELETE FROM ${owners} WHERE namespace = $1 AND id = $2 RETURNING ref`, ['ref']);
  const removeEnded = statement(`DELETE FROM ${owners} WHERE namespace = $1 AND ref = $2 AND lease_until <= $3`);
  const removeUnlocked = statement(
    `DELETE FROM ${owners} WHERE namespace = $1 AND ref = $2 AND pg_try_advisory_xact_lock(${key}, ref)`,
  );
  // A statement of its own behind the removal: it sees what those writes stored.
  const free = statement(
    `UPDATE ${executions} SET owner = NULL, due_at = $3, blame = NULL
    WHERE namespace = $1 AND status = 'running' AND owner = $2`,
  );
  const claimedAt = 'coalesce(e.claimed_at, e.started_at)';
  // Those that may be what the owner died of share the blame for it.
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
    )
    UPDATE ${executions} e SET owner = NULL, due_at = $3, recoveries = e.recoveries + 1, blamed_at = share.newest,
      blame = CASE
        WHEN h.blamed AND e.blame > 0 THEN e.blame + ${BLAME} / (share.many * greatest(share.newest - e.blamed_at, 1))
        WHEN h.blamed THEN 1
      END
    FROM held h, share WHERE e.namespace = $1 AND e.status = 'running' AND e.owner = $2 AND e.ref = h.ref`,
  );

  const selectHeld = statement(
    `SELECT e.id, e.epoch FROM ${executions} e JOIN ${owners} o ON o.ref = e.owner
    WHERE o.namespace = $1 AND o.id = $2 AND e.namespace = $1 AND e.status = 'running'`,
    ['id', 'epoch'],
  );

  /** @returns undefined when what it has to change is held by others: a write that takes its time, or a process that hangs */
  const unlessLocked = async <T>(work: (on: SqlTransaction) => Promise<T>): Promise<T | undefined> => {
    try {
      return await client.transaction(async (on) => {
        await on.run(WAIT_FOR_LOCKS, [String(LOCKED_FOR_MS)]);
        return work(on);
      });
    } catch (error) {
      if (codeOf(error) === LOCK_NOT_AVAILABLE) return undefined;
      throw error;
    }
  };

  const takeOver = async (ref: number, ended: boolean, now: number, blameFrom: number): Promise<number> => {
    const freed = await unlessLocked(async (on) => {
      const { count } = ended
        ? await on.run(removeEnded, [namespace, ref, now])
        : await on.run(removeUnlocked, [namespace, ref]);
      return count === 0 ? 0 : (await on.run(freeOfDead, [namespace, ref, now, blameFrom])).count;
    });
    return freed ?? 0;
  };

  const forget = (owner: string, now: number): Promise<number | undefined> =>
    unlessLocked(async (on) => {
      const [row] = (await on.run(remove, [namespace, toText(owner)])).rows;
      return row ? (await on.run(free, [namespace, readNumber(row, 'ref', `owner ${owner}`), now])).count : 0;
    });

  /** How much longer an owner is waited for whose lock is free: as far as anybody saw for how long, and what its machine knows. */
  const waitsFor = ({ unlocked_for: ms, process }: SqlRow): number => {
    const seen = process === null || process === undefined ? undefined : processes.look(process);
    if (seen === 'gone') return 0;
    // It lost nothing but its connection: its lease alone speaks for it.
    return seen === 'alive' ? Number.POSITIVE_INFINITY : sessionGraceMs - Number(ms ?? 0);
  };

  return {
    async join(owner, { leaseUntil }) {
      // The connection comes first: an owner that others see without a lock is one that they take for dead.
      await sessions?.open();
      const locks = sessions !== undefined && client.sessionLocks;
      const process = (locks && processes.own) || null;
      const [row] = (await client.run(insert, [namespace, toText(owner), leaseUntil, locks, process])).rows;
      await sessions?.hold(owner, readNumber(row ?? {}, 'ref', `owner ${owner}`));
    },
    async renew(owner, leaseUntil) {
      sessions?.check();
      return (await client.run(updateLease, [namespace, toText(owner), leaseUntil])).count > 0;
    },
    async leave(owner, now) {
      let freed: number | undefined;
      for (let times = 0; freed === undefined && times < LEAVES; times++) freed = await forget(owner, now);
      if (freed !== undefined && freed > 0) onFreed();
      await sessions?.release(owner);
      if (freed !== undefined) return;
      const message = 'the owner could not leave, because others hold what it has to change; it is soon taken for dead';
      throw new OrchestratorError('OVERLOADED', message, { retryable: true });
    },
    async listHeld(owner) {
      const { rows } = await client.run(selectHeld, [namespace, toText(owner)]);
      return rows.map((row) => ({ executionId: readId(row), epoch: readNumber(row, 'epoch', `execution ${row.id}`) }));
    },
    async recover(owner, now, blameFrom = Number.MAX_SAFE_INTEGER) {
      const { rows } = await client.run(selectDoubtful, [namespace, toText(owner), now]);
      const dead: { readonly ref: number; readonly ended: boolean }[] = [];
      const unlocked: number[] = [];
      const locked: number[] = [];
      let leftMs = Number.POSITIVE_INFINITY;
      for (const row of rows) {
        const ref = readNumber(row, 'ref', 'an owner');
        const ended = readBoolean(row, 'ended');
        const isUnlocked = readBoolean(row, 'unlocked');
        const waitsMs = isUnlocked ? waitsFor(row) : 0;
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
      for (const { ref, ended } of dead) freed += await takeOver(ref, ended, now, blameFrom);
      if (freed > 0) onFreed();
      return Number.isFinite(leftMs) ? { freed, againInMs: leftMs } : { freed };
    },
  };
}
