/**
 * The connection that a process keeps open. Its locks show that the process lives, and it receives notifications of
 * work.
 *
 * | the connection | then |
 * |---|---|
 * | is lost | another connection is opened soon, the locks are taken again, and the listeners are called, because notifications may be lost |
 * | can't be opened | it is tried again as long as it is needed; meanwhile the workers live by their leases |
 * | is open, but the server still keeps an old connection with the locks | the locks are tried again until they are free |
 */

import { OrchestratorError } from '../../../../engine/base/errors.ts';
import { type SqlClient, type SqlSession, statement } from '../drivers/driver.ts';
import { lockKey } from './migrations.ts';
import type { Names } from './names.ts';

export interface Sessions {
  /** Opens the connection if it is not open. @throws what the client throws */
  open(): Promise<void>;
  /** Takes the lock of a worker, and takes it again on each new connection. */
  hold(worker: string, ref: number): Promise<void>;
  /** Releases the lock of a worker. */
  release(worker: string): Promise<void>;
  /**
   * Calls the listener when another process may have made work. If the connection can be opened, this works as soon as
   * the method returns.
   * @returns a function that stops it
   */
  watch(listener: () => void): Promise<() => void>;
  /** Checks whether the connection still answers. */
  check(): void;
  /** Marks the notifications of this process, so that it can ignore them. */
  readonly tag: string;
  close(): Promise<void>;
}

/**
 * The pauses are short, because a worker is considered dead when its lock is free for `sessionGraceMs` (by default
 * 1,500 ms).
 */
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 250;

export function createSessions(client: SqlClient, names: Names, channel: string): Sessions {
  // Clears the time since when the lock was seen free. If another transaction holds the row, the next renewal clears
  // it: nothing waits here.
  const lock = statement(
    `WITH tried AS MATERIALIZED (SELECT pg_try_advisory_lock(${lockKey(names.schema)}, $1::integer) AS taken), seen AS (
      UPDATE ${names.owners} SET unlocked_at = NULL WHERE ref IN (
        SELECT ref FROM ${names.owners} WHERE ref = $1::integer AND unlocked_at IS NOT NULL AND (SELECT taken FROM tried)
        FOR NO KEY UPDATE SKIP LOCKED
      )
    )
    SELECT taken, EXISTS (SELECT FROM ${names.owners} WHERE ref = $1::integer) AS known FROM tried`,
    ['taken', 'known'],
  );
  const unlock = statement(`SELECT pg_advisory_unlock(${lockKey(names.schema)}, $1::integer) AS freed`, ['freed']);
  const alive = statement('SELECT 1 AS one', ['one']);
  const listeners = new Set<() => void>();
  /** The workers with their part of the lock's key. `taken`: the open connection has the lock. */
  const workers = new Map<string, { readonly ref: number; taken: boolean }>();
  let session: SqlSession | undefined;
  let opening: Promise<SqlSession> | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pauseMs = FIRST_PAUSE_MS;
  let closed = false;

  const notifyAll = () => {
    for (const listener of listeners) listener();
  };

  const onNotify = (payload: string) => {
    // The process that made the work knows of it, so it ignores its own notification; but two engines in it notify each
    // other.
    if (listeners.size > 1 || payload === '' || payload !== tag()) notifyAll();
  };

  const tag = () => (session?.pid === undefined ? '' : String(session.pid));

  const isNeeded = () => !closed && (workers.size > 0 || listeners.size > 0);

  const retryLater = () => {
    if (timer !== undefined || !isNeeded()) return;
    timer = setTimeout(
      () => {
        timer = undefined;
        if (isNeeded()) restore().then(() => undefined, retryLater);
      },
      pauseMs * (0.5 + Math.random() / 2),
    );
    // The timer does not keep the process running.
    (timer as { unref?(): void }).unref?.();
    pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
  };

  const restore = async () => {
    const missed = session === undefined;
    await openSession();
    await takeLocks();
    if (missed) notifyAll();
  };

  const openSession = (): Promise<SqlSession> => {
    if (session) return Promise.resolve(session);
    let isLost = false;
    const onLost = () => {
      isLost = true;
      session = undefined;
      for (const worker of workers.values()) worker.taken = false;
      retryLater();
    };
    opening ??= client
      .openSession(channel, { onNotify, onLost })
      .then((opened) => {
        // The connection can be lost while it is opened.
        if (isLost)
          throw new OrchestratorError('OVERLOADED', 'the connection to Postgres was lost', { retryable: true });
        session = opened;
        pauseMs = FIRST_PAUSE_MS;
        return opened;
      })
      .finally(() => {
        opening = undefined;
      });
    return opening;
  };

  const takeLocks = async () => {
    if (!client.sessionLocks) return;
    for (const [worker, held] of [...workers]) {
      const on = session;
      if (held.taken || !on) continue;
      const [row] = (await on.run(lock, [held.ref])).rows;
      held.taken = row?.taken === 't' && on === session;
      // The worker was considered dead and removed, so it needs no lock.
      if (row?.known === 'f' && workers.get(worker) === held) workers.delete(worker);
    }
    if ([...workers.values()].some(({ taken }) => !taken)) retryLater();
  };

  return {
    async open() {
      await openSession();
    },
    async hold(worker, ref) {
      const known = workers.get(worker);
      if (known?.ref !== ref) workers.set(worker, { ref, taken: false });
      try {
        await restore();
      } catch (error) {
        workers.delete(worker);
        throw error;
      }
    },
    async release(worker) {
      const held = workers.get(worker);
      workers.delete(worker);
      // When this fails, the connection is lost and the lock is free.
      if (held?.taken && session) await session.run(unlock, [held.ref]).catch(() => undefined);
    },
    async watch(listener) {
      // The same function may be passed twice; each is stopped by itself.
      const own = () => listener();
      listeners.add(own);
      await openSession().catch(retryLater);
      return () => {
        listeners.delete(own);
      };
    },
    check() {
      // The client drops a connection that does not answer, and calls `onLost`.
      session?.run(alive, []).catch(() => undefined);
    },
    get tag() {
      return tag();
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      await opening?.catch(() => undefined);
      await session?.close();
    },
  };
}
