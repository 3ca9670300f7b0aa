/**
 * The connection that a process keeps for itself: its lock says that the process is alive, and on it the process hears of work.
 *
 * | the connection | then |
 * |---|---|
 * | is lost | another one is opened within moments, its locks are taken again, and the listeners are called: they may have missed something |
 * | can't be had | it is tried again for as long as anybody needs it; until then leases speak for the owners |
 * | is held by a session of this process that died without the server's notice | its locks are tried again until they are free |
 */

import { OrchestratorError } from '../../../engine/errors.ts';
import { lockKey } from './migrations.ts';
import type { Names } from './names.ts';
import { type SqlClient, type SqlSession, statement } from './sql-client.ts';

export interface Sessions {
  /** Opens the connection, if it isn't. @throws what the client throws */
  open(): Promise<void>;
  /** Takes the lock of an owner, and keeps it over all connections. */
  hold(owner: string, ref: number): Promise<void>;
  /** Gives the lock of an owner back. */
  release(owner: string): Promise<void>;
  /**
   * Calls the listener when another process has made work, perhaps; from when this returns, if the connection can be had.
   * @returns stops it
   */
  watch(listener: () => void): Promise<() => void>;
  /** Looks whether the connection still answers. */
  check(): void;
  /** Marks what this process sends, so that it does not hear itself. */
  readonly tag: string;
  close(): Promise<void>;
}

/** Others take an owner for dead whose lock is free for `sessionGraceMs`, 1,500 ms by default. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 250;

export function createSessions(client: SqlClient, names: Names, channel: string): Sessions {
  // What was seen while it was free counts no more. A row that others hold is left to the next renewal: nothing waits here.
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
  /** Owners, each with the half of its lock's key; `taken` on the connection that is open. */
  const owners = new Map<string, { readonly ref: number; taken: boolean }>();
  let session: SqlSession | undefined;
  let opening: Promise<SqlSession> | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pauseMs = FIRST_PAUSE_MS;
  let closed = false;

  const tellAll = () => {
    for (const listener of listeners) listener();
  };

  const onNotify = (payload: string) => {
    // A listener of this process is told by its own engine; two of them tell each other this way too.
    if (listeners.size > 1 || payload === '' || payload !== tag()) tellAll();
  };

  const tag = () => (session?.pid === undefined ? '' : String(session.pid));

  const isNeeded = () => !closed && (owners.size > 0 || listeners.size > 0);

  const again = () => {
    if (timer !== undefined || !isNeeded()) return;
    timer = setTimeout(
      () => {
        timer = undefined;
        if (isNeeded()) restore().then(() => undefined, again);
      },
      pauseMs * (0.5 + Math.random() / 2),
    );
    // A process that has nothing else to do may end.
    (timer as { unref?(): void }).unref?.();
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  };

  const restore = async () => {
    const missed = session === undefined;
    await openSession();
    await takeLocks();
    if (missed) tellAll();
  };

  const openSession = (): Promise<SqlSession> => {
    if (session) return Promise.resolve(session);
    let isLost = false;
    const onLost = () => {
      isLost = true;
      session = undefined;
      for (const owner of owners.values()) owner.taken = false;
      again();
    };
    opening ??= client
      .openSession(channel, { onNotify, onLost })
      .then((opened) => {
        // It may be lost in the moment in which it is opened.
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
    for (const [owner, held] of [...owners]) {
      const on = session;
      if (held.taken || !on) continue;
      const [row] = (await on.run(lock, [held.ref])).rows;
      held.taken = row?.taken === 't' && on === session;
      // It was taken for dead: its lock says nothing any more.
      if (row?.known === 'f' && owners.get(owner) === held) owners.delete(owner);
    }
    if ([...owners.values()].some(({ taken }) => !taken)) again();
  };

  return {
    async open() {
      await openSession();
    },
    async hold(owner, ref) {
      const known = owners.get(owner);
      if (known?.ref !== ref) owners.set(owner, { ref, taken: false });
      try {
        await restore();
      } catch (error) {
        owners.delete(owner);
        throw error;
      }
    },
    async release(owner) {
      const held = owners.get(owner);
      owners.delete(owner);
      // When this fails the connection is lost, and the lock with it.
      if (held?.taken && session) await session.run(unlock, [held.ref]).catch(() => undefined);
    },
    async watch(listener) {
      // One function may be given twice; each is stopped by itself.
      const own = () => listener();
      listeners.add(own);
      await openSession().catch(again);
      return () => {
        listeners.delete(own);
      };
    },
    check() {
      // A connection that does not answer is given up by its client, which then calls `onLost`.
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
