/** The options of the Postgres storage, and what they must be. */

import { isPlainText } from '../../../engine/ports/data.ts';
import type { PgPool } from './pg-client.ts';
import type { PgliteDatabase } from './pglite-client.ts';
import type { PostgresJsSql } from './postgres-js-client.ts';

/** Where the database is: one of the four. */
export interface PostgresStorageOptions {
  /** A `Pool` of the package `pg`; with sessions, one of its connections is kept. It stays open when the storage closes. */
  readonly pool?: PgPool;
  /** An instance of the package `postgres`; others are opened beside it for locks and transactions, by the same package. It stays open when the storage closes. */
  readonly sql?: PostgresJsSql;
  /** An instance of PGlite. It stays open when the storage closes. */
  readonly pglite?: PgliteDatabase;
  /** `postgres://user:password@host:5432/database`; the package `pg` must be installed. */
  readonly connectionString?: string;
  /** The schema, made when it is not there: a lower-case letter, then such letters, digits and `_`. Default `ensemble`. */
  readonly schema?: string;
  /** Separates apps that share one schema: each sees its own data alone. At most 128 characters. Default `default`. */
  readonly namespace?: string;
  /**
   * Whether connections last: then a lock tells within two seconds that a process has died, and processes tell each other of
   * work. `false` behind a pooler that shares connections between transactions: then leases speak for processes, nobody
   * tells, and no statement is prepared. Default `true`.
   */
  readonly sessions?: boolean;
  /**
   * How long others wait, in ms, before they take over from a process whose connection is lost, unless it is known to be gone:
   * it opens another one meanwhile, and keeps its executions. The same in all processes. Longer where a pooler or a network
   * takes longer to come back; no longer than the lease in any case. Default 1,500.
   */
  readonly sessionGraceMs?: number;
  /** How long a statement may take, in ms; then the call fails with OVERLOADED. Default 10,000. */
  readonly queryTimeoutMs?: number;
}

export interface Settings {
  readonly source: Pick<PostgresStorageOptions, 'pool' | 'sql' | 'pglite' | 'connectionString'>;
  readonly schema: string;
  readonly namespace: string;
  readonly sessions: boolean;
  readonly sessionGraceMs: number;
  readonly queryTimeoutMs: number;
}

const SOURCES = ['pool', 'sql', 'pglite', 'connectionString'] as const;

/** @throws TypeError when an option is not what it must be */
export function readOptions(options: PostgresStorageOptions): Settings {
  const { schema = 'ensemble', namespace = 'default', sessions = true } = options;
  const { sessionGraceMs = 1500, queryTimeoutMs = 10_000 } = options;
  const fail = (message: string): never => {
    throw new TypeError(`postgresStorage: ${message}`);
  };
  const given = SOURCES.filter((source) => options[source] !== undefined);
  if (given.length !== 1) {
    const found = given.length === 0 ? 'none' : given.join(' and ');
    fail(`one of ${SOURCES.join(', ')} must say where the database is, not ${found}`);
  }
  const { pool, sql, pglite, connectionString } = options;
  if (pool !== undefined && !hasMethods(pool, ['connect', 'on', 'end'])) fail('pool must be a Pool of `pg`');
  if (sql !== undefined && !(hasMethods(sql, ['unsafe', 'reserve']) && sql.options))
    fail('sql must be an instance of `postgres`');
  if (pglite !== undefined && !hasMethods(pglite, ['query', 'transaction', 'listen']))
    fail('pglite must be an instance of PGlite');
  if (connectionString !== undefined && !/^postgres(ql)?:\/\//.test(connectionString))
    fail('connectionString must begin with postgres:// or postgresql://');
  if (typeof schema !== 'string' || !/^(?!pg_)[a-z][a-z0-9_]{0,47}$/.test(schema)) {
    fail('schema must be 1 to 48 lower-case letters, digits and `_`, a letter first, and not begin with pg_');
  }
  if (typeof namespace !== 'string' || namespace === '' || namespace.length > 128 || !isPlainText(namespace))
    fail('namespace must be text of 1 to 128 characters');
  if (typeof sessions !== 'boolean') fail(`sessions must be true or false, not ${sessions}`);
  if (!Number.isSafeInteger(sessionGraceMs) || sessionGraceMs < 500 || sessionGraceMs > 600_000)
    fail(`sessionGraceMs must be a whole number from 500 to 600,000, not ${sessionGraceMs}`);
  if (options.sessionGraceMs !== undefined && !sessions)
    fail('sessionGraceMs says nothing with sessions: false, where the lease alone counts; leave one of them out');
  if (!Number.isSafeInteger(queryTimeoutMs) || queryTimeoutMs < 100 || queryTimeoutMs > 600_000)
    fail(`queryTimeoutMs must be a whole number from 100 to 600,000, not ${queryTimeoutMs}`);
  const most = pool?.options?.max;
  if (sessions && typeof most === 'number' && most < 2) {
    fail(
      `pool must have at least 2 connections, not ${most}: one is kept for locks and for listening; or set sessions: false`,
    );
  }
  const source = { ...(pool && { pool }), ...(sql && { sql }), ...(pglite && { pglite }) };
  return {
    source: connectionString === undefined ? source : { connectionString },
    schema,
    namespace,
    sessions,
    sessionGraceMs,
    queryTimeoutMs,
  };
}

function hasMethods(value: object, names: readonly string[]): boolean {
  return names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function');
}
