/** The tables of one open file, each statement prepared once. */

import type { Storage } from '../../../engine/ports/storage.ts';
import { childrenTable } from './children-table.ts';
import { createCommit } from './commit.ts';
import { createTransaction, type SqlDriver } from './connection.ts';
import { createLost } from './damaged.ts';
import { definitionsTable } from './definitions-table.ts';
import { deliveriesTable } from './deliveries-table.ts';
import { dueTable } from './due-table.ts';
import { ending } from './ending.ts';
import { executionsTable } from './executions-table.ts';
import { kvTable } from './kv-table.ts';
import { objectsTable } from './objects-table.ts';
import { closeDatabase, type DatabaseOptions, openDatabase } from './open-database.ts';
import { ownerLock } from './owner-lock.ts';
import { ownersTable } from './owners-table.ts';
import { schedulesTable } from './schedules-table.ts';
import { createPutSignal, signalsTable } from './signals-table.ts';
import { tokensTable } from './tokens-table.ts';

/** A storage but for what it promises: it is open, and throws what its driver throws. */
export type Tables = Omit<Storage, 'capabilities' | 'watch'>;

/** @throws what `openDatabase` throws */
export function openTables(driver: SqlDriver, options: DatabaseOptions, namespace: string): Tables {
  const connection = openDatabase(driver, options);
  const transaction = createTransaction(connection);
  const lock = ownerLock(driver, connection, namespace);
  const putSignal = createPutSignal(connection, namespace);
  const lost = createLost();
  return {
    ...ownersTable(connection, namespace, { transaction, lock, lost }),
    commit: createCommit(connection, namespace, transaction, putSignal),
    ...signalsTable(connection, namespace, transaction, putSignal),
    ...childrenTable(connection, namespace),
    ...dueTable(connection, namespace, transaction, lost),
    ...ending(connection, namespace, transaction),
    ...executionsTable(connection, namespace),
    ...deliveriesTable(connection, namespace),
    ...definitionsTable(connection, namespace),
    ...schedulesTable(connection, namespace),
    tokens: tokensTable(connection, namespace),
    kv: kvTable(connection, namespace),
    objects: objectsTable(connection, namespace),
    close() {
      try {
        closeDatabase(connection);
      } finally {
        // What it still holds is there for the next owner, once the file is whole.
        lock.release();
      }
    },
  };
}
