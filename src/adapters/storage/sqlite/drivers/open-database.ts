/** Opens a file as a database: refuses other files, sets and checks durability, brings the schema up to date. */

import { messageOf, OrchestratorError } from '../../../../engine/base/errors.ts';
import { migrate, readVersion } from '../tables/migrations.ts';
import type { SqlConnection, SqlDriver } from './driver.ts';
import { isBusy, NOT_A_DATABASE, resultCode } from './failure.ts';

export interface DatabaseOptions {
  readonly path: string;
  readonly busyTimeoutMs: number;
  readonly synchronous: 'full' | 'normal';
}

/** The answers of `PRAGMA synchronous`. */
const SYNCHRONOUS = { normal: 1, full: 2 } as const;
/**
 * Several processes may switch a new file to the write-ahead log at the same time. Each retry first waits for a lock.
 */
const WAL_TRIES = 100;

/**
 * @throws NOT_CONFIGURED when the file can't be opened, is not a database, is newer than this library, or can't be made
 *   durable; a refused file is not changed
 */
export function openDatabase(driver: SqlDriver, options: DatabaseOptions): SqlConnection {
  const { path, busyTimeoutMs } = options;
  const store = `sqliteStorage: ${path}`;
  const connection = openFile(driver, path);
  try {
    // The version is checked before anything is written: the switch to WAL already changes the file.
    connection.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    readVersion(connection, store);
    setDurability(connection, options);
    migrate(connection, store);
    return connection;
  } catch (error) {
    connection.close();
    if (resultCode(error) !== NOT_A_DATABASE) throw error;
    const message = `sqliteStorage: ${path} is not a SQLite database; name another file. Nothing was changed`;
    throw new OrchestratorError('NOT_CONFIGURED', message, { cause: error });
  }
}

function openFile(driver: SqlDriver, path: string): SqlConnection {
  try {
    return driver(path);
  } catch (error) {
    const message = `sqliteStorage: can't open ${path} (${messageOf(error)}); its folder must exist and be writable`;
    throw new OrchestratorError('NOT_CONFIGURED', message, { cause: error });
  }
}

function setDurability(connection: SqlConnection, { path, synchronous }: DatabaseOptions): void {
  const mode = path === ':memory:' ? 'memory' : 'wal';
  const journal = mode === 'wal' ? switchToWal(connection) : ask(connection, 'journal_mode');
  if (journal !== mode) {
    const message = `sqliteStorage: ${path} can't have a write-ahead log (its journal is \`${String(journal)}\`); put it on a local disk`;
    throw new OrchestratorError('NOT_CONFIGURED', message);
  }
  connection.exec(`PRAGMA synchronous = ${synchronous.toUpperCase()}`);
  // Some builds of SQLite set a connection with a write-ahead log to NORMAL, which loses the last commits at a power
  // failure.
  const answer = ask(connection, 'synchronous');
  if (answer !== SYNCHRONOUS[synchronous]) {
    const message = `sqliteStorage: the driver does not keep \`synchronous=${synchronous}\` (it answers ${String(answer)}); use another driver`;
    throw new OrchestratorError('NOT_CONFIGURED', message);
  }
}

// Here SQLite reports a busy file at once instead of waiting. So wait for the write lock, and try again.
function switchToWal(connection: SqlConnection): unknown {
  for (let tries = 1; ; tries++) {
    try {
      return ask(connection, 'journal_mode = WAL');
    } catch (error) {
      if (!isBusy(error) || tries >= WAL_TRIES) throw error;
      connection.exec('BEGIN IMMEDIATE; ROLLBACK');
    }
  }
}

function ask(connection: SqlConnection, pragma: string): unknown {
  return Object.values(connection.prepare(`PRAGMA ${pragma}`).all([])[0] ?? {})[0];
}

/** Closes the connection. Before that, moves the write-ahead log into the file if no other process uses the file. */
export function closeDatabase(connection: SqlConnection): void {
  try {
    connection.exec('PRAGMA busy_timeout = 0');
    connection.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all([]);
  } catch {
    // Nothing is lost: what could not be moved stays in the log and is read from there.
  }
  connection.close();
}
