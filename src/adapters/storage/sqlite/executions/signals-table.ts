/** The signals of executions. A stored signal wakes a waiting execution, or is noticed by its worker's next `poll`. */

import { type ExecutionStatus, isFinal } from '../../../../engine/execution/execution.ts';
import type { NewSignal } from '../../../../engine/execution/stored-execution.ts';
import type { SignalResult, SignalStore } from '../../../../engine/storage/storage.port.ts';
import { DUE_IN_SQLITE } from '../../sql/due.ts';
import { columnsOf, readSignal, SIGNAL, writeFields } from '../../sql/fields.ts';
import type { RunTransaction, SqlConnection } from '../drivers/driver.ts';
import { toLiteral, toTextColumn } from '../tables/columns.ts';

/** Stores a signal. The caller has started a transaction. */
export type PutSignal = (signal: NewSignal) => SignalResult;

export function createPutSignal(connection: SqlConnection, namespace: string): PutSignal {
  const select = connection.prepare(
    `SELECT ref, status FROM ensemble_executions WHERE namespace = ${toLiteral(namespace)} AND id = ?`,
  );
  const selectKnown = connection.prepare('SELECT 1 FROM ensemble_signals WHERE execution = ? AND id = ?');
  const insert = connection.prepare(
    `INSERT INTO ensemble_signals (execution, ${columnsOf(SIGNAL)}) VALUES (?, ${columnsOf(SIGNAL).fill('?')})`,
  );
  const update = connection.prepare(`
    UPDATE ensemble_executions AS e
    SET signals = coalesce(signals, 0) + 1, signalled_at = coalesce(signalled_at, ?),
      due_at = ${DUE_IN_SQLITE.signalled('instr(e.waits_for, ?) > 0', '?')}
    WHERE ref = ?`);
  return (signal) => {
    const { id, executionId, name, createdAt } = signal;
    const [row] = select.all([toTextColumn(executionId)]);
    if (!row) return 'unknown';
    const ref = row.ref as number;
    if (selectKnown.all([ref, toTextColumn(id)]).length > 0) return 'stored';
    if (isFinal(row.status as ExecutionStatus)) return 'ended';
    insert.run([ref, ...writeFields(SIGNAL, signal, toTextColumn)]);
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
  const ofExecution = `SELECT ${columnsOf(SIGNAL)} FROM ensemble_signals
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
