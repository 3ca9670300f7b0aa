/** Opens this library's storage for the measurements that run in several processes. */

import pg from 'pg';
import { importEntry } from '../library.mjs';
import { unavailable } from './unavailable.mjs';

/** @param kind - `sqlite` or `postgres`: the name of an entry of the library */
export async function importStore(kind) {
  const entry = await importEntry(kind);
  if (!entry) throw unavailable(`this build has no entry \`ensemble-orchestrator/${kind}\``);
  return entry;
}

/**
 * @param kind - `sqlite`, at a path, or `postgres`, at a URL
 * @returns `storage`, and `close()`, which closes what the storage does not close
 */
export async function openStore(kind, where) {
  const entry = await importStore(kind);
  if (kind === 'sqlite') return { storage: entry.sqliteStorage({ path: where }), close: async () => {} };
  const pool = new pg.Pool({ connectionString: where });
  return { storage: entry.postgresStorage({ pool }), close: () => pool.end() };
}
