/**
 * The public names for storage in a SQLite file.
 *
 * @module ensemble-orchestrator/sqlite
 */

export type { SqliteHandle } from '../adapters/storage/sqlite/database/database-handle.ts';
export type { SqliteDatabaseOptions } from '../adapters/storage/sqlite/database/database-options.ts';
export { type OpenSqlDatabase, sqliteDatabase } from '../adapters/storage/sqlite/database/sqlite-database.ts';
export type { SqliteDriverName } from '../adapters/storage/sqlite/drivers/load-driver.ts';
export type { SqliteStorageOptions } from '../adapters/storage/sqlite/options.ts';
export { sqliteStorage } from '../adapters/storage/sqlite/sqlite-storage.ts';
