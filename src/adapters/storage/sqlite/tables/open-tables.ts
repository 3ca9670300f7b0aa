/** Opens a file with its tables, and closes it. */

import type { SqlDriver } from '../drivers/driver.ts';
import { fileLock } from '../drivers/file-lock.ts';
import { closeDatabase, type DatabaseOptions, openDatabase } from '../drivers/open-database.ts';
import { createTables, type Tables } from './create-tables.ts';

export interface OpenTables extends Tables {
  close(): void;
}

/** @throws what `openDatabase` throws */
export function openTables(driver: SqlDriver, options: DatabaseOptions, namespace: string): OpenTables {
  const connection = openDatabase(driver, options);
  const lock = fileLock(driver, connection, namespace);
  return {
    ...createTables(connection, namespace, lock),
    close() {
      try {
        closeDatabase(connection);
      } finally {
        // Executions that it still holds go to the next worker, after the file is closed.
        lock.release();
      }
    },
  };
}
