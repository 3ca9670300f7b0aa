/** Chooses the driver. Loads the package `pg` when the app gives a connection string. */

import { messageOf, OrchestratorError } from '../../../../engine/base/errors.ts';
import type { Settings } from '../options.ts';
import type { SqlClient } from './driver.ts';
import { type PgPool, pgDriver } from './pg-driver.ts';
import { pgliteDriver } from './pglite-driver.ts';
import { type ImportModule, postgresJsDriver } from './postgres-js-driver.ts';

// The package's name is a variable, so that no bundler looks for a package that the app may not have.
const importModule: ImportModule = (name) => import(/* @vite-ignore */ /* webpackIgnore: true */ name);

interface PgModule {
  readonly Pool: new (options: Readonly<Record<string, unknown>>) => PgPool;
}

/** The connections of a pool that the storage opens. With sessions, one more is kept for locks and notifications. */
export const MAX_CONNECTIONS = 10;

/** @throws NOT_CONFIGURED when the package `pg` is needed and can't be loaded */
export async function openClient(
  settings: Pick<Settings, 'source' | 'sessions' | 'queryTimeoutMs'>,
  load: ImportModule = importModule,
): Promise<SqlClient> {
  const { source, sessions, queryTimeoutMs } = settings;
  const options = { prepares: sessions, queryTimeoutMs };
  if (source.pool) return pgDriver(source.pool, false, options);
  if (source.sql) return postgresJsDriver(source.sql, options, load);
  if (source.pglite) return pgliteDriver(source.pglite, options);
  const { Pool } = await loadPg(load);
  const pool = new Pool({
    connectionString: source.url,
    max: MAX_CONNECTIONS + (sessions ? 1 : 0),
    connectionTimeoutMillis: queryTimeoutMs,
    // An idle connection does not keep the process running.
    allowExitOnIdle: true,
    keepAlive: true,
    application_name: 'ensemble-orchestrator',
  });
  return pgDriver(pool, true, options);
}

async function loadPg(load: ImportModule): Promise<PgModule> {
  let found: { readonly default?: PgModule } & Partial<PgModule>;
  try {
    found = (await load('pg')) as typeof found;
  } catch (cause) {
    const isMissing = /Cannot find (package|module) '?"?pg\b/.test(messageOf(cause));
    const message = isMissing
      ? 'Postgres: the package pg is not installed; `npm install pg`, or pass a pool, an instance of postgres or of PGlite'
      : `Postgres: the package pg is there but can't be loaded (${messageOf(cause)}); install it again`;
    throw new OrchestratorError('NOT_CONFIGURED', message, { cause, details: { driver: 'pg' } });
  }
  return found.Pool ? (found as PgModule) : (found.default as PgModule);
}
