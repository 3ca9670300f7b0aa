/** Opens a bare SQLite file with the driver and the durability settings that the library uses in this process. */

import { createRequire } from 'node:module';
import { entry } from '../library.mjs';

/** @returns `{ driver, exec(sql), prepare(sql): { run(...values), all(...values) }, close() }` */
export async function openSqlite(path) {
  const { driver, database } = await open(path);
  database.exec('PRAGMA busy_timeout = 5000');
  const journal = ask(database, 'journal_mode = WAL');
  // Set each time: a build of SQLite may use NORMAL for a file that already has a write-ahead log.
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

/** @returns the name of the driver */
export async function sqliteDriver() {
  return (await nodeSqlite()) ? 'node:sqlite' : 'libsql';
}

/** Node.js has its own driver from 22.13 on. For older versions the library uses the package `libsql`, resolved from its own folder. */
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
