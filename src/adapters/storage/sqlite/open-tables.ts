/** The tables of one open file, each statement prepared once. */

import type { KvStore, ObjectStore } from '../../../engine/ports/data.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import type { TokenStore } from '../../../engine/ports/token-store.ts';
import { createCommit } from './commit.ts';
import type { SqlDriver } from './connection.ts';
import { type DefinitionsTable, definitionsTable } from './definitions-table.ts';
import { type ExecutionsTable, executionsTable } from './executions-table.ts';
import { kvTable } from './kv-table.ts';
import { objectsTable } from './objects-table.ts';
import { closeDatabase, type DatabaseOptions, openDatabase } from './open-database.ts';
import { tokensTable } from './tokens-table.ts';

export interface Tables {
  readonly executions: ExecutionsTable;
  readonly commit: Storage['commit'];
  readonly definitions: DefinitionsTable;
  readonly tokens: TokenStore;
  readonly kv: KvStore;
  readonly objects: ObjectStore;
  close(): void;
}

/** @throws what `openDatabase` throws */
export function openTables(driver: SqlDriver, options: DatabaseOptions, namespace: string): Tables {
  const connection = openDatabase(driver, options);
  return {
    executions: executionsTable(connection, namespace),
    commit: createCommit(connection, namespace),
    definitions: definitionsTable(connection, namespace),
    tokens: tokensTable(connection, namespace),
    kv: kvTable(connection, namespace),
    objects: objectsTable(connection, namespace),
    close: () => closeDatabase(connection),
  };
}
