/** The Postgres storage: all data in one schema, durable when a call returns, shared by any number of processes. */

import { OrchestratorError } from '../../../engine/base/errors.ts';
import type { Storage } from '../../../engine/storage/storage.port.ts';
import { callPart, createParts } from '../../../engine/storage/storage-methods.port.ts';
import { withStreams } from '../with-streams.ts';
import { toStorageError } from './drivers/failure.ts';
import { type PostgresStorageOptions, readPostgresOptions } from './options.ts';
import { openTables, type Tables } from './tables/open-tables.ts';

/**
 * Keeps executions, definitions, state, tokens, values and objects in a schema of a Postgres database. Several
 * processes can share it: each execution runs in one of them, and when that process dies, another continues the
 * execution.
 *
 * The first use opens the connection.
 *
 * @param options - where the database is, see {@link PostgresStorageOptions}
 * @throws TypeError for an invalid option. The first use throws NOT_CONFIGURED when the package `pg` is missing, the
 *   schema is newer than this library, or Postgres refuses the user.
 *
 * @example
 * ```ts no-run
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { postgresStorage } from 'ensemble-orchestrator/postgres';
 *
 * const orchestrator = createOrchestrator({
 *   ensembles: ['name: hello\nflow:\n  - { agent: greet, operation: code, config: { script: greet } }'],
 *   scripts: { greet: () => 'hello' },
 *   storage: postgresStorage({ url: 'postgres://app:secret@db.example/app' }),
 * });
 * const { id } = await orchestrator.execute('hello');
 * console.log((await orchestrator.executions.get(id)).status); // completed
 * await orchestrator.close();
 * ```
 */
export function postgresStorage(options: PostgresStorageOptions): Storage {
  const settings = readPostgresOptions(options);
  let opening: Promise<Tables> | undefined;
  let tables: Tables | undefined;
  let closing: Promise<void> | undefined;

  // If the database can't be opened, the next call tries again: the cause may be gone.
  const opened = (): Promise<Tables> => {
    if (closing)
      return Promise.reject(new OrchestratorError('OVERLOADED', 'the Postgres storage is closed and accepts no calls'));
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

  const parts = createParts(
    (part, method) =>
      (...args) =>
        on((made) => callPart(made, part, method, args)),
  );
  const transactOn: Storage['transact'] = (worker) => {
    if (!tables) throw new OrchestratorError('OVERLOADED', 'the Postgres storage is closed', { retryable: true });
    return tables.transact(worker);
  };
  const watch: Storage['watch'] = (listener) => on((made) => made.watch(listener));
  return {
    ...parts,
    objects: withStreams(parts.objects),
    ...(settings.sessions && { watch }),
    capabilities: { sharedPromises: true, timers: true, groupedCommits: true, shared: true },
    commit: (worker, batch) => on((made) => made.commit(worker, batch)),
    // PGlite has one connection, on which nothing else could be written meanwhile.
    ...(!settings.source.pglite && { transact: transactOn }),
    // Errors are those of the caller's client: it may look at their codes.
    within: async (transaction) => (tables ?? (await opened())).within(transaction),
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
