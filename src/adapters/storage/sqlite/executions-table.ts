/** Executions and their steps: accepting, and every way of reading. */

import { OrchestratorError } from '../../../engine/errors.ts';
import { AGENTS_IN_RECORD } from '../../../engine/model/execution.ts';
import type { ExecutionQuery, Storage } from '../../../engine/ports/storage.ts';
import { readNumber, toJsonColumn, toTextColumn } from './columns.ts';
import type { SqlConnection, SqlRow, SqlStatement } from './connection.ts';
import { readExecution, readListed, readStep } from './read-execution.ts';

/** The verbs of the storage port that this table answers. */
export type ExecutionsTable = Pick<Storage, 'accept' | 'getExecution' | 'listExecutions' | 'listSteps'>;

const COUNT_AGENTS = '(SELECT count(*) FROM ensemble_steps WHERE execution = ref AND retry_at IS NULL)';
const RECORD = `ref, id, ensemble, version, status, epoch, seed, started_by, created_at, deadline_at, finished_at, duration,
  coalesce(agents, ${COUNT_AGENTS}) AS agents, error, output, input`;
/** Behind every id that can be made. */
const BEHIND_ALL = '\u{10FFFF}';

export function executionsTable(connection: SqlConnection, namespace: string): ExecutionsTable {
  const insert = connection.prepare(`
    INSERT INTO ensemble_executions
      (namespace, id, ensemble, version, status, epoch, seed, started_by, created_at, deadline_at, input)
    VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`);
  const select = connection.prepare(`SELECT ${RECORD} FROM ensemble_executions WHERE namespace = ? AND id = ?`);
  // Inside, the index alone is read and sorted: long outputs are fetched for the page only.
  const selectSteps = connection.prepare(`
    SELECT * FROM ensemble_steps WHERE seq IN (
      SELECT seq FROM ensemble_steps
      WHERE execution = (SELECT ref FROM ensemble_executions WHERE namespace = ? AND id = ?)
      ORDER BY seq LIMIT ? OFFSET ?
    ) ORDER BY seq`);
  const lists = new Map<string, SqlStatement>();

  const readSteps = (id: string, after: number, limit: number) =>
    selectSteps.all([namespace, toTextColumn(id), limit, after]).map((row) => readStep(row, id));

  const list = ({ ensemble, status, before, limit }: ExecutionQuery): readonly SqlRow[] => {
    const filters = `${ensemble === undefined ? '' : 'AND ensemble = ? '}${status === undefined ? '' : 'AND status = ? '}`;
    let statement = lists.get(filters);
    if (!statement) {
      statement = connection.prepare(
        `SELECT ${RECORD} FROM ensemble_executions WHERE namespace = ? ${filters}AND id < ? ORDER BY id DESC LIMIT ?`,
      );
      lists.set(filters, statement);
    }
    const filter = [
      ...(ensemble === undefined ? [] : [toTextColumn(ensemble)]),
      ...(status === undefined ? [] : [status]),
    ];
    return statement.all([namespace, ...filter, before === undefined ? BEHIND_ALL : toTextColumn(before), limit]);
  };

  return {
    accept({ id, ensemble, version, trigger, input, seed, createdAt, deadlineAt = null, epoch }) {
      const names = [namespace, toTextColumn(id), toTextColumn(ensemble), toTextColumn(version)];
      const rest = [epoch, toTextColumn(seed), JSON.stringify(trigger), createdAt, deadlineAt, toJsonColumn(input)];
      if (insert.run([...names, ...rest]) === 0)
        throw new OrchestratorError('CONFLICT', `execution ${id} is stored already`);
    },
    getExecution(id) {
      const [row] = select.all([namespace, toTextColumn(id)]);
      return (
        row && readExecution(row, readSteps(id, 0, AGENTS_IN_RECORD), readNumber(row, 'agents', `execution ${id}`))
      );
    },
    listExecutions: (query) => list(query).map(readListed),
    listSteps: (id, { after, limit }) => readSteps(id, after, limit),
  };
}
