/** The options of `sqliteDatabase`, and their checks. */

import { readOptions, withMethods } from '../../../../engine/base/read-options.ts';
import { type Duration, toMs } from '../../../../engine/base/time/duration.ts';
import type { SqliteDriverName } from '../drivers/load-driver.ts';
import { FILE_CHECKS } from '../options.ts';
import type { SqliteHandle } from './database-handle.ts';

/** Exactly one of `path` and `database` says where the data is. */
export interface SqliteDatabaseOptions {
  /** The file. It is created if it does not exist; its folder must exist. `:memory:` for a database that ends with the process. */
  readonly path?: string | undefined;
  /** An open database of `node:sqlite`, `better-sqlite3`, `libsql` or `bun:sqlite`. It stays open. */
  readonly database?: SqliteHandle | undefined;
  /** For `path`: how long a statement waits while another process writes: milliseconds, or text. Default `5s`. */
  readonly timeout?: Duration | undefined;
  /** For `path`. Default: the runtime's own driver, otherwise the package `libsql`. */
  readonly driver?: SqliteDriverName | undefined;
}

export interface SqliteDatabaseSettings extends Omit<SqliteDatabaseOptions, 'timeout'> {
  readonly busyTimeoutMs?: number;
}

/** @throws TypeError for an invalid option */
export function readDatabaseOptions(options: SqliteDatabaseOptions): SqliteDatabaseSettings {
  const {
    path,
    database,
    timeout = '5s',
    driver,
  } = readOptions('sqliteDatabase', options, {
    ...FILE_CHECKS,
    database: withMethods('an open database, with prepare and exec', 'prepare', 'exec'),
  });
  if ((path === undefined) === (database === undefined))
    throw new TypeError('sqliteDatabase: either `path` or `database` must say where the data is');
  if (database !== undefined) {
    if (options.timeout !== undefined || driver !== undefined)
      throw new TypeError('sqliteDatabase: `timeout` and `driver` are for `path`; an open database has its own');
    return { database };
  }
  return { path: path as string, busyTimeoutMs: toMs(timeout), ...(driver && { driver }) };
}
