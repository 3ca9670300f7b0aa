/** The SQLite storage: everything in one file, durable when a call returns, opened at its first use. */

import { OrchestratorError } from '../../../engine/errors.ts';
import { isPlainText } from '../../../engine/ports/data.ts';
import type { MaybePromise } from '../../../engine/ports/operation.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import { toStorageError } from './failure.ts';
import { DRIVERS, loadDriver, type SqliteDriverName } from './load-driver.ts';
import { openTables, type Tables } from './open-tables.ts';

export interface SqliteStorageOptions {
  /** The file, made when it is not there; its folder must be. `:memory:` for a store that ends with the process. */
  readonly path: string;
  /** Separates apps that share one file: each sees its own data alone. At most 128 characters. Default `default`. */
  readonly namespace?: string;
  /** How long a write waits, in ms, while another process writes; then it fails with OVERLOADED. Default 5,000. */
  readonly busyTimeoutMs?: number;
  /**
   * `full`: what was stored outlives a loss of power. `normal`: it outlives a crash of the process, but the last moments
   * before a loss of power may be missing; many times faster. Default `full`.
   */
  readonly synchronous?: 'full' | 'normal';
  /** Default: the runtime's own, or else the package `libsql`. */
  readonly driver?: SqliteDriverName;
}

/**
 * Keeps executions, definitions, state, tokens, values and objects in one SQLite file. One process at a time works on it, by a
 * lock beside the file that ends with the process; others are guests, which read, queue and ask for cancellation.
 *
 * Nothing is opened before the first use: until then methods answer with promises, afterwards at once.
 *
 * @param options - see {@link SqliteStorageOptions}
 * @throws TypeError when an option is not what it must be; later, the first use throws NOT_CONFIGURED when the file can't be
 *   opened, is no database, is newer than this library, or when no driver is there; what an owner alone may do throws CONFLICT
 *   while another process is the owner
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
  const { path, namespace = 'default', busyTimeoutMs = 5000, synchronous = 'full', driver } = options;
  check({ path, namespace, busyTimeoutMs, synchronous, driver });
  let tables: Tables | undefined;
  let opening: Promise<Tables> | undefined;
  let closed = false;

  const open = async (): Promise<Tables> => {
    const load = await loadDriver(driver);
    try {
      return openTables(load, { path, busyTimeoutMs, synchronous }, namespace);
    } catch (error) {
      throw toStorageError(error, path);
    }
  };

  // A file that could not be opened is tried again by the next call: what was in the way may be gone by then.
  const opened = (): Promise<Tables> => {
    if (closed) {
      return Promise.reject(
        new OrchestratorError('OVERLOADED', `the SQLite storage of ${path} is closed and takes no calls`),
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

  /** @param row - what is read, where it is one row, and `name` which of them */
  const on = <T>(work: (tables: Tables) => MaybePromise<T>, row?: string, name?: string): MaybePromise<T> =>
    tables ? attempt(work, tables, path, row, name) : opened().then((made) => attempt(work, made, path, row, name));

  return {
    capabilities: { sharedCommits: true, groupedCommits: true, shared: true },
    tokens: {
      put: (token) => on(({ tokens }) => tokens.put(token)),
      findByDigest: (digest) => on(({ tokens }) => tokens.findByDigest(digest)),
      list: () => on(({ tokens }) => tokens.list()),
      delete: (id) => on(({ tokens }) => tokens.delete(id)),
      touch: (id, lastUsed) => on(({ tokens }) => tokens.touch(id, lastUsed)),
    },
    kv: {
      kind: 'kv',
      get: (key, now) => on(({ kv }) => kv.get(key, now)),
      put: (key, value, expiresAt) => on(({ kv }) => kv.put(key, value, expiresAt)),
      delete: (key) => on(({ kv }) => kv.delete(key)),
      list: (page) => on(({ kv }) => kv.list(page)),
    },
    objects: {
      kind: 'objects',
      get: (key) => on(({ objects }) => objects.get(key)),
      put: (key, object) => on(({ objects }) => objects.put(key, object)),
      delete: (key) => on(({ objects }) => objects.delete(key)),
      list: (page) => on(({ objects }) => objects.list(page)),
    },
    join: (owner, lease) => on((tables) => tables.join(owner, lease)),
    renew: (owner, leaseUntil) => on((tables) => tables.renew(owner, leaseUntil)),
    leave: (owner, now) => on((tables) => tables.leave(owner, now)),
    recover: (...given) => on((tables) => tables.recover(...given)),
    listHeld: (owner) => on((tables) => tables.listHeld(owner)),
    commit: (owner, batch) => on((tables) => tables.commit(owner, batch)),
    claim: (owner, query) => on((tables) => tables.claim(owner, query)),
    survey: (owner, except) => on((tables) => tables.survey(owner, except)),
    countQueued: (limit) => on((tables) => tables.countQueued(limit)),
    countDescendants: (rootId, limit) => on((tables) => tables.countDescendants(rootId, limit)),
    requestCancel: (id, now, end) => on((tables) => tables.requestCancel(id, now, end), 'execution', id),
    putSignal: (signal) => on((tables) => tables.putSignal(signal)),
    listSignals: (id, query) => on((tables) => tables.listSignals(id, query), 'the signals of execution', id),
    findSignal: (executionId, id) =>
      on((tables) => tables.findSignal(executionId, id), 'the signals of execution', executionId),
    findEnded: (ids) => on((tables) => tables.findEnded(ids)),
    purge: (query) => on((tables) => tables.purge(query)),
    getAccepted: (id) => on((tables) => tables.getAccepted(id), 'execution', id),
    getStatus: (id) => on((tables) => tables.getStatus(id), 'execution', id),
    getExecution: (id, query) => on((tables) => tables.getExecution(id, query), 'execution', id),
    listExecutions: (query) => on((tables) => tables.listExecutions(query)),
    listSteps: (id, query) => on((tables) => tables.listSteps(id, query), 'the steps of execution', id),
    getStep: (id, key) => on((tables) => tables.getStep(id, key), 'the steps of execution', id),
    skipRuns: (id, count) => on((tables) => tables.skipRuns(id, count), 'the steps of execution', id),
    listEndedWaits: (id, signal, behind) =>
      on((tables) => tables.listEndedWaits(id, signal, behind), 'the steps of execution', id),
    listDeliveries: (executionId) =>
      on((tables) => tables.listDeliveries(executionId), 'the deliveries of execution', executionId),
    readState: (ensemble) => on((tables) => tables.readState(ensemble), 'the state of ensemble', ensemble),
    readSchedule: (name) => on((tables) => tables.readSchedule(name), 'schedule', name),
    advanceSchedule: (name, change) => on((tables) => tables.advanceSchedule(name, change)),
    putDefinition: (definition) => on((tables) => tables.putDefinition(definition)),
    getDefinition: (version) => on((tables) => tables.getDefinition(version), 'definition', version),
    close() {
      if (closed) return undefined;
      closed = true;
      const made = tables;
      tables = undefined;
      if (made) return made.close();
      // Calls that came before wait for the same promise, and go first.
      return opening?.then(
        (late) => late.close(),
        () => undefined,
      );
    },
  };
}

