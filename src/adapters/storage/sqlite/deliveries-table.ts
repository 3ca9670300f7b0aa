/** The deliveries of an execution, as they stand in the file. */

import type { Storage } from '../../../engine/ports/storage.ts';
import { readDelivery } from '../sql/read-execution.ts';
import { toLiteral, toTextColumn } from './columns.ts';
import type { SqlConnection } from './connection.ts';

/** The verbs of the storage port that this table answers. */
export type DeliveriesTable = Pick<Storage, 'listDeliveries'>;

export function deliveriesTable(connection: SqlConnection, namespace: string): DeliveriesTable {
  const select = connection.prepare(`
    SELECT id, event, status, attempts, created_at, due_at, target, payload FROM ensemble_deliveries
    WHERE execution = (SELECT ref FROM ensemble_executions WHERE namespace = ${toLiteral(namespace)} AND id = ?)
    ORDER BY seq`);
  return {
    listDeliveries: (executionId) =>
      select.all([toTextColumn(executionId)]).map((row) => readDelivery(row, executionId)),
  };
}
