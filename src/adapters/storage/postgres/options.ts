/** The options of the Postgres storage, and their checks. */

import {
  duration,
  flag,
  hasMethods,
  like,
  type OptionChecks,
  optional,
  readOptions,
  wholeNumber,
  withMethods,
} from '../../../engine/base/read-options.ts';
import { type Duration, toMs } from '../../../engine/base/time/duration.ts';
import { NAMESPACE } from '../sql/namespace.ts';
import type { PgPool } from './drivers/pg-driver.ts';
import type { PgliteDatabase } from './drivers/pglite-driver.ts';
import type { PostgresJsSql } from './drivers/postgres-js-driver.ts';

/** Exactly one of the first four options says where the database is. */
export interface PostgresStorageOptions {
  /**
   * A `Pool` of the package `pg`. With sessions, the storage keeps one of its connections. The pool stays open when the
   * storage closes.
   */
  readonly pool?: PgPool | undefined;
  /**
   * An instance of the package `postgres`. For locks and transactions, the storage opens further connections with the
   * same package. The instance stays open when the storage closes.
   */
  readonly sql?: PostgresJsSql | undefined;
  /** An instance of PGlite. It stays open when the storage closes. */
  readonly pglite?: PgliteDatabase | undefined;
  /** `postgres://user:password@host:5432/database`; the package `pg` must be installed. */
  readonly url?: string | undefined;
  /**
   * The schema. It is created if it does not exist. A lower-case letter, then lower-case letters, digits and `_`.
   * Default `ensemble`.
   */
  readonly schema?: string | undefined;
  /**
   * Separates apps that share one schema: each app sees only its own data. At most 128 characters. Default `default`.
   */
  readonly namespace?: string | undefined;
  /**
   * Whether connections last. Then a lock shows within two seconds that a process has died, and processes notify each
   * other of work. Set `false` behind a pooler that shares connections between transactions: then only leases show that
   * a process lives, processes poll for work, and no statement is prepared. Default `true`.
   */
  readonly sessions?: boolean | undefined;
  /**
   * How long the others wait, in ms, after a process has lost its connection, before they continue its executions. In
   * this time the process can open another connection and keep its executions. A process that is known to be gone is
   * not waited for, and nobody waits longer than the lease. All processes need the same value. Increase it where a
   * pooler or a network takes longer to come back. Default 1,500.
   */
  readonly sessionGraceMs?: number | undefined;
  /**
   * How long a statement may take: milliseconds, or text; 1 s more for each MiB that it sends. After that, the call
   * fails with OVERLOADED. Default `10s`.
   */
  readonly timeout?: Duration | undefined;
}

export interface Settings {
  readonly source: Source;
  readonly schema: string;
  readonly namespace: string;
  readonly sessions: boolean;
  readonly sessionGraceMs: number;
  readonly queryTimeoutMs: number;
}

/** The options of which exactly one says where the database is. */
const SOURCES = ['pool', 'sql', 'pglite', 'url'] as const;
type Source = Pick<PostgresStorageOptions, (typeof SOURCES)[number]>;

/** The checks of the options that `postgresDatabase` has too. */
export const SOURCE_CHECKS: OptionChecks<Source & Pick<PostgresStorageOptions, 'timeout'>> = {
  pool: withMethods('a Pool of `pg`', 'connect', 'on', 'end'),
  sql: optional<PostgresJsSql>(
    'an instance of `postgres`',
    (value) => hasMethods(value, ['unsafe', 'reserve']) && Boolean(value.options),
  ),
  pglite: withMethods('an instance of PGlite', 'query', 'transaction', 'listen'),
  url: optional('an address that begins with postgres:// or postgresql://', like(/^postgres(ql)?:\/\//)),
  timeout: duration(100, 600_000),
};

const CHECKS: OptionChecks<PostgresStorageOptions> = {
  ...SOURCE_CHECKS,
  schema: optional(
    '1 to 48 lower-case letters, digits and `_`, a letter first, and not begin with pg_',
    like(/^(?!pg_)[a-z][a-z0-9_]{0,47}$/),
  ),
  namespace: NAMESPACE,
  sessions: flag,
  sessionGraceMs: wholeNumber(500, 600_000),
};

/** @throws TypeError for an invalid option */
export function readPostgresOptions(options: PostgresStorageOptions): Settings {
  const {
    schema = 'ensemble',
    namespace = 'default',
    sessions = true,
  } = readOptions('postgresStorage', options, CHECKS);
  const { sessionGraceMs = 1500, timeout = '10s' } = options;
  const fail = (message: string): never => {
    throw new TypeError(`postgresStorage: ${message}`);
  };
  const source = readSource('postgresStorage', options);
  if (options.sessionGraceMs !== undefined && !sessions)
    fail('`sessionGraceMs` has no effect with sessions: false, where only the lease counts; leave one of them out');
  const max = options.pool?.options?.max;
  if (sessions && typeof max === 'number' && max < 2) {
    fail(
      `\`pool\` must have at least 2 connections, not ${max}: the storage keeps one for locks and notifications; or set sessions: false`,
    );
  }
  return {
    source,
    schema,
    namespace,
    sessions,
    sessionGraceMs,
    queryTimeoutMs: toMs(timeout),
  };
}

/** @throws TypeError unless exactly one of the options says where the database is */
export function readSource(who: string, options: Source): Source {
  const given = SOURCES.filter((source) => options[source] !== undefined);
  if (given.length !== 1) {
    const found = given.length === 0 ? 'none' : given.join(' and ');
    throw new TypeError(`${who}: one of ${SOURCES.join(', ')} must say where the database is, not ${found}`);
  }
  const { pool, sql, pglite, url } = options;
  const source = { ...(pool && { pool }), ...(sql && { sql }), ...(pglite && { pglite }) };
  return url === undefined ? source : { url };
}
