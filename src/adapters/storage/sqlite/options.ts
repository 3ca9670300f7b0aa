/** The options of the SQLite storage, and their checks. */

import { refuseUnknownKeys } from '../../../engine/base/refuse-unknown-keys.ts';
import { isPlainText } from '../../../engine/ports/data.ts';
import { DRIVERS, type SqliteDriverName } from './load-driver.ts';

export interface SqliteStorageOptions {
  /**
   * The file. It is created if it does not exist; its folder must exist. `:memory:` for a store that ends with the
   * process.
   */
  readonly path: string;
  /** Separates apps that share one file: each app sees only its own data. At most 128 characters. Default `default`. */
  readonly namespace?: string | undefined;
  /**
   * How long a write waits, in ms, while another process writes. After that it fails with OVERLOADED. Default 5,000.
   */
  readonly busyTimeoutMs?: number | undefined;
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

/** @throws TypeError for an invalid option */
export function readOptions(options: SqliteStorageOptions): Settings {
  refuseUnknownKeys(options, ['path', 'namespace', 'busyTimeoutMs', 'synchronous', 'driver'], 'sqliteStorage');
  const { path, namespace = 'default', busyTimeoutMs = 5000, synchronous = 'full', driver } = options;
  const fail = (message: string): never => {
    throw new TypeError(`sqliteStorage: ${message}`);
  };
  if (typeof path !== 'string' || path === '' || !isPlainText(path)) fail('path must name a file, or be `:memory:`');
  // A scheme has at least two letters; one letter is a drive.
  if (/^[a-z][a-z0-9+.-]+:/i.test(path)) fail(`path must name a file, not a URL: ${path}`);
  if (typeof namespace !== 'string' || namespace === '' || namespace.length > 128 || !isPlainText(namespace)) {
    fail('namespace must be text of 1 to 128 characters');
  }
  if (!Number.isSafeInteger(busyTimeoutMs) || busyTimeoutMs < 0 || busyTimeoutMs > 600_000) {
    fail(`busyTimeoutMs must be a whole number from 0 to 600,000, not ${busyTimeoutMs}`);
  }
  if (synchronous !== 'full' && synchronous !== 'normal')
    fail(`synchronous must be full or normal, not ${synchronous}`);
  if (driver !== undefined && !DRIVERS.includes(driver))
    fail(`driver must be one of ${DRIVERS.join(', ')}, not ${driver}`);
  return { path, namespace, busyTimeoutMs, synchronous, driver };
}
