/** Opens the database at its first use: connects, brings the schema up to date, and makes the tables of it. */

import type { KvStore, ObjectStore } from '../../../engine/ports/data.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import type { TokenStore } from '../../../engine/ports/token-store.ts';
import { childrenTable } from './children-table.ts';
import { type Claiming, createClaiming } from './claim.ts';
import { createCommit } from './commit.ts';
import { kvTable, objectsTable } from './data-tables.ts';
import { type DefinitionsTable, definitionsTable } from './definitions-table.ts';
import { createEnding, type Ending } from './ending.ts';
import { type ExecutionsTable, executionsTable } from './executions-table.ts';
import { openClient } from './load-client.ts';
import { migrate } from './migrations.ts';
import { tableNames } from './names.ts';
import { createNotifier } from './notifier.ts';
import type { Settings } from './options.ts';
import { createOwners, type Owners } from './owners.ts';
import { type SchedulesTable, schedulesTable } from './schedules-table.ts';
import { createSessions } from './sessions.ts';
import { type SignalsTable, signalsTable } from './signals-table.ts';
import { hash32, statement } from './sql-client.ts';
import { readProcesses } from './this-process.ts';
import { tokensTable } from './tokens-table.ts';

export interface Tables {
  readonly owners: Owners;
  readonly claiming: Claiming;
  readonly commit: Storage['commit'];
  readonly ending: Ending;
  readonly children: Pick<Storage, 'countDescendants'>;
  readonly signals: SignalsTable;
  readonly executions: ExecutionsTable;
  readonly definitions: DefinitionsTable;
  readonly schedules: SchedulesTable;
  readonly tokens: TokenStore;
  readonly kv: KvStore;
  readonly objects: ObjectStore;
  watch(listener: () => void): Promise<() => void>;
  close(): Promise<void>;
}

const NOTIFY = statement('SELECT pg_notify($1, $2)', ['pg_notify']);

/** @throws NOT_CONFIGURED and what `migrate` throws, or what the driver does; nothing stays open then */
export async function openTables(settings: Settings): Promise<Tables> {
  const { schema, namespace, sessionGraceMs } = settings;
  const client = await openClient(settings);
  try {
    await migrate(client, schema);
  } catch (error) {
    await client.close().catch(() => undefined);
    throw error;
  }
  const names = tableNames(schema);
  const channel = `ensemble_${hash32(schema).toString(36)}_${hash32(namespace).toString(36)}`;
  const sessions = settings.sessions ? createSessions(client, names, channel) : undefined;
  const notifier = createNotifier(() => client.run(NOTIFY, [channel, sessions?.tag ?? '']));
  const onFreed = () => notifier.notify();
  const signals = signalsTable(client, names, namespace, onFreed);
  return {
    owners: createOwners({
      ...{ client, names, namespace, sessions, sessionGraceMs, onFreed },
      processes: readProcesses(),
    }),
    claiming: createClaiming(client, names, namespace, signals.giveSent),
    commit: createCommit(client, names, namespace, onFreed, signals),
    signals,
    children: childrenTable(client, names, namespace),
    ending: createEnding(client, names, namespace, onFreed),
    executions: executionsTable(client, names, namespace),
    definitions: definitionsTable(client, names, namespace),
    schedules: schedulesTable(client, names, namespace),
    tokens: tokensTable(client, names, namespace),
    kv: kvTable(client, names, namespace),
    objects: objectsTable(client, names, namespace),
    watch: async (listener) => (await sessions?.watch(listener)) ?? (() => undefined),
    async close() {
      await notifier.flush();
      await sessions?.close();
      await client.close();
    },
  };
}
