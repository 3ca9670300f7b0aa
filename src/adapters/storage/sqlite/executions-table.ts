/** Executions: every way of reading. */

import { type ExecutionStatus, LISTED_VALUE_BYTES } from '../../../engine/model/execution.ts';
import type { ExecutionQuery, Storage } from '../../../engine/ports/storage.ts';
import { readAccepted, readExecution, readListed, readSummary } from '../sql/read-execution.ts';
import { toLiteral, toTextColumn } from './columns.ts';
import type { SqlConnection, SqlRow, SqlStatement } from './connection.ts';
import { STARTED_AT } from './started-at.ts';
import { OPEN_OR_FAILED } from './statuses.ts';
import { bytesOf, COUNT_RUNS, stepsTable } from './steps-table.ts';

/** The verbs of the storage port that this table answers. */
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
>;

/** What stands before the long columns: what is behind them is reached through all of them. */
const SUMMARY = 'id, ensemble, version, status, started_by, created_at, finished_at';
const ABOUT = `ref, id, ensemble, version, status, seed, started_by, created_at, deadline_at, finished_at, duration,
  coalesce(agents, ${COUNT_RUNS}) AS agents, error`;
const RECORD = `${ABOUT}, output, input, ${STARTED_AT}, retry_of`;
/** Behind every id that can be made. */
const BEHIND_ALL = '\u{10FFFF}';

/** Where executions of a status stand: the conditions under which each place is looked through in the order of its ids. */
function placesOf(status: ExecutionStatus | undefined): readonly string[] {
  if (status === undefined) return [''];
  if (status === 'completed') return ["AND status = 'completed' "];
  const free = `AND ${OPEN_OR_FAILED} AND status = ${toLiteral(status)} `;
  return status === 'running' ? [free, 'AND owner IS NOT NULL '] : [free];
}

export function executionsTable(connection: SqlConnection, namespace: string): ExecutionsTable {
  const here = `namespace = ${toLiteral(namespace)}`;
  const select = connection.prepare(`SELECT ${RECORD} FROM ensemble_executions WHERE namespace = ? AND id = ?`);
  const selectAccepted = connection.prepare(`
    SELECT id, ensemble, version, seed, started_by, created_at, deadline_at, input, retry_of
    FROM ensemble_executions WHERE namespace = ? AND id = ?`);
  const selectStatus = connection.prepare(`SELECT ${SUMMARY} FROM ensemble_executions WHERE namespace = ? AND id = ?`);
  const { readRuns, ...steps } = stepsTable(connection, namespace);
  const bytes = bytesOf(connection);
  const listed = (
    column: string,
  ) => `CASE WHEN ${bytes(column)} <= ${LISTED_VALUE_BYTES} THEN ${column} END AS ${column},
    ${bytes(column)} > ${LISTED_VALUE_BYTES} AS ${column}_omitted`;
  const LISTED = `${ABOUT}, ${listed('output')}, ${listed('input')}, ${STARTED_AT}, retry_of`;
  const lists = new Map<string, SqlStatement>();

  const list = ({ ensemble, status, parentId, before, limit }: ExecutionQuery): readonly SqlRow[] => {
    const filters = `${ensemble === undefined ? '' : 'AND ensemble = ? '}${parentId === undefined ? '' : 'AND parent_id = ? '}`;
    const key = `${status} ${filters}`;
    const places = placesOf(status);
    let statement = lists.get(key);
    if (!statement) {
      const parts = places.map(
        (place) => `SELECT ${LISTED} FROM ensemble_executions WHERE ${here} ${filters}${place}AND id < ?`,
      );
      statement = connection.prepare(`${parts.join(' UNION ALL ')} ORDER BY id DESC LIMIT ?`);
      lists.set(key, statement);
    }
    const params = [
      ...(ensemble === undefined ? [] : [toTextColumn(ensemble)]),
      ...(parentId === undefined ? [] : [toTextColumn(parentId)]),
      before === undefined ? BEHIND_ALL : toTextColumn(before),
    ];
    return statement.all([...places.flatMap(() => params), limit]);
  };

  return {
    getAccepted(id) {
      const [row] = selectAccepted.all([namespace, toTextColumn(id)]);
      return row && readAccepted(row);
    },
    getStatus(id) {
      const [row] = selectStatus.all([namespace, toTextColumn(id)]);
      return row && readSummary(row);
    },
    getExecution(id, { agents = true } = {}) {
      const [row] = select.all([namespace, toTextColumn(id)]);
      return row && readExecution(row, agents ? readRuns(id) : []);
    },
    listExecutions: (query) => list(query).map(readListed),
    ...steps,
  };
}
