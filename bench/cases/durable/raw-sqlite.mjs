/**
 * A bare SQLite file, synchronous=FULL: each record in its own commit (`each`), or the records of all running executions in one
 * commit for each turn of the event loop (`group`).
 */

import { join } from 'node:path';
import { checkRecords, fiveSteps } from '../../durable/journal.mjs';
import { openSqlite } from '../../durable/open-sqlite.mjs';

export async function setup({ argument, folder }) {
  const file = join(folder, 'raw.db');
  const database = await openSqlite(file);
  database.exec(
    'CREATE TABLE records (execution TEXT, position INTEGER, data TEXT, PRIMARY KEY (execution, position)) WITHOUT ROWID',
  );
  const insert = database.prepare('INSERT INTO records VALUES (?, ?, ?)');
  const put = argument === 'group' ? groupCommit(database, insert) : async (...record) => void insert.run(...record);
  return {
    file,
    note: database.driver,
    put,
    run: fiveSteps(put),
    check(executions) {
      const count = database.prepare(
        `SELECT count(*) AS records, count(*) FILTER (WHERE position = 6 AND data LIKE '%"x":5}') AS right FROM records`,
      );
      checkRecords(count.all()[0], executions);
    },
    close: () => database.close(),
  };
}

function groupCommit(database, insert) {
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  let waiting = [];
  const flush = () => {
    const batch = waiting;
    waiting = [];
    begin.run();
    for (const { record } of batch) insert.run(...record);
    commit.run();
    for (const { stored } of batch) stored();
  };
  return (...record) =>
    new Promise((stored) => {
      if (waiting.length === 0) setImmediate(flush);
      waiting.push({ record, stored });
    });
}
