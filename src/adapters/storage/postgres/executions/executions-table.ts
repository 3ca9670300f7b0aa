/** Reads executions: one, a list, a count. */

import { OPEN_STATUSES, type OpenCounts } from '../../../../engine/execution/execution.ts';
import type { ExecutionReader } from '../../../../engine/storage/storage.port.ts';
import { readNumber } from '../../sql/columns.ts';
import {
  readAccepted,
  readExecution,
  readId,
  readListed,
  readOpenCount,
  readSummary,
  SUMMARY_COLUMNS,
  unresolvedOf,
} from '../../sql/read-execution.ts';
import { byLimit, type SqlClient, statement } from '../drivers/driver.ts';
import { toTextColumn } from '../tables/columns.ts';
import type { Names } from '../tables/names.ts';
import { executionList } from './list-executions.ts';
import { ACCEPTED, computedColumn, RECORD } from './record-columns.ts';
import { stepsTable } from './steps-table.ts';

/** The methods of the storage port in this file. */
export type ExecutionsTable = Omit<ExecutionReader, 'findEnded' | 'limitWaits'>;

export function executionsTable(client: SqlClient, names: Names, namespace: string): ExecutionsTable {
  const { executions } = names;
  const columns = RECORD.map((column) => computedColumn(column, names) ?? `e.${column}`).join(', ');
  const { readRuns, ...stepMethods } = stepsTable(client, names, namespace);
  const selectStatus = statement(
    `SELECT ${SUMMARY_COLUMNS.join(', ')} FROM ${executions} WHERE namespace = $1 AND id = $2`,
    SUMMARY_COLUMNS,
  );
  const select = statement(`SELECT ${columns} FROM ${executions} e WHERE e.namespace = $1 AND e.id = $2`, RECORD);
  const selectAccepted = statement(
    `SELECT ${ACCEPTED.join(', ')} FROM ${executions} WHERE namespace = $1 AND id = $2`,
    ACCEPTED,
  );
  const selectByKey = statement(`SELECT id FROM ${executions} WHERE idempotency_key = $2 AND namespace = $1`, ['id']);
  const countDescendants = statement(
    `SELECT count(*) AS descendants
    FROM (SELECT 1 FROM ${executions} WHERE root_id = $2 AND namespace = $1 LIMIT $3::bigint) d`,
    ['descendants'],
  );
  // In the order of its index, because the planner would read the table when many rows are expected.
  const first = (where: string, most: string, limit: string) => `SELECT * FROM (
      SELECT created_at FROM ${executions} WHERE namespace = $1 AND ${where} ORDER BY created_at, id LIMIT ${most}
    ) m LIMIT ${limit}::bigint`;
  const oldest = (most: string, name: keyof OpenCounts, where = `status = '${name}'`) =>
    `SELECT count(*) AS ${name}, min(created_at) AS ${name}_since FROM (${first(where, most, '$2')}) x`;
  const countOpen = byLimit(
    (most) =>
      `SELECT * FROM (${oldest(most, 'queued')}) q, (${oldest(most, 'running')}) r, (${oldest(most, 'waiting')}) w, (${oldest(most, 'paused')}) p,
        (${oldest(most, 'unresolved', unresolvedOf())}) u`,
    [...OPEN_STATUSES, 'unresolved'].flatMap((name) => [name, `${name}_since`]),
  );
  const countAccepted = byLimit(
    (most) => `SELECT count(*) AS accepted FROM (${first('created_at >= $2::bigint', most, '$3')}) d`,
    ['accepted'],
  );
  const list = executionList(client, names, namespace);

  return {
    async countDescendants(rootId, limit) {
      const [row = {}] = (await client.run(countDescendants, [namespace, toTextColumn(rootId), limit])).rows;
      return readNumber(row, 'descendants', 'a count');
    },
    async countOpen(limit) {
      const [row = {}] = (await client.run(countOpen(limit), [namespace, limit])).rows;
      const read = (name: keyof OpenCounts) => readOpenCount({ number: row[name], oldest: row[`${name}_since`] });
      return {
        ...{ queued: read('queued'), running: read('running'), waiting: read('waiting'), paused: read('paused') },
        unresolved: read('unresolved'),
      };
    },
    async countAccepted(since, limit) {
      const [row = {}] = (await client.run(countAccepted(limit), [namespace, since, limit])).rows;
      return readNumber(row, 'accepted', 'a count');
    },
    async findByKey(key) {
      const [row] = (await client.run(selectByKey, [namespace, toTextColumn(key)])).rows;
      return row && readId(row);
    },
    async getAccepted(id) {
      const [row] = (await client.run(selectAccepted, [namespace, toTextColumn(id)])).rows;
      return row && readAccepted(row);
    },
    async getStatus(id) {
      const [row] = (await client.run(selectStatus, [namespace, toTextColumn(id)])).rows;
      return row && readSummary(row);
    },
    async get(id, { agents = true } = {}) {
      const [row] = (await client.run(select, [namespace, toTextColumn(id)])).rows;
      return row && readExecution(row, agents ? await readRuns(id) : []);
    },
    list: async (query) => (await list(query)).map(readListed),
    ...stepMethods,
  };
}
