/** The driver for a transaction that the app has begun, on a connection of the app to the same file. */

import { OrchestratorError } from '../../../../engine/base/errors.ts';
import { type BunDatabase, bunConnection } from './bun-driver.ts';
import type { SqlConnection } from './driver.ts';
import { type LibsqlDatabase, libsqlConnection } from './libsql-driver.ts';
import { type NodeDatabase, nodeConnection } from './node-driver.ts';

type Fields = Readonly<Record<string, unknown>>;

/**
 * @param given - a `DatabaseSync` of node:sqlite, a `Database` of better-sqlite3, libsql or bun:sqlite, or what Drizzle makes of one
 * @param own - a connection of the storage
 * @param known - the connections that were made of databases before
 * @throws INVALID_REQUEST for anything else, for a database that is not in a transaction, and for another file
 */
export function callerConnection(
  given: unknown,
  own: SqlConnection,
  known: WeakMap<object, SqlConnection>,
): SqlConnection {
  const database = databaseOf(given);
  const connection = known.get(database) ?? withSavepoints(connectionOf(database as Fields));
  known.set(database, connection);
  if (!isInTransaction(connection))
    throw refused('the database is not in a transaction: begin one with `BEGIN IMMEDIATE`');
  const [file, expected] = [connection, own].map(fileOf);
  if (file === '' || file !== expected) throw refused('the database is not the file of the storage');
  return connection;
}

function databaseOf(given: unknown): object {
  if (typeof given !== 'object' || given === null) throw unknownHandle();
  // Drizzle: the database of its driver.
  const inner = ((given as Fields).session as Fields | undefined)?.client;
  if (typeof inner === 'object' && inner !== null) return databaseOf(inner);
  const isDatabase = ['prepare', 'exec'].every((name) => typeof (given as Fields)[name] === 'function');
  if (!isDatabase) throw unknownHandle();
  return given;
}

function connectionOf(database: Fields): SqlConnection {
  if (typeof database.sync === 'function') return libsqlConnection(database as unknown as LibsqlDatabase);
  if (typeof database.query === 'function') return bunConnection(database as unknown as BunDatabase);
  return nodeConnection(database as unknown as NodeDatabase);
}

/** What the storage does as a whole is undone alone. */
function withSavepoints(connection: SqlConnection): SqlConnection {
  return {
    ...connection,
    transaction(work) {
      connection.exec('SAVEPOINT ensemble_work');
      try {
        const result = work();
        connection.exec('RELEASE ensemble_work');
        return result;
      } catch (error) {
        connection.exec('ROLLBACK TO ensemble_work; RELEASE ensemble_work');
        throw error;
      }
    },
    close() {},
  };
}

function isInTransaction(connection: SqlConnection): boolean {
  try {
    connection.exec('BEGIN');
  } catch (error) {
    if (/within a transaction/.test(String((error as Partial<Error>).message))) return true;
    throw error;
  }
  connection.exec('ROLLBACK');
  return false;
}

function fileOf(connection: SqlConnection): string {
  const main = connection
    .prepare('PRAGMA database_list')
    .all([])
    .find(({ name }) => name === 'main');
  return String(main?.file ?? '');
}

function unknownHandle(): OrchestratorError {
  return refused('it must be a database of node:sqlite, better-sqlite3, libsql or bun:sqlite in which `BEGIN` has run');
}

function refused(why: string): OrchestratorError {
  return new OrchestratorError('INVALID_REQUEST', `\`transaction\`: ${why}`);
}
