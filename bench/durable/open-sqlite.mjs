/** A bare SQLite file with the driver that the library picks in this process, durable as the library makes it. */

import { createRequire } from 'node:module';
import { entry } from '../library.mjs';

/** @returns `{ driver, exec(sql), prepare(sql): { run(...values), all(...values) }, close() }` */
export async function openSqlite(path) {
  const { driver, database } = await open(path);
  database.exec('PRAGMA busy_timeout = 5000');
  const journal = ask(database, 'journal_mode = WAL');
  // Set at each opening: a build of SQLite may put a file that has a write-ahead log already to NORMAL.
  database.exec('PRAGMA synchronous = FULL');
  const synchronous = ask(database, 'synchronous');
  if (journal !== 'wal' || synchronous !== 2) throw new Error(`journal is ${journal}, synchronous is ${synchronous}`);
  return {
    driver,
    exec: (sql) => database.exec(sql),
    prepare: (sql) => database.prepare(sql),
    close: () => database.close(),
  };
}

/** Which driver that is. */
export async function sqliteDriver() {
  return (await nodeSqlite()) ? 'node:sqlite' : 'libsql';
}

/** Node.js has its own from 22.13 on; before, the library takes the package `libsql`, which is found from where the library is. */
async function open(path) {
  const own = await nodeSqlite();
  if (own) return { driver: 'node:sqlite', database: new own.DatabaseSync(path) };
  const Database = createRequire(entry)('libsql');
  return { driver: 'libsql', database: new Database(path) };
}

function nodeSqlite() {
  return import('node:sqlite').catch(() => undefined);
}

function ask(database, pragma) {
  return Object.values(database.prepare(`PRAGMA ${pragma}`).all()[0])[0];
}
