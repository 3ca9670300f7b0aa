/** The signals of executions. A stored signal wakes a waiting execution, or is noticed by its worker's next `poll`. */

import { type ExecutionStatus, isFinal } from '../../../../engine/model/execution.ts';
import type { NewSignal } from '../../../../engine/model/stored-execution.ts';
import type { SignalResult, SignalStore } from '../../../../engine/ports/storage.ts';
import { readJson, readNumber, readText, toJsonColumn } from '../../sql/columns.ts';
import { DUE_IN_SQLITE } from '../../sql/due.ts';
import { toLiteral, toTextColumn } from './columns.ts';
import type { RunTransaction, SqlConnection, SqlRow } from '../drivers/driver.ts';

/** Stores a signal. The caller has started a transaction. */
export type PutSignal = (signal: NewSignal) => SignalResult;

export function createPutSignal(connection: SqlConnection, namespace: string): PutSignal {
  const select = connection.prepare(
    `SELECT ref, status FROM ensemble_executions WHERE namespace = ${toLiteral(namespace)} AND id = ?`,
  );
  const selectKnown = connection.prepare('SELECT 1 FROM ensemble_signals WHERE execution = ? AND id = ?');
  const insert = connection.prepare(
    'INSERT INTO ensemble_signals (execution, id, name, created_at, payload) VALUES (?, ?, ?, ?, ?)',
  );
  const update = connection.prepare(`
    UPDATE ensemble_executions AS e
    SET signals = coalesce(signals, 0) + 1, signalled_at = coalesce(signalled_at, ?),
      due_at = ${DUE_IN_SQLITE.signalled('instr(e.waits_for, ?) > 0', '?')}
    WHERE ref = ?`);
  return ({ id, executionId, name, payload, createdAt }) => {
    const [row] = select.all([toTextColumn(executionId)]);
    if (!row) return 'unknown';
    const ref = row.ref as number;
    if (selectKnown.all([ref, toTextColumn(id)]).length > 0) return 'stored';
    if (isFinal(row.status as ExecutionStatus)) return 'ended';
    insert.run([ref, toTextColumn(id), toTextColumn(name), createdAt, toJsonColumn(payload)]);
    update.run([createdAt, JSON.stringify(name), createdAt, ref]);
    return 'stored';
  };
}

export function signalsTable(
  connection: SqlConnection,
  namespace: string,
  transaction: RunTransaction,
  put: PutSignal,
): SignalStore {
  const ofExecution = `SELECT id, name, created_at, payload FROM ensemble_signals
    WHERE execution = (SELECT ref FROM ensemble_executions WHERE namespace = ${toLiteral(namespace)} AND id = ?)`;
  const select = connection.prepare(`${ofExecution} AND name = ? ORDER BY seq LIMIT ? OFFSET ?`);
  const selectOne = connection.prepare(`${ofExecution} AND id = ?`);
  return {
    put: (signal) => transaction(() => put(signal)),
    list: (executionId, { name, after, limit }) =>
      select
        .all([toTextColumn(executionId), toTextColumn(name), limit, after])
        .map((row) => readSignal(row, executionId)),
    find(executionId, id) {
      const [row] = selectOne.all([toTextColumn(executionId), toTextColumn(id)]);
      return row && readSignal(row, executionId);
    },
  };
}

function readSignal(row: SqlRow, executionId: string): NewSignal {
  const name = `signal ${String(row.id)} of execution ${executionId}`;
  return {
    id: readText(row, 'id', name),
    executionId,
    name: readText(row, 'name', name),
    payload: readJson(row, 'payload', name),
    createdAt: readNumber(row, 'created_at', name),
  };
}
