/**
 * The public names for storage in a Postgres database.
 *
 * @module ensemble-orchestrator/postgres
 */

export {
  type PostgresDatabase,
  type PostgresDatabaseOptions,
  postgresDatabase,
} from '../adapters/storage/postgres/database/postgres-database.ts';
export type { PgPool, PgPoolClient, PgQuery, PgResult } from '../adapters/storage/postgres/drivers/pg-driver.ts';
export type {
  PgliteAnswer,
  PgliteDatabase,
  PgliteOptions,
  PgliteResult,
  PgliteRunner,
} from '../adapters/storage/postgres/drivers/pglite-driver.ts';
export type { PostgresJsSql } from '../adapters/storage/postgres/drivers/postgres-js-driver.ts';
export type { PostgresStorageOptions } from '../adapters/storage/postgres/options.ts';
export { postgresStorage } from '../adapters/storage/postgres/postgres-storage.ts';
