/**
 * The public names for storage in a SQLite file.
 *
 * @module ensemble-orchestrator/sqlite
 */

export type { SqliteDriverName } from './adapters/storage/sqlite/load-driver.ts';
export type { SqliteStorageOptions } from './adapters/storage/sqlite/options.ts';
export { sqliteStorage } from './adapters/storage/sqlite/sqlite-storage.ts';
