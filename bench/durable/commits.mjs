/** Counts the commits that wrote something, from outside of the library that made them. */

import { readFileSync } from 'node:fs';
import pg from 'pg';

/** Position of `iChange` in the index of SQLite's write-ahead log: the number of transactions in the log. */
const CHANGE_COUNTER = 8;

/** @param file - a SQLite file with a write-ahead log, opened by this process */
export function sqliteCommits(file) {
  return {
    read: async () => readFileSync(`${file}-shm`).readUInt32LE(CHANGE_COUNTER),
    close: async () => {},
  };
}

/** Every transaction that writes takes a number; one that only reads takes none. The numbers are those of the whole server. */
export async function postgresCommits(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return {
    read: async () =>
      Number((await client.query('SELECT pg_snapshot_xmax(pg_current_snapshot()) AS next')).rows[0].next),
    close: () => client.end(),
  };
}
