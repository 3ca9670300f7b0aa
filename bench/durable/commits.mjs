/** Counts the commits that wrote something, whatever library made them, without a word from it. */

import { readFileSync } from 'node:fs';
import pg from 'pg';

/** Where SQLite counts the transactions that went into its write-ahead log: `iChange` of the header of its index. */
const CHANGE_COUNTER = 8;

/** @param file - a SQLite file with a write-ahead log, opened by this process */
export function sqliteCommits(file) {
  return {
    read: async () => readFileSync(`${file}-shm`).readUInt32LE(CHANGE_COUNTER),
    close: async () => {},
  };
}

/** Each transaction that writes takes one number, those that only read take none. The numbers are counted by the whole server. */
export async function postgresCommits(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return {
    read: async () =>
      Number((await client.query('SELECT pg_snapshot_xmax(pg_current_snapshot()) AS next')).rows[0].next),
    close: () => client.end(),
  };
}
