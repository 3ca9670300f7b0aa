/** Reads executions: one, a list, a count. */

import type { ExecutionReader } from '../../../../engine/storage/storage.port.ts';
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
import type { SqlConnection } from '../drivers/driver.ts';
import { toLiteral, toTextColumn } from '../tables/columns.ts';
import { OPEN_OR_FAILED } from '../tables/names.ts';
import { executionList } from './list-executions.ts';
import { ACCEPTED, RECORD } from './record-columns.ts';
import { stepsTable } from './steps-table.ts';

/** The methods of the storage port in this file. */
export type ExecutionsTable = Omit<ExecutionReader, 'findEnded' | 'limitWaits'>;

export function executionsTable(connection: SqlConnection, namespace: string): ExecutionsTable {
  const here = `namespace = ${toLiteral(namespace)}`;
  const select = connection.prepare(`SELECT ${RECORD} FROM ensemble_executions WHERE namespace = ? AND id = ?`);
  const selectAccepted = connection.prepare(`
    SELECT ${ACCEPTED}
    FROM ensemble_executions WHERE namespace = ? AND id = ?`);
  const selectByKey = connection.prepare(`
    SELECT id FROM ensemble_executions INDEXED BY ensemble_executions_by_key WHERE ${here} AND idempotency_key = ?`);
  const selectStatus = connection.prepare(
    `SELECT ${SUMMARY_COLUMNS.join(', ')} FROM ensemble_executions WHERE namespace = ? AND id = ?`,
  );
  const countDescendants = connection.prepare(`
    SELECT count(*) AS descendants FROM (
      SELECT 1 FROM ensemble_executions INDEXED BY ensemble_executions_by_root WHERE ${here} AND root_id = ? LIMIT ?
    )`);
  const oldest = (index: string, where: string) => `SELECT * FROM (
    SELECT created_at FROM ensemble_executions INDEXED BY ensemble_executions_${index} WHERE ${here} AND ${where} ORDER BY created_at LIMIT ?)`;
  const free = (status: string) => oldest('by_status', `status = '${status}' AND ${OPEN_OR_FAILED}`);
  const count = (rows: string) =>
    connection.prepare(`
    SELECT count(*) AS number, min(created_at) AS oldest FROM (${rows} ORDER BY created_at LIMIT ?)`);
  const countQueued = count(free('queued'));
  const countWaiting = count(free('waiting'));
  const countPaused = count(free('paused'));
  // A running execution is held or free, which are two indexes.
  const countRunning = count(`${free('running')} UNION ALL ${oldest('held', 'owner IS NOT NULL')}`);
  const countUnresolved = count(oldest('unresolved', unresolvedOf()));
  const countAccepted = connection.prepare(`
    SELECT count(*) AS accepted FROM (
      SELECT 1 FROM ensemble_executions INDEXED BY ensemble_executions_by_creation WHERE ${here} AND created_at >= ? LIMIT ?
    )`);
  const { readRuns, ...steps } = stepsTable(connection, namespace);
  const list = executionList(connection, namespace);

  return {
    countDescendants: (rootId, limit) => countDescendants.all([toTextColumn(rootId), limit])[0]?.descendants as number,
    countOpen: (limit) => ({
      queued: readOpenCount(countQueued.all([limit, limit])[0]),
      running: readOpenCount(countRunning.all([limit, limit, limit])[0]),
      waiting: readOpenCount(countWaiting.all([limit, limit])[0]),
      paused: readOpenCount(countPaused.all([limit, limit])[0]),
      unresolved: readOpenCount(countUnresolved.all([limit, limit])[0]),
    }),
    countAccepted: (since, limit) => countAccepted.all([since, limit])[0]?.accepted as number,
    findByKey(key) {
      const [row] = selectByKey.all([toTextColumn(key)]);
      return row && readId(row);
    },
    getAccepted(id) {
      const [row] = selectAccepted.all([namespace, toTextColumn(id)]);
      return row && readAccepted(row);
    },
    getStatus(id) {
      const [row] = selectStatus.all([namespace, toTextColumn(id)]);
      return row && readSummary(row);
    },
    get(id, { agents = true } = {}) {
      const [row] = select.all([namespace, toTextColumn(id)]);
      return row && readExecution(row, agents ? readRuns(id) : []);
    },
    list: (query) => list(query).map(readListed),
    ...steps,
  };
}
