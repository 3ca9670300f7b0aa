/**
 * The published suite on the SQLite of a runtime, as a file and as a database that the app has opened. Prints what failed as JSON.
 * `sql-program.mjs [better-sqlite3]`, which takes that package instead.
 */

import { dataSuite } from 'ensemble-orchestrator/conformance';
import { sqliteDatabase } from 'ensemble-orchestrator/sqlite';

const cases = [];
const test = { describe: (_title, body) => body(), it: (title, body) => cases.push({ title, body }) };
const Database = await database(globalThis.process.argv[2]);
const ofApp = () => ({ sql: sqliteDatabase({ database: new Database(':memory:') }) });
const ofPath = () => ({ sql: sqliteDatabase({ path: ':memory:' }) });
dataSuite({ name: 'a database of the app', create: ofApp, kinds: ['sql'], test });
if (globalThis.process.argv[2] === undefined) dataSuite({ name: 'a path', create: ofPath, kinds: ['sql'], test });

const failures = [];
for (const { title, body } of cases) {
  try {
    await body();
  } catch (error) {
    failures.push(`${title}\n${error?.stack ?? error}`);
  }
}
console.log(JSON.stringify({ passed: cases.length - failures.length, failures }));

async function database(name) {
  if (name !== undefined) return (await import(name)).default;
  if ('Bun' in globalThis) return (await import('bun:sqlite')).Database;
  return (await import('node:sqlite')).DatabaseSync;
}
