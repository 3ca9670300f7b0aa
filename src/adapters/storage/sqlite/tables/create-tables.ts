/** Prepares each statement of the storage once, on an open database. */

import type { Storage, StorageParts } from '../../../../engine/storage/storage.port.ts';
import { runNow } from '../../sql/queues/steps.ts';
import { sharedTables } from '../../sql/tables/create-tables.ts';
import { deliveriesTable } from '../../sql/tables/deliveries-table.ts';
import { talliesTable } from '../../sql/tables/tallies-table.ts';
import { createTransaction, type SqlConnection } from '../drivers/driver.ts';
import { createClaiming } from '../executions/claim.ts';
import { createCommit } from '../executions/commit.ts';
import { createEnding } from '../executions/ending.ts';
import { endsTable } from '../executions/ends-table.ts';
import { executionsTable } from '../executions/executions-table.ts';
import { createLimitViews } from '../executions/limit-views.ts';
import { createPausing } from '../executions/pauses.ts';
import { createPutSignal, signalsTable } from '../executions/signals-table.ts';
import { chargesTable } from './charges-table.ts';
import { createUnreadable } from './damaged.ts';
import { sqliteDialect } from './dialect.ts';
import { ratesTable } from './rates-table.ts';
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
  const ends = endsTable(connection, namespace);
  const within = sqliteDialect(connection, (work) => work());
  const deliveries = deliveriesTable(dialect, namespace);
  return {
    commit: createCommit(connection, namespace, { transaction, putSignal, charges, deliveries, ends }),
    workers: workersTable(connection, namespace, { transaction, lock, unreadable }),
    executions: {
      ...createClaiming(connection, namespace, transaction, unreadable),
      ...createLimitViews(connection, namespace, transaction),
      ...createPausing(connection, namespace),
      ...createEnding(connection, namespace, transaction, ends),
      ...executionsTable(connection, namespace),
    },
    signals: signalsTable(connection, namespace, transaction, putSignal),
    ...sharedTables(dialect, namespace),
    deliveries,
    usage: { charged: charges.charged, running: charges.running },
    rates: ratesTable(connection, namespace, transaction),
    tallies: talliesTable(dialect, (work) => transaction(() => runNow(work(within))), namespace),
  };
}
