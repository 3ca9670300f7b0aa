/** Prepares each statement of the storage once, on an open database. */

import type { Storage, StorageParts } from '../../../engine/ports/storage.ts';
import { SCHEDULES, STATES } from '../sql/versioned.ts';
import { chargesTable } from './charges-table.ts';
import { createClaiming } from './claim.ts';
import { createCommit } from './commit.ts';
import { createUnreadable } from './damaged.ts';
import { definitionsTable } from './definitions-table.ts';
import { sqliteDialect } from './dialect.ts';
import { deliveriesTable } from '../sql/deliveries-table.ts';
import { documentsTable } from '../sql/documents-table.ts';
import { createTransaction, type SqlConnection } from './driver.ts';
import { createEnding } from './ending.ts';
import { executionsTable } from './executions-table.ts';
import { kvTable } from './kv-table.ts';
import { objectsTable } from './objects-table.ts';
import { ratesTable } from './rates-table.ts';
import { createPutSignal, signalsTable } from './signals-table.ts';
import { tokensTable } from './tokens-table.ts';
import { versionedTable } from './versioned-table.ts';
import type { WorkerLock } from './worker-lock.ts';
import { workersTable } from './workers-table.ts';

/** The storage port on open tables. It throws the driver's errors. */
export type Tables = StorageParts & Pick<Storage, 'commit'>;

/** @param connection - a database with the newest schema */
export function createTables(connection: SqlConnection, namespace: string, lock: WorkerLock): Tables {
  const transaction = createTransaction(connection);
  const putSignal = createPutSignal(connection, namespace);
  const unreadable = createUnreadable();
  const charges = chargesTable(connection, namespace);
  const dialect = sqliteDialect(connection);
  const deliveries = deliveriesTable(dialect, namespace);
  const { read, write: advance } = versionedTable(connection, namespace, 'ensemble_schedules', SCHEDULES);
  return {
    commit: createCommit(connection, namespace, { transaction, putSignal, charges, deliveries }),
    workers: workersTable(connection, namespace, { transaction, lock, unreadable }),
    executions: {
      ...createClaiming(connection, namespace, transaction, unreadable),
      ...createEnding(connection, namespace, transaction),
      ...executionsTable(connection, namespace),
    },
    signals: signalsTable(connection, namespace, transaction, putSignal),
    state: versionedTable(connection, namespace, 'ensemble_states', STATES),
    schedules: { read, advance },
    definitions: definitionsTable(connection, namespace),
    documents: documentsTable(dialect, namespace),
    deliveries,
    usage: { charged: charges.charged, running: charges.running },
    rates: ratesTable(connection, namespace, transaction),
    tokens: tokensTable(connection, namespace),
    kv: kvTable(connection, namespace),
    objects: objectsTable(connection, namespace),
  };
}
