/** Opens the connections of an SQL database in SQLite: those to a file, or the one of the app. */

import { isOrchestratorError, messageOf, OrchestratorError } from '../../../../engine/base/errors.ts';
import type { Json } from '../../../../engine/base/json/json.ts';
import { withoutValues } from '../../sql/sql-rules.ts';
import { isCorrupt, isTransient, READ_ONLY, resultCode, toStorageError } from '../drivers/failure.ts';
import { loadSqlite, type SqliteDriverName } from '../drivers/load-driver.ts';
import { type DatabaseHandle, type SqliteHandle, toHandle } from './database-handle.ts';
import type { SqliteDatabaseSettings } from './database-options.ts';

export interface Opened {
  readonly handle: DatabaseHandle;
  /** Opens another connection to the file; undefined where there is only one. */
  readonly another: (() => DatabaseHandle) | undefined;
  /** The app has forbidden writes on its connection. */
  readonly readsOnly: boolean;
}

/** @throws NOT_CONFIGURED for what can't be opened, and for a file that holds the data of an orchestrator */
export async function openConnections({
  path: file,
  database,
  busyTimeoutMs,
  driver,
}: SqliteDatabaseSettings): Promise<Opened> {
  if (database) return check(toHandle(database), 'the database of the app', undefined);
  const path = file as string;
  const { name, module } = await loadSqlite(driver, 'sqliteDatabase');
  const create = () => {
    const handle = toHandle(openFile(name, module, path));
    handle.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}; PRAGMA foreign_keys = ON`);
    return handle;
  };
  let handle: DatabaseHandle;
  try {
    handle = create();
  } catch (error) {
    const message = `sqliteDatabase: can't open ${path} (${messageOf(error)}); its folder must exist and be writable`;
    throw new OrchestratorError('NOT_CONFIGURED', message, { cause: error });
  }
  try {
    const another = path === ':memory:' ? undefined : create;
    const opened = check(handle, path, another);
    // With a log, an export that takes long does not stop writers. A file that the app has made keeps its own mode.
    if (another && first(handle, 'SELECT page_count FROM pragma_page_count') === 0) {
      handle.exec('PRAGMA journal_mode = WAL');
    }
    return opened;
  } catch (error) {
    handle.close();
    throw isOrchestratorError(error) ? error : toFailure(error, path, []);
  }
}

function openFile(name: SqliteDriverName, module: unknown, path: string): SqliteHandle {
  type Open = new (path: string, options?: object) => SqliteHandle;
  const { DatabaseSync, Database, default: Libsql } = module as Readonly<Record<string, Open>>;
  if (name === 'node:sqlite') return new (DatabaseSync as Open)(path);
  if (name === 'libsql') return new (Libsql as Open)(path);
  return new (Database as Open)(path, { create: true, readwrite: true });
}

/** @throws NOT_CONFIGURED for a file that holds the data of an orchestrator, and for one that is not a database */
function check(handle: DatabaseHandle, where: string, another: Opened['another']): Opened {
  const own = "SELECT count(*) AS own FROM sqlite_master WHERE name = 'ensemble_executions'";
  if (first(handle, own) !== 0) {
    const message = `sqliteDatabase: ${where} holds the data of sqliteStorage, which no statement may reach; use another file`;
    throw new OrchestratorError('NOT_CONFIGURED', message);
  }
  return { handle, another, readsOnly: first(handle, 'SELECT query_only FROM pragma_query_only') === 1 };
}

function first(handle: DatabaseHandle, sql: string): number {
  const [row = {}] = handle.read(sql).rows([]) as Iterable<object>;
  return Number(Object.values(row)[0]);
}

/** The error of a statement, without the values that were bound. */
export function toFailure(error: unknown, where: string, values: readonly Json[]): unknown {
  if (isOrchestratorError(error)) return error;
  if (isTransient(error) || isCorrupt(error)) return toStorageError(error, where);
  const message =
    resultCode(error) === READ_ONLY
      ? 'the statement changes data, or the database can only be read; `action: execute` changes data'
      : withoutValues(messageOf(error).replace(/^(fts5: .*?) near .*$/s, '$1'), values);
  return new OrchestratorError('AGENT_FAILED', `SQL: ${message}`, { cause: error, retryable: false });
}
