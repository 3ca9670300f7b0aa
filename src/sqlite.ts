/**
 * The public names for storage in a SQLite file.
 *
 * @module ensemble-orchestrator/sqlite
 */

export type { SqliteHandle } from './adapters/storage/sqlite/database-handle.ts';
export type { SqliteDatabaseOptions } from './adapters/storage/sqlite/database-options.ts';
export type { SqliteDriverName } from './adapters/storage/sqlite/load-driver.ts';
export type { SqliteStorageOptions } from './adapters/storage/sqlite/options.ts';
export { type OpenSqlDatabase, sqliteDatabase } from './adapters/storage/sqlite/sqlite-database.ts';
export { sqliteStorage } from './adapters/storage/sqlite/sqlite-storage.ts';
