/** The tables that are written once, over the dialect of a database. */

import type { StorageParts } from '../../../../engine/storage/storage.port.ts';
import type { SqlDialect } from '../dialect.ts';
import { definitionsTable } from './definitions-table.ts';
import { documentsTable } from './documents-table.ts';
import { kvTable } from './kv-table.ts';
import { objectsTable } from './objects-table.ts';
import { tokensTable } from './tokens-table.ts';
import { schedulesTable, statesTable } from './versioned-tables.ts';

export function sharedTables(
  dialect: SqlDialect,
  namespace: string,
): Pick<StorageParts, 'state' | 'schedules' | 'definitions' | 'documents' | 'tokens' | 'kv' | 'objects'> {
  return {
    state: statesTable(dialect, namespace),
    schedules: schedulesTable(dialect, namespace),
    definitions: definitionsTable(dialect, namespace),
    documents: documentsTable(dialect, namespace),
    tokens: tokensTable(dialect, namespace),
    kv: kvTable(dialect, namespace),
    objects: objectsTable(dialect, namespace),
  };
}
