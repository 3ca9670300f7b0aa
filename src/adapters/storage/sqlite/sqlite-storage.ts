/** The SQLite storage: all data in one file, durable when a call returns. The first use opens the file. */

import { OrchestratorError } from '../../../engine/base/errors.ts';
import type { MaybePromise } from '../../../engine/operation/operation.port.ts';
import type { Storage, TransactionStore } from '../../../engine/storage/storage.port.ts';
import { callerConnection } from './drivers/caller-connection.ts';
import type { SqlConnection, SqlDriver } from './drivers/driver.ts';
import { toStorageError } from './drivers/failure.ts';
import { fileLock } from './drivers/file-lock.ts';
import { loadDriver } from './drivers/load-driver.ts';
import { closeDatabase, type DatabaseOptions, openDatabase } from './drivers/open-database.ts';
import { readSqliteOptions, type SqliteStorageOptions } from './options.ts';
import { createTables, type Tables } from './tables/create-tables.ts';
import { type OnTables, toStorage } from './tables/to-storage.ts';

/**
 * Keeps executions, definitions, state, tokens, values and objects in one SQLite file. One process at a time works on
 * the file. It holds a lock on a small file next to it, which ends with the process. Other processes are clients: they
 * read, queue executions and request cancellation.
 *
 * The first use opens the file. Until the file is open, methods return promises; after that, they return their results
 * at once.
 *
 * @param options - see {@link SqliteStorageOptions}
 * @throws TypeError for an invalid option. The first use throws NOT_CONFIGURED when the file can't be opened, is not a
 *   database, or is newer than this library, or when no driver is available. `workers.register` throws CONFLICT while
 *   another process works on the file.
 *
 * @example
 * ```ts
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { sqliteStorage } from 'ensemble-orchestrator/sqlite';
 *
 * const orchestrator = createOrchestrator({
 *   ensembles: ['name: hello\nflow:\n  - { agent: greet, operation: code, config: { script: greet } }'],
 *   scripts: { greet: () => 'hello' },
 *   storage: sqliteStorage({ path: ':memory:' }), // a file, in your app
 * });
 * const { id } = await orchestrator.execute('hello');
 * console.log((await orchestrator.executions.get(id)).status); // completed
 * await orchestrator.close();
 * ```
 */
export function sqliteStorage(options: SqliteStorageOptions): Storage {
  const { path, namespace, busyTimeoutMs, synchronous, driver } = readSqliteOptions(options);
  let tables: OpenTables | undefined;
  let opening: Promise<OpenTables> | undefined;
  let closed = false;

  const open = async (): Promise<OpenTables> => {
    const load = await loadDriver(driver);
    try {
      return openTables(load, { path, busyTimeoutMs, synchronous }, namespace);
    } catch (error) {
      throw toStorageError(error, path);
    }
  };

  // If the file can't be opened, the next call tries again: the cause may be gone.
  const opened = (): Promise<OpenTables> => {
    if (closed) {
      return Promise.reject(
        new OrchestratorError('OVERLOADED', `the SQLite storage of ${path} is closed and accepts no calls`),
      );
    }
    opening ??= open().then(
      (made) => {
        if (!closed) tables = made;
        return made;
      },
      (error: unknown) => {
        opening = undefined;
        throw error;
      },
    );
    return opening;
  };

  const on: OnTables = (work, row) =>
    tables ? attempt(work, tables, path, row) : opened().then((made) => attempt(work, made, path, row));

  const close = () => {
    if (closed) return undefined;
    closed = true;
    const made = tables;
    tables = undefined;
    if (made) return made.close();
    // Earlier calls wait for the same promise, and run first.
    return opening?.then(
      (late) => late.close(),
      () => undefined,
    );
  };

  return {
    ...toStorage(on, CAPABILITIES, close),
    // Errors are those of the caller's database: it may look at their codes.
    within: async (transaction) => (tables ?? (await opened())).within(transaction),
  };
}

const CAPABILITIES = { sharedPromises: true, timers: true, groupedCommits: true, shared: true, oneWriter: true };

// A function of its own, because it is called for every write.
function attempt<T>(
  work: (tables: OpenTables) => MaybePromise<T>,
  tables: OpenTables,
  path: string,
  row: string | undefined,
): MaybePromise<T> {
  try {
    return work(tables);
  } catch (error) {
    throw toStorageError(error, path, row);
  }
}

export interface OpenTables extends Tables {
  within(transaction: unknown): TransactionStore;
  close(): void;
}

/** @throws what `openDatabase` throws */
export function openTables(driver: SqlDriver, options: DatabaseOptions, namespace: string): OpenTables {
  const connection = openDatabase(driver, options);
  const lock = fileLock(driver, connection, namespace);
  const callers = new WeakMap<object, SqlConnection>();
  const ofCallers = new WeakMap<SqlConnection, Tables>();
  return {
    ...createTables(connection, namespace, lock),
    within(transaction) {
      const caller = callerConnection(transaction, connection, callers);
      const made = ofCallers.get(caller) ?? createTables(caller, namespace, lock);
      ofCallers.set(caller, made);
      return made;
    },
    close() {
      try {
        closeDatabase(connection);
      } finally {
        // Executions that it still holds go to the next worker, after the file is closed.
        lock.release();
      }
    },
  };
}
