/** Chooses the driver, and loads the package `pg` when the storage is to connect by itself. */

import { messageOf, OrchestratorError } from '../../../engine/errors.ts';
import type { Settings } from './options.ts';
import { type PgPool, pgClient } from './pg-client.ts';
import { pgliteClient } from './pglite-client.ts';
import { type ImportModule, postgresJsClient } from './postgres-js-client.ts';
import type { SqlClient } from './sql-client.ts';

// The name is handed in, so that no bundler looks for a package that an app with a pool of its own may not have.
const importModule: ImportModule = (name) => import(/* @vite-ignore */ /* webpackIgnore: true */ name);

interface PgModule {
  readonly Pool: new (options: Readonly<Record<string, unknown>>) => PgPool;
}

/** Connections of a pool of our own; one more is kept for locks and for listening. */
const MOST_CONNECTIONS = 10;

/** @throws NOT_CONFIGURED when the package `pg` is needed and can't be loaded */
export async function openClient(settings: Settings, load: ImportModule = importModule): Promise<SqlClient> {
  const { source, sessions, queryTimeoutMs } = settings;
  const options = { prepares: sessions, queryTimeoutMs };
  if (source.pool) return pgClient(source.pool, false, options);
  if (source.sql) return postgresJsClient(source.sql, options, load);
  if (source.pglite) return pgliteClient(source.pglite, options);
  const { Pool } = await loadPg(load);
  const pool = new Pool({
    connectionString: source.connectionString,
    max: MOST_CONNECTIONS + (sessions ? 1 : 0),
    connectionTimeoutMillis: queryTimeoutMs,
    // What is idle does not keep the process from ending.
    allowExitOnIdle: true,
    keepAlive: true,
    application_name: 'ensemble-orchestrator',
  });
  return pgClient(pool, true, options);
}

async function loadPg(load: ImportModule): Promise<PgModule> {
  let found: { readonly default?: PgModule } & Partial<PgModule>;
  try {
    found = (await load('pg')) as typeof found;
  } catch (cause) {
    const isMissing = /Cannot find (package|module) '?"?pg\b/.test(messageOf(cause));
    const message = isMissing
      ? 'postgresStorage: the package pg is not installed; `npm install pg`, or hand in a pool, an instance of postgres or of PGlite'
      : `postgresStorage: the package pg is there but can't be loaded (${messageOf(cause)}); install it again`;
    throw new OrchestratorError('NOT_CONFIGURED', message, { cause, details: { driver: 'pg' } });
  }
  return found.Pool ? (found as PgModule) : (found.default as PgModule);
}
