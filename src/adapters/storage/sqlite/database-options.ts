/** The options of `sqliteDatabase`, and their checks. */

import { refuseUnknownKeys } from '../../../engine/base/refuse-unknown-keys.ts';
import { isPlainText } from '../../../engine/ports/data.ts';
import type { SqliteHandle } from './database-handle.ts';
import { DRIVERS, type SqliteDriverName } from './load-driver.ts';

/** Exactly one of `path` and `database` says where the data is. */
export interface SqliteDatabaseOptions {
  /** The file. It is created if it does not exist; its folder must exist. `:memory:` for a database that ends with the process. */
  readonly path?: string | undefined;
  /** An open database of `node:sqlite`, `better-sqlite3`, `libsql` or `bun:sqlite`. It stays open. */
  readonly database?: SqliteHandle | undefined;
  /** For `path`: how long a statement waits, in ms, while another process writes. Default 5,000. */
  readonly busyTimeoutMs?: number | undefined;
  /** For `path`. Default: the runtime's own driver, otherwise the package `libsql`. */
  readonly driver?: SqliteDriverName | undefined;
}

const KNOWN = ['path', 'database', 'busyTimeoutMs', 'driver'];

/** @throws TypeError for an invalid option */
export function readDatabaseOptions(options: SqliteDatabaseOptions): SqliteDatabaseOptions {
  const fail = (message: string): never => {
    throw new TypeError(`sqliteDatabase: ${message}`);
  };
  refuseUnknownKeys(options, KNOWN, 'sqliteDatabase');
  const { path, database, busyTimeoutMs = 5000, driver } = options;
  if ((path === undefined) === (database === undefined)) fail('either path or database must say where the data is');
  if (database !== undefined) {
    if (typeof database?.prepare !== 'function' || typeof database.exec !== 'function')
      fail('database must be an open database, with prepare and exec');
    if (options.busyTimeoutMs !== undefined || driver !== undefined)
      fail('busyTimeoutMs and driver are for path; an open database has its own');
    return { database };
  }
  if (typeof path !== 'string' || path === '' || !isPlainText(path)) fail('path must name a file, or be `:memory:`');
  // A scheme has at least two letters; one letter is a drive.
  if (/^[a-z][a-z0-9+.-]+:/i.test(path as string)) fail(`path must name a file, not a URL: ${path}`);
  if (!Number.isSafeInteger(busyTimeoutMs) || busyTimeoutMs < 0 || busyTimeoutMs > 600_000)
    fail(`busyTimeoutMs must be a whole number from 0 to 600,000, not ${busyTimeoutMs}`);
  if (driver !== undefined && !DRIVERS.includes(driver))
    fail(`driver must be one of ${DRIVERS.join(', ')}, not ${driver}`);
  return { path: path as string, busyTimeoutMs, ...(driver && { driver }) };
}
