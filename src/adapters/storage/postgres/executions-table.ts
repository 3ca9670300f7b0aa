/** Executions and deliveries: every way of reading. */

import { type ExecutionStatus, LISTED_VALUE_BYTES } from '../../../engine/model/execution.ts';
import type { ExecutionQuery, Storage } from '../../../engine/ports/storage.ts';
import { readAccepted, readDelivery, readExecution, readListed, readSummary } from '../sql/read-execution.ts';
import { toText } from './columns.ts';
import type { Names } from './names.ts';
import { ACCEPTED, DELIVERY, RECORD, SUMMARY } from './record-columns.ts';
import { type SqlClient, type Statement, statement } from './sql-client.ts';
import { stepsTable } from './steps-table.ts';

/** The verbs of the storage port that stand here. */
export type ExecutionsTable = Pick<
  Storage,
  | 'getAccepted'
  | 'getStatus'
  | 'getExecution'
  | 'listExecutions'
  | 'listSteps'
  | 'getStep'
  | 'skipRuns'
  | 'listEndedWaits'
  | 'listDeliveries'
>;

/** They stand in the statements themselves: an index of what has not completed serves those that name another status. */
const STATUSES: Readonly<Record<ExecutionStatus, string>> = {
  ...{ queued: 'queued', running: 'running', waiting: 'waiting', completed: 'completed' },
  ...{ failed: 'failed', timed_out: 'timed_out', cancelled: 'cancelled' },
};
/** Behind every id that can be made. */
const BEHIND_ALL = '\u{10FFFF}';

export function executionsTable(client: SqlClient, names: Names, namespace: string): ExecutionsTable {
  const { executions, steps, deliveries } = names;
  const columns = RECORD.map((column) => (column === 'agents' ? agentsOf(steps) : `e.${column}`)).join(', ');
  const listed = LISTED.map((column) => (column === 'agents' ? agentsOf(steps) : listedColumn(column))).join(', ');
  const { readRuns, ...stepVerbs } = stepsTable(client, names, namespace);
  const selectStatus = statement(
    `SELECT ${SUMMARY.join(', ')} FROM ${executions} WHERE namespace = $1 AND id = $2`,
    SUMMARY,
  );
  const select = statement(`SELECT ${columns} FROM ${executions} e WHERE e.namespace = $1 AND e.id = $2`, RECORD);
  const selectAccepted = statement(
    `SELECT ${ACCEPTED.join(', ')} FROM ${executions} WHERE namespace = $1 AND id = $2`,
    ACCEPTED,
  );
  const ref = `(SELECT ref FROM ${executions} WHERE namespace = $1 AND id = $2)`;
  const selectDeliveries = statement(
    `SELECT ${DELIVERY.join(', ')} FROM ${deliveries} WHERE execution = ${ref} ORDER BY seq`,
    DELIVERY,
  );
  const lists = new Map<string, Statement>();

  const listing = ({ ensemble, status, parentId }: ExecutionQuery): Statement => {
    const filters = [
      ...(ensemble === undefined ? [] : ['e.ensemble = $4']),
      ...(parentId === undefined ? [] : [`e.parent_id = $${ensemble === undefined ? 4 : 5}`]),
      ...(status === undefined ? [] : [`e.status = '${STATUSES[status]}'`]),
    ];
    const key = filters.join(' AND ');
    const known = lists.get(key);
    if (known) return known;
    const where = ['e.namespace = $1', 'e.id < $2', ...filters].join(' AND ');
    const made = statement(
      `SELECT ${listed} FROM ${executions} e WHERE ${where} ORDER BY e.id DESC LIMIT $3::bigint`,
      LISTED,
    );
    lists.set(key, made);
    return made;
  };

  return {
    async getAccepted(id) {
      const [row] = (await client.run(selectAccepted, [namespace, toText(id)])).rows;
      return row && readAccepted(row);
    },
    async getStatus(id) {
      const [row] = (await client.run(selectStatus, [namespace, toText(id)])).rows;
      return row && readSummary(row);
    },
    async getExecution(id, { agents = true } = {}) {
      const [row] = (await client.run(select, [namespace, toText(id)])).rows;
      return row && readExecution(row, agents ? await readRuns(id) : []);
    },
    async listExecutions(query) {
      const { ensemble, parentId, before, limit } = query;
      const params = [namespace, before === undefined ? BEHIND_ALL : toText(before), limit];
      const { rows } = await client.run(listing(query), [
        ...params,
        ...(ensemble === undefined ? [] : [toText(ensemble)]),
        ...(parentId === undefined ? [] : [toText(parentId)]),
      ]);
      return rows.map(readListed);
    },
    ...stepVerbs,
    async listDeliveries(executionId) {
      const { rows } = await client.run(selectDeliveries, [namespace, toText(executionId)]);
      return rows.map((row) => readDelivery(row, executionId));
    },
  };
}

const LISTED = [...RECORD, 'input_omitted', 'output_omitted'];

/** A column of a listing: a large value is told of, and not read. */
function listedColumn(column: string): string {
  const [value = column, omitted] = column.split('_omitted');
  if (omitted !== undefined) return `octet_length(e.${value}) > ${LISTED_VALUE_BYTES} AS ${column}`;
  if (column !== 'input' && column !== 'output') return `e.${column}`;
  return `CASE WHEN octet_length(e.${column}) <= ${LISTED_VALUE_BYTES} THEN e.${column} END AS ${column}`;
}

/** Stored with the end; counted before. */
function agentsOf(steps: string): string {
  const counted = `SELECT count(*) FROM ${steps} s WHERE s.execution = e.ref AND s.retry_at IS NULL AND NOT s.note`;
  return `coalesce(e.agents, (${counted})) AS agents`;
}
