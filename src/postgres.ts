/** The public names for storage in a Postgres database. */

export type { PostgresStorageOptions } from './adapters/storage/postgres/options.ts';
export type { PgPool, PgPoolClient, PgQuery, PgResult } from './adapters/storage/postgres/pg-client.ts';
export type {
  PgliteDatabase,
  PgliteOptions,
  PgliteResult,
  PgliteRunner,
} from './adapters/storage/postgres/pglite-client.ts';
export type { PostgresJsSql } from './adapters/storage/postgres/postgres-js-client.ts';
export { postgresStorage } from './adapters/storage/postgres/postgres-storage.ts';
