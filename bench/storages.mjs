/** Fresh storages for cases. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importEntry } from './library.mjs';

/** @param kind - `memory`, `sqlite` or `postgres` @returns undefined for the default, which is in memory */
export async function storageOf(kind) {
  if (kind === 'sqlite') {
    const { sqliteStorage } = await importEntry('sqlite');
    const folder = mkdtempSync(join(tmpdir(), 'bench-storage-'));
    process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
    return sqliteStorage({ path: join(folder, 'store.db') });
  }
  if (kind !== 'postgres') return undefined;
  const { postgresStorage } = await importEntry('postgres');
  const url = process.env.POSTGRES_URL ?? `postgres://${process.env.USER ?? 'postgres'}@127.0.0.1:5432/postgres`;
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('DROP SCHEMA IF EXISTS bench_limits CASCADE');
  await client.end();
  return postgresStorage({ url, schema: 'bench_limits' });
}

/** A case that is run 50 times at once. */
export function together(work) {
  const atATime = 50;
  return { units: atATime, run: () => Promise.all(Array.from({ length: atATime }, work)) };
}
