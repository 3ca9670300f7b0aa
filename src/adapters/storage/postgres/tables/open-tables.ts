/** Connects to the database, brings the schema up to date, and prepares the tables. */

import type { Storage, StorageParts, TransactionStore } from '../../../../engine/storage/storage.port.ts';
import { runLater } from '../../sql/queues/steps.ts';
import { sharedTables } from '../../sql/tables/create-tables.ts';
import { deliveriesTable } from '../../sql/tables/deliveries-table.ts';
import { talliesTable } from '../../sql/tables/tallies-table.ts';
import { createCallerTransactions } from '../drivers/caller-transaction.ts';
import { hash32, type SqlClient, statement } from '../drivers/driver.ts';
import { MAX_CONNECTIONS, openClient } from '../drivers/load-driver.ts';
import { createClaiming } from '../executions/claim.ts';
import { createCommit } from '../executions/commit.ts';
import { createEnding } from '../executions/ending.ts';
import { executionsTable } from '../executions/executions-table.ts';
import { createLimitViews } from '../executions/limit-views.ts';
import { createPausing } from '../executions/pauses.ts';
import { signalsTable } from '../executions/signals-table.ts';
import type { Settings } from '../options.ts';
import { type ChargesTable, chargesTable } from './charges-table.ts';
import { postgresDialect } from './dialect.ts';
import { migrate } from './migrations.ts';
import { type Names, tableNames } from './names.ts';
import { createNotifier } from './notifier.ts';
import { ratesTable } from './rates-table.ts';
import { reach } from './reach.ts';
import { createSessions } from './sessions.ts';
import { createTransact } from './step-transaction.ts';
import { readProcesses } from './this-process.ts';
import { workersTable } from './workers-table.ts';

/** An open storage without its capabilities. It throws the driver's errors. */
export interface Tables extends StorageParts {
  readonly commit: Storage['commit'];
  watch(listener: () => void): Promise<() => void>;
  readonly within: NonNullable<Storage['within']>;
  readonly transact: NonNullable<Storage['transact']>;
  close(): Promise<void>;
}

const NOTIFY = statement('SELECT pg_notify($1, $2)', ['pg_notify']);
// Some clients can't read an answer without a value.
const NOTIFY_LATER = statement('SELECT pg_notify($1, $2)::text AS sent', ['sent']);

/** @throws NOT_CONFIGURED, what `reach` and `migrate` throw, or a driver's error; then its connections end */
export async function openTables(settings: Settings): Promise<Tables> {
  const { schema, namespace, sessionGraceMs } = settings;
  const client = await openClient(settings);
  try {
    await reach(client, settings.source);
    await migrate(client, schema);
  } catch (error) {
    // Not awaited: a connection that is still being made ends with its own timeout.
    client.close().catch(() => undefined);
    throw error;
  }
  const names = tableNames(schema);
  const channel = `ensemble_${hash32(schema).toString(36)}_${hash32(namespace).toString(36)}`;
  const sessions = settings.sessions ? createSessions(client, names, channel) : undefined;
  const notifier = createNotifier(() => client.run(NOTIFY, [channel, sessions?.tag ?? '']));
  const onFreed = () => notifier.notify();
  const signals = signalsTable(client, names, namespace, onFreed);
  const usage = chargesTable(client, names, namespace);
  const dialect = postgresDialect(client, names);
  const openTransaction = createCallerTransactions(schema);
  return {
    workers: workersTable({
      ...{ client, names, namespace, sessions, sessionGraceMs, onFreed },
      processes: readProcesses(),
    }),
    commit: createCommit(client, names, namespace, { onFreed, signals, usage }),
    executions: {
      ...createLimitViews(client, names, namespace),
      ...createClaiming(client, names, namespace, signals.deliverSent),
      ...createPausing(client, names, namespace, onFreed),
      ...createEnding(client, names, namespace, onFreed),
      ...executionsTable(client, names, namespace),
    },
    signals,
    ...sharedTables(dialect, namespace),
    deliveries: deliveriesTable(dialect, namespace),
    usage: { charged: usage.charged, running: usage.running },
    rates: ratesTable(client, names, namespace),
    tallies: talliesTable(
      dialect,
      (work) => client.transaction((on) => runLater(work(postgresDialect(on, names)))),
      namespace,
    ),
    within: async (transaction) => {
      const on = await openTransaction(transaction);
      const store = transactionStore(on, names, namespace, () => on.run(NOTIFY_LATER, [channel, '']));
      // Where all sessions share one connection, nothing else is written while the transaction is open.
      if (client.sessionLocks) return store;
      return { ...store, definitions: sharedTables(postgresDialect(on, names), namespace).definitions };
    },
    transact: createTransact(
      client,
      (on) => {
        const parts = { onFreed, signals: signalsTable(on, names, namespace, onFreed) };
        return createCommit(on, names, namespace, { ...parts, usage: chargesTable(on, names, namespace) });
      },
      Math.max(1, Math.floor((settings.source.pool?.options?.max ?? MAX_CONNECTIONS) / 2)),
    ),
    watch: async (listener) => (await sessions?.watch(listener)) ?? (() => undefined),
    async close() {
      await notifier.flush();
      await sessions?.close();
      await client.close();
    },
  };
}

/** @param notify - runs within the transaction; Postgres sends it after the commit, and never after a rollback */
function transactionStore(
  on: SqlClient,
  names: Names,
  namespace: string,
  notify: () => Promise<unknown>,
): TransactionStore {
  let isFreed = false;
  const onFreed = () => {
    isFreed = true;
  };
  const andNotify = async <T>(answer: Promise<T> | T): Promise<T> => {
    const result = await answer;
    if (isFreed) await notify();
    isFreed = false;
    return result;
  };
  const signals = signalsTable(on, names, namespace, onFreed);
  const control = (text: string) => on.run({ name: '', text, columns: [] }, []);
  const charges = chargesTable(on, names, namespace);
  // A charge over its limit fails the statement: only the start is undone, and not what the caller has done.
  const usage: ChargesTable = {
    ...charges,
    async limitOf(entry) {
      await control('ROLLBACK TO SAVEPOINT ensemble_start');
      return charges.limitOf(entry);
    },
  };
  const commit = createCommit(on, names, namespace, { onFreed, signals, usage });
  const commitCharged: Storage['commit'] = async (worker, batch) => {
    await control('SAVEPOINT ensemble_start');
    const answers = await commit(worker, batch);
    await control('RELEASE SAVEPOINT ensemble_start');
    return answers;
  };
  return {
    executions: executionsTable(on, names, namespace),
    signals: { put: (signal) => andNotify(signals.put(signal)) },
    commit: (worker, batch) =>
      andNotify(batch.some(({ charge }) => charge) ? commitCharged(worker, batch) : commit(worker, batch)),
  };
}
