/** The storage in a Cloudflare Durable Object: the tables of the SQLite storage in the object's own database. */

import { joinBytes } from '../../../engine/base/bytes/join-bytes.ts';
import { isOrchestratorError, messageOf, OrchestratorError } from '../../../engine/base/errors.ts';
import type { DurableObjectContext } from '../../../engine/host/host.port.ts';
import type { ObjectStore } from '../../../engine/storage/data.port.ts';
import type { Storage } from '../../../engine/storage/storage.port.ts';
import { createTransaction, type SqlConnection } from './drivers/driver.ts';
import { durableObjectConnection, MAX_VALUE_BYTES } from './drivers/durable-object-driver.ts';
import { createTables, type Tables } from './tables/create-tables.ts';
import { migrate } from './tables/migrations.ts';
import { type OnTables, toStorage } from './tables/to-storage.ts';
import { memoryLock } from './tables/worker-lock.ts';

/** The name of the store in error messages. */
const STORE = 'durableObjectStorage: the database of this Durable Object';

/**
 * Keeps executions, definitions, state, tokens, values and objects in the SQLite database of a Cloudflare Durable
 * Object. The class of the object must have SQLite: list it in `new_sqlite_classes` of the Worker's configuration.
 * Create one storage for each instance of the class.
 *
 * The first use creates the tables. All methods return their results at once. Cloudflare holds back everything that the
 * object sends, such as answers and outgoing requests, until the writes before it are durable. So nobody outside of the
 * object sees the effect of a write that can be lost.
 *
 * A value has at most 2 MiB of JSON text, and the input and the output of an execution have at most 2 MB together.
 * Larger values are refused with INVALID_OUTPUT, and an execution with a larger input with INVALID_INPUT. An object
 * of `objects` may be larger.
 *
 * @param ctx - the first argument of the class's constructor
 * @throws TypeError when `ctx` is not that of a Durable Object. The first use throws NOT_CONFIGURED when the class has no
 *   SQLite, or when a newer version of this library has written to the database
 *
 * @example
 * ```ts no-run
 * import { createHandler, createOrchestrator } from 'ensemble-orchestrator';
 * import { durableObjectStorage, toDurableObject } from 'ensemble-orchestrator/workers';
 *
 * export const Workflows = toDurableObject((ctx) => {
 *   const orchestrator = createOrchestrator({ storage: durableObjectStorage(ctx) });
 *   return { orchestrator, handler: createHandler(orchestrator) };
 * });
 * ```
 */
export function durableObjectStorage(ctx: Pick<DurableObjectContext, 'storage'>): Storage {
  if (typeof ctx?.storage?.sql?.exec !== 'function')
    throw new TypeError(
      'durableObjectStorage: pass the `ctx` of a Durable Object, the first argument of its constructor',
    );
  const connection = durableObjectConnection(ctx);
  let tables: Tables | undefined;
  let closed = false;

  const open = (): Tables => {
    migrate(connection, STORE);
    const made = createTables(connection, 'default', memoryLock());
    return { ...made, objects: splitObjects(connection, made.objects) };
  };

  const on: OnTables = (work) => {
    if (closed)
      throw new OrchestratorError('OVERLOADED', 'the storage of the Durable Object is closed and accepts no calls');
    try {
      tables ??= open();
      return work(tables);
    } catch (error) {
      throw toStorageError(error);
    }
  };

  const capabilities = { sharedPromises: true, timers: true, groupedCommits: false, shared: false };
  const close = () => {
    closed = true;
  };
  return { ...toStorage(on, capabilities, close), wakeAt: createAlarm(ctx) };
}

/**
 * An object has one alarm. A new instance sets it before it knows of an earlier one; it finds what is due by itself, and asks again.
 */
function createAlarm({
  storage,
}: Pick<DurableObjectContext, 'storage'>): (instant: number) => Promise<void> | undefined {
  let alarmAt = Number.NEGATIVE_INFINITY;
  return (instant) => {
    if (alarmAt <= instant && alarmAt > Date.now()) return undefined;
    alarmAt = instant;
    // Without an `await` before it, the alarm is stored together with the commit that made it necessary.
    return storage.setAlarm(instant).catch((error: unknown) => {
      alarmAt = Number.NEGATIVE_INFINITY;
      throw error;
    });
  };
}

/** SQLite's error in a Durable Object is an `Error` whose message ends with the name of the result code. */
const RESULT_CODE = /: SQLITE_([A-Z]+)( \(extended: \w+\))?$/;

/** Turns an error of the driver into the error that a storage method throws. Any other thrown value stays as it is. */
function toStorageError(cause: unknown): unknown {
  if (isOrchestratorError(cause)) return cause;
  const problem = messageOf(cause);
  if (/^SQL is not enabled/.test(problem)) {
    const message =
      "durableObjectStorage: the class of this Durable Object has no SQLite; list it in `new_sqlite_classes` of the Worker's configuration";
    return new OrchestratorError('NOT_CONFIGURED', message, { cause });
  }
  const [, code] = RESULT_CODE.exec(problem) ?? [];
  if (code === undefined) return cause;
  if (code === 'TOOBIG') {
    const message =
      'a Durable Object stores at most 2 MB in one value and in one row, such as the input and the output of an execution; make the value smaller';
    return new OrchestratorError('INVALID_OUTPUT', message, { cause });
  }
  if (code === 'FULL') {
    const message = 'the database of the Durable Object is full; nothing was stored, delete some data and try again';
    return new OrchestratorError('OVERLOADED', message, { cause, retryable: true });
  }
  return new OrchestratorError('INTERNAL', `SQLite failed in the Durable Object: ${problem}`, { cause });
}

/** @param firsts - the objects' table, which keeps the first part of each object */
function splitObjects(connection: SqlConnection, firsts: ObjectStore): ObjectStore {
  connection.exec(`CREATE TABLE IF NOT EXISTS ensemble_object_parts (
    key TEXT NOT NULL, part INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (key, part))`);
  const transaction = createTransaction(connection);
  const select = connection.prepare('SELECT content FROM ensemble_object_parts WHERE key = ? ORDER BY part');
  const insert = connection.prepare('INSERT INTO ensemble_object_parts (key, part, content) VALUES (?, ?, ?)');
  const remove = connection.prepare('DELETE FROM ensemble_object_parts WHERE key = ?');
  return {
    ...firsts,
    get(key) {
      const first = firsts.get(key);
      if (first === undefined || first instanceof Promise || first.content.length < MAX_VALUE_BYTES) return first;
      const parts = [first.content, ...select.all([key]).map(({ content }) => content as Uint8Array)];
      return { ...first, content: joinBytes(parts) };
    },
    put: (key, { content, ...about }) =>
      transaction(() => {
        firsts.put(key, { ...about, content: content.subarray(0, MAX_VALUE_BYTES) });
        remove.run([key]);
        for (let part = 1; part * MAX_VALUE_BYTES < content.length; part++) {
          insert.run([key, part, content.subarray(part * MAX_VALUE_BYTES, (part + 1) * MAX_VALUE_BYTES)]);
        }
      }),
    delete: (key) =>
      transaction(() => {
        remove.run([key]);
        return firsts.delete(key);
      }),
  };
}
