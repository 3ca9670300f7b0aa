/** Files for the tests of SQLite: one for each test, all deleted after the last test. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { SqlConnection } from '../../src/adapters/storage/sqlite/drivers/driver.ts';
import { loadDriver } from '../../src/adapters/storage/sqlite/drivers/load-driver.ts';

const folder = mkdtempSync(join(tmpdir(), 'ensemble-sqlite-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;

/** The path of a new file. */
export function newFile(): string {
  files += 1;
  return join(folder, `store-${files}.db`);
}

/** Works on a file from outside, as a user with a shell would. */
export async function withFile<T>(path: string, work: (connection: SqlConnection) => T | Promise<T>): Promise<T> {
  const connection = (await loadDriver(undefined))(path);
  try {
    return await work(connection);
  } finally {
    connection.close();
  }
}
