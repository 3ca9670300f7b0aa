/** Connects to the database, brings the schema up to date, and prepares the tables. */

import type { Storage, StorageParts } from '../../../../engine/storage/storage.port.ts';
import { sharedTables } from '../../sql/tables/create-tables.ts';
import { deliveriesTable } from '../../sql/tables/deliveries-table.ts';
import { hash32, statement } from '../drivers/driver.ts';
import { openClient } from '../drivers/load-driver.ts';
import type { Settings } from '../options.ts';
import { chargesTable } from './charges-table.ts';
import { createClaiming } from '../executions/claim.ts';
import { createCommit } from '../executions/commit.ts';
import { postgresDialect } from './dialect.ts';
import { createEnding } from '../executions/ending.ts';
import { executionsTable } from '../executions/executions-table.ts';
import { migrate } from './migrations.ts';
import { tableNames } from './names.ts';
import { createNotifier } from './notifier.ts';
import { ratesTable } from './rates-table.ts';
import { reach } from './reach.ts';
import { createSessions } from './sessions.ts';
import { signalsTable } from '../executions/signals-table.ts';
import { readProcesses } from './this-process.ts';
import { workersTable } from './workers-table.ts';

/** An open storage without its capabilities. It throws the driver's errors. */
export interface Tables extends StorageParts {
  readonly commit: Storage['commit'];
  watch(listener: () => void): Promise<() => void>;
  close(): Promise<void>;
}

const NOTIFY = statement('SELECT pg_notify($1, $2)', ['pg_notify']);

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
  return {
    workers: workersTable({
      ...{ client, names, namespace, sessions, sessionGraceMs, onFreed },
      processes: readProcesses(),
    }),
    commit: createCommit(client, names, namespace, { onFreed, signals, usage }),
    executions: {
      ...createClaiming(client, names, namespace, signals.deliverSent),
      ...createEnding(client, names, namespace, onFreed),
      ...executionsTable(client, names, namespace),
    },
    signals,
    ...sharedTables(dialect, namespace),
    deliveries: deliveriesTable(dialect, namespace),
    usage: { charged: usage.charged, running: usage.running },
    rates: ratesTable(client, names, namespace),
    watch: async (listener) => (await sessions?.watch(listener)) ?? (() => undefined),
    async close() {
      await notifier.flush();
      await sessions?.close();
      await client.close();
    },
  };
}
