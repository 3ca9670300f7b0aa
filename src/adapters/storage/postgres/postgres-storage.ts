/** The Postgres storage: everything in one schema, durable when a call returns, shared by as many processes as there are. */

import { OrchestratorError } from '../../../engine/errors.ts';
import type { KvStore, ObjectStore } from '../../../engine/ports/data.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import type { TokenStore } from '../../../engine/ports/token-store.ts';
import { toStorageError } from './failure.ts';
import { openTables, type Tables } from './open-tables.ts';
import { type PostgresStorageOptions, readOptions } from './options.ts';

/**
 * Keeps executions, definitions, state, tokens, values and objects in a schema of a Postgres database. Several processes may
 * share it: each execution runs in one of them, and when that one dies another goes on.
 *
 * Nothing is opened before the first use.
 *
 * @param options - where the database is, see {@link PostgresStorageOptions}
 * @throws TypeError when an option is not what it must be; later, the first use throws NOT_CONFIGURED when the package `pg` is
 *   missing, the schema is newer than this library, or Postgres refuses the user
 *
 * @example
 * ```ts no-run
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { postgresStorage } from 'ensemble-orchestrator/postgres';
 *
 * const orchestrator = createOrchestrator({
 *   ensembles: ['name: hello\nflow:\n  - { agent: greet, operation: code, config: { script: greet } }'],
 *   scripts: { greet: () => 'hello' },
 *   storage: postgresStorage({ connectionString: 'postgres://app:secret@db.example/app' }),
 * });
 * const { id } = await orchestrator.execute('hello');
 * console.log((await orchestrator.executions.get(id)).status); // completed
 * await orchestrator.close();
 * ```
 */
export function postgresStorage(options: PostgresStorageOptions): Storage {
  const settings = readOptions(options);
  let opening: Promise<Tables> | undefined;
  let tables: Tables | undefined;
  let closing: Promise<void> | undefined;

  // A database that could not be opened is tried again by the next call: what was in the way may be gone by then.
  const opened = (): Promise<Tables> => {
    if (closing)
      return Promise.reject(new OrchestratorError('OVERLOADED', 'the Postgres storage is closed and takes no calls'));
    opening ??= openTables(settings).then(
      (made) => {
        if (!closing) tables = made;
        return made;
      },
      (error: unknown) => {
        opening = undefined;
        throw error;
      },
    );
    return opening;
  };

  const on = async <T>(work: (tables: Tables) => T): Promise<Awaited<T>> => {
    try {
      return await work(tables ?? (await opened()));
    } catch (error) {
      throw toStorageError(error);
    }
  };

  const tokens: TokenStore = {
    put: (token) => on((tables) => tables.tokens.put(token)),
    findByDigest: (digest) => on((tables) => tables.tokens.findByDigest(digest)),
    list: () => on((tables) => tables.tokens.list()),
    delete: (id) => on((tables) => tables.tokens.delete(id)),
    touch: (id, lastUsed) => on((tables) => tables.tokens.touch(id, lastUsed)),
  };
  const kv: KvStore = {
    kind: 'kv',
    get: (key, now) => on((tables) => tables.kv.get(key, now)),
    put: (key, value, expiresAt) => on((tables) => tables.kv.put(key, value, expiresAt)),
    delete: (key) => on((tables) => tables.kv.delete(key)),
    list: (page) => on((tables) => tables.kv.list(page)),
  };
  const objects: ObjectStore = {
    kind: 'objects',
    get: (key) => on((tables) => tables.objects.get(key)),
    put: (key, object) => on((tables) => tables.objects.put(key, object)),
    delete: (key) => on((tables) => tables.objects.delete(key)),
    list: (page) => on((tables) => tables.objects.list(page)),
  };
  const watch: Storage['watch'] = (listener) => on((tables) => tables.watch(listener));

  return {
    capabilities: { sharedCommits: true, groupedCommits: true, shared: true },
    tokens,
    kv,
    objects,
    join: (owner, lease) => on(({ owners }) => owners.join(owner, lease)),
    renew: (owner, leaseUntil) => on(({ owners }) => owners.renew(owner, leaseUntil)),
    leave: (owner, now) => on(({ owners }) => owners.leave(owner, now)),
    listHeld: (owner) => on(({ owners }) => owners.listHeld(owner)),
    recover: (...given) => on(({ owners }) => owners.recover(...given)),
    commit: (owner, batch) => on(({ commit }) => commit(owner, batch)),
    claim: (owner, query) => on(({ claiming }) => claiming.claim(owner, query)),
    survey: (owner, except) => on(({ claiming }) => claiming.survey(owner, except)),
    countQueued: (limit) => on(({ claiming }) => claiming.countQueued(limit)),
    countDescendants: (rootId, limit) => on(({ children }) => children.countDescendants(rootId, limit)),
    requestCancel: (id, now, end) => on(({ ending }) => ending.requestCancel(id, now, end)),
    putSignal: (signal) => on(({ signals }) => signals.putSignal(signal)),
    listSignals: (id, query) => on(({ signals }) => signals.listSignals(id, query)),
    findSignal: (executionId, id) => on(({ signals }) => signals.findSignal(executionId, id)),
    findEnded: (ids) => on(({ ending }) => ending.findEnded(ids)),
    purge: (query) => on(({ ending }) => ending.purge(query)),
    ...(settings.sessions && { watch }),
    getAccepted: (id) => on(({ executions }) => executions.getAccepted(id)),
    getStatus: (id) => on(({ executions }) => executions.getStatus(id)),
    getExecution: (id, query) => on(({ executions }) => executions.getExecution(id, query)),
    listExecutions: (query) => on(({ executions }) => executions.listExecutions(query)),
    listSteps: (id, query) => on(({ executions }) => executions.listSteps(id, query)),
    getStep: (id, key) => on(({ executions }) => executions.getStep(id, key)),
    skipRuns: (id, count) => on(({ executions }) => executions.skipRuns(id, count)),
    listEndedWaits: (id, signal, behind) => on(({ executions }) => executions.listEndedWaits(id, signal, behind)),
    listDeliveries: (executionId) => on(({ executions }) => executions.listDeliveries(executionId)),
    readState: (ensemble) => on(({ definitions }) => definitions.readState(ensemble)),
    readSchedule: (name) => on(({ schedules }) => schedules.readSchedule(name)),
    advanceSchedule: (name, change) => on(({ schedules }) => schedules.advanceSchedule(name, change)),
    putDefinition: (definition) => on(({ definitions }) => definitions.putDefinition(definition)),
    getDefinition: (version) => on(({ definitions }) => definitions.getDefinition(version)),
    close() {
      tables = undefined;
      closing ??= opening
        ? opening.then(
            (made) => made.close(),
            () => undefined,
          )
        : Promise.resolve();
      return closing;
    },
  };
}
