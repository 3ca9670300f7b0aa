/** A SQLite file, or an open database of the app, as an SQL database for `operation: storage`. */

import { OrchestratorError } from '../../../../engine/base/errors.ts';
import type { Json } from '../../../../engine/base/json/json.ts';
import { nextTurn } from '../../../../engine/base/time/next-turn.ts';
import type { SqlDatabase, SqlStatement } from '../../../../engine/storage/data.port.ts';
import { checkSql, type SqlUse } from '../../sql/sql-rules.ts';
import { type Opened, openConnections, toFailure } from './database-connections.ts';
import type { BoundValue, DatabaseHandle } from './database-handle.ts';
import { readDatabaseOptions, type SqliteDatabaseOptions } from './database-options.ts';
import { readPage, readParts, toParams, withPlaceholders } from './database-rows.ts';

/** An SQL database that keeps connections. */
export interface OpenSqlDatabase extends SqlDatabase {
  /** Closes the connections that it opened. */
  close(): Promise<void>;
}

/**
 * Makes a SQLite database available to `operation: storage`, with `type: sql` (or `d1`). Give it data of your own: a file with the data
 * of `sqliteStorage` is refused. The first use opens the file.
 *
 * A statement that runs can't be interrupted, because SQLite blocks the process. Its agent's timeout counts between the parts of an
 * export.
 *
 * @param options - see {@link SqliteDatabaseOptions}
 * @throws TypeError for an invalid option. The first use throws NOT_CONFIGURED if the file can't be opened, or no driver is available
 *
 * @example
 * ```ts
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { sqliteDatabase } from 'ensemble-orchestrator/sqlite';
 *
 * const sum = 'SELECT ${input.a} + ${input.b} AS sum';
 * const orchestrator = createOrchestrator({
 *   ensembles: [
 *     { name: 'add', flow: [{ agent: 'q', operation: 'storage', config: { type: 'sql', action: 'query', query: sum } }] },
 *   ],
 *   bindings: { sql: sqliteDatabase({ path: ':memory:' }) }, // './orders.db' in an app
 * });
 * const { agents } = await orchestrator.execute('add', { a: 1, b: 2 });
 * console.log(agents[0]?.output); // { results: [ { sum: 3 } ], count: 1 }
 * ```
 */
export function sqliteDatabase(options: SqliteDatabaseOptions): OpenSqlDatabase {
  const settings = readDatabaseOptions(options);
  const where = settings.path ?? 'the database of the app';
  let opening: Promise<Opened> | undefined;
  let closed = false;
  /** Streams on the one connection, for which writes wait. */
  const streams = new Set<Promise<void>>();

  const open = (): Promise<Opened> => {
    if (closed) throw new OrchestratorError('OVERLOADED', `sqliteDatabase: ${where} is closed`);
    opening ??= openConnections(settings).catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };

  return {
    kind: 'sql',
    async query(given, { limit, offset, signal }) {
      const statement = prepare(given, 'read');
      const opened = await open();
      signal.throwIfAborted();
      const read = () => readPage(opened.handle, statement.sql, statement.params, { limit, offset });
      return attempt(given.values, where, () => readOnly(opened, read));
    },
    async execute(given, { signal }) {
      const { sql, params } = prepare(given, 'write');
      const { handle } = await open();
      while (streams.size > 0) await Promise.race([...streams, rejectOnAbort(signal)]);
      signal.throwIfAborted();
      return attempt(given.values, where, () => change(handle, sql, params));
    },
    async *stream(given, { signal }) {
      const statement = prepare(given, 'read');
      const opened = await open();
      const handle = opened.another?.() ?? opened.handle;
      let end = () => {};
      const ended = new Promise<void>((resolve) => {
        end = resolve;
      });
      if (!opened.another) streams.add(ended);
      const read = readParts(handle, statement.sql, statement.params);
      const all = () => [...read].values();
      const parts = handle.isExclusive
        ? attempt(given.values, where, () => readOnly({ ...opened, handle }, all))
        : read;
      // SQLite checks when a statement begins that it only reads: the app may write on its connection between two parts.
      const next = () => attempt(given.values, where, () => readOnly({ ...opened, handle }, () => parts.next()));
      try {
        for (let part = next(); part.value; part = next()) {
          yield part.value;
          await new Promise<void>((resolve) => nextTurn(resolve));
          signal.throwIfAborted();
        }
      } finally {
        parts.return?.();
        streams.delete(ended);
        end();
        if (opened.another) handle.close();
      }
    },
    async close() {
      closed = true;
      const opened = await opening?.catch(() => undefined);
      if (settings.path !== undefined) opened?.handle.close();
    },
  };
}

interface Prepared {
  readonly sql: string;
  readonly params: readonly BoundValue[];
}

function prepare(statement: SqlStatement, use: SqlUse): Prepared {
  return { sql: withPlaceholders(checkSql(statement, use, 'sqlite')), params: toParams(statement.values) };
}

function attempt<T>(values: readonly Json[], where: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw toFailure(error, where, values);
  }
}

/** Rejects when the signal aborts. */
function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/** SQLite itself refuses a write in `work`. */
function readOnly<T>({ handle, readsOnly }: Opened, work: () => T): T {
  if (readsOnly) return work();
  handle.exec('PRAGMA query_only = ON');
  try {
    return work();
  } finally {
    handle.exec('PRAGMA query_only = OFF');
  }
}

const COUNTS = 'SELECT total_changes() AS total, changes() AS last';

function change(handle: DatabaseHandle, sql: string, params: readonly BoundValue[]): { readonly changes: number } {
  const count = () => [...handle.read(COUNTS).rows([])][0] as { readonly total: bigint; readonly last: bigint };
  handle.exec('BEGIN IMMEDIATE');
  try {
    const before = count();
    handle.run(sql, params);
    const after = count();
    handle.exec('COMMIT');
    // A statement such as CREATE leaves the count of the statement before it.
    return { changes: Number(after.total) === Number(before.total) ? 0 : Number(after.last) };
  } catch (error) {
    try {
      handle.exec('ROLLBACK');
    } catch {
      // SQLite rolls back by itself after some errors. Then nothing is left to undo.
    }
    throw error;
  }
}
