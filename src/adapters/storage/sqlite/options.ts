/** The options of the SQLite storage, and their checks. */

import { duration, oneOf, optional, readOptions, requiredOption } from '../../../engine/base/read-options.ts';
import { type Duration, toMs } from '../../../engine/base/time/duration.ts';
import { isPlainText } from '../../../engine/storage/data.port.ts';
import { NAMESPACE } from '../sql/namespace.ts';
import { DRIVERS, type SqliteDriverName } from './drivers/load-driver.ts';

export interface SqliteStorageOptions {
  /**
   * The file. It is created if it does not exist; its folder must exist. `:memory:` for a store that ends with the
   * process.
   */
  readonly path: string;
  /** Separates apps that share one file: each app sees only its own data. At most 128 characters. Default `default`. */
  readonly namespace?: string | undefined;
  /**
   * How long a write waits while another process writes: milliseconds, or text. After that it fails with OVERLOADED. Default `5s`.
   */
  readonly timeout?: Duration | undefined;
  /**
   * `full`: stored data survives a power failure. `normal`: stored data survives a crash of the process, but a power
   * failure may lose the last moments; many times faster. Default `full`.
   */
  readonly synchronous?: 'full' | 'normal' | undefined;
  /** Default: the runtime's own driver, otherwise the package `libsql`. */
  readonly driver?: SqliteDriverName | undefined;
}

interface Settings {
  readonly path: string;
  readonly namespace: string;
  readonly busyTimeoutMs: number;
  readonly synchronous: 'full' | 'normal';
  readonly driver: SqliteDriverName | undefined;
}

const FILE_RULE = 'the name of a file, or `:memory:`, and not a URL';
/** The checks of the options that `sqliteDatabase` has too. */
export const FILE_CHECKS = {
  path: optional(FILE_RULE, isFileName),
  timeout: duration(1, 600_000),
  driver: oneOf(...DRIVERS),
};

// A scheme has at least two letters; one letter is a drive.
function isFileName(path: string): boolean {
  return typeof path === 'string' && path !== '' && isPlainText(path) && !/^[a-z][a-z0-9+.-]+:/i.test(path);
}

/** @throws TypeError for an invalid option */
export function readSqliteOptions(options: SqliteStorageOptions): Settings {
  const given = readOptions('sqliteStorage', options, {
    ...FILE_CHECKS,
    path: requiredOption(FILE_RULE, isFileName),
    namespace: NAMESPACE,
    synchronous: oneOf('full', 'normal'),
  });
  const { path, namespace = 'default', timeout = '5s', synchronous = 'full', driver } = given;
  return { path, namespace, busyTimeoutMs: toMs(timeout), synchronous, driver };
}
