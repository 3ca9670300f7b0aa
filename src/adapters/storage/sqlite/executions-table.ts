/** Executions and their steps: every way of reading. */

import { AGENTS_IN_RECORD, type ExecutionStatus } from '../../../engine/model/execution.ts';
import type { ExecutionQuery, StepQuery, Storage } from '../../../engine/ports/storage.ts';
import { readAccepted, readExecution, readListed, readStep } from '../sql/read-execution.ts';
import { toLiteral, toTextColumn } from './columns.ts';
import type { SqlConnection, SqlRow, SqlStatement } from './connection.ts';
import { STARTED_AT } from './started-at.ts';
import { OPEN_OR_FAILED } from './statuses.ts';

/** The verbs of the storage port that this table answers. */
export type ExecutionsTable = Pick<Storage, 'getAccepted' | 'getExecution' | 'listExecutions' | 'listSteps'>;

// Notes have an index of their own: whether a row is one stands behind its output, which may be long.
const NOTES = 'FROM ensemble_steps AS notes INDEXED BY ensemble_steps_notes WHERE notes.note = 1 AND notes.execution';
const COUNT_AGENTS = `(SELECT count(*) FROM ensemble_steps WHERE execution = ref AND retry_at IS NULL)
  - (SELECT count(*) ${NOTES} = ref)`;
const RECORD = `ref, id, ensemble, version, status, seed, started_by, created_at, deadline_at, finished_at, duration,
  coalesce(agents, ${COUNT_AGENTS}) AS agents, error, output, input, ${STARTED_AT}, retry_of`;
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
  const one = '(SELECT ref FROM ensemble_executions WHERE namespace = ? AND id = ?)';
  // Inside, the index alone is read and sorted: long outputs are fetched for the page only.
  const prepareSteps = (but: string) =>
    connection.prepare(`
      SELECT * FROM ensemble_steps WHERE seq IN (
        SELECT seq FROM ensemble_steps WHERE execution = ${one} ${but} ORDER BY seq LIMIT ? OFFSET ?
      ) ORDER BY seq`);
  const selectSteps = prepareSteps('');
  const selectRuns = prepareSteps(`AND seq NOT IN (SELECT notes.seq ${NOTES} = ${one})`);
  const lists = new Map<string, SqlStatement>();

  const readSteps = (executionId: string, { after, limit, notes }: StepQuery) => {
    const id = toTextColumn(executionId);
    const rows = notes
      ? selectSteps.all([namespace, id, limit, after])
      : selectRuns.all([namespace, id, namespace, id, limit, after]);
    return rows.map((row) => readStep(row, executionId));
  };

  const list = ({ ensemble, status, parentId, before, limit }: ExecutionQuery): readonly SqlRow[] => {
    const filters = `${ensemble === undefined ? '' : 'AND ensemble = ? '}${parentId === undefined ? '' : 'AND parent_id = ? '}`;
    const key = `${status} ${filters}`;
    const places = placesOf(status);
    let statement = lists.get(key);
    if (!statement) {
      const parts = places.map(
        (place) => `SELECT ${RECORD} FROM ensemble_executions WHERE ${here} ${filters}${place}AND id < ?`,
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
    getExecution(id) {
      const [row] = select.all([namespace, toTextColumn(id)]);
      return row && readExecution(row, readSteps(id, { after: 0, limit: AGENTS_IN_RECORD }));
    },
    listExecutions: (query) => list(query).map(readListed),
    listSteps: readSteps,
  };
}