// Not within the storage: it is called for every write.
function attempt<T>(
  work: (tables: Tables) => MaybePromise<T>,
  tables: Tables,
  path: string,
  row: string | undefined,
  name: string | undefined,
): MaybePromise<T> {
  try {
    return work(tables);
  } catch (error) {
    throw toStorageError(error, path, row === undefined ? undefined : `${row} ${name}`);
  }
}

function check({ path, namespace, busyTimeoutMs, synchronous, driver }: SqliteStorageOptions): void {
  const fail = (message: string): never => {
    throw new TypeError(`sqliteStorage: ${message}`);
  };
  if (typeof path !== 'string' || path === '' || !isPlainText(path)) fail('path must name a file, or be `:memory:`');
  // A drive letter is no scheme.
  if (/^[a-z][a-z0-9+.-]+:/i.test(path)) fail(`path must name a file, not a URL: ${path}`);
  if (typeof namespace !== 'string' || namespace === '' || namespace.length > 128 || !isPlainText(namespace)) {
    fail('namespace must be text of 1 to 128 characters');
  }
  if (!Number.isSafeInteger(busyTimeoutMs) || (busyTimeoutMs as number) < 0 || (busyTimeoutMs as number) > 600_000) {
    fail(`busyTimeoutMs must be a whole number from 0 to 600,000, not ${busyTimeoutMs}`);
  }
  if (synchronous !== 'full' && synchronous !== 'normal')
    fail(`synchronous must be full or normal, not ${synchronous}`);
  if (driver !== undefined && !DRIVERS.includes(driver))
    fail(`driver must be one of ${DRIVERS.join(', ')}, not ${driver}`);
}
