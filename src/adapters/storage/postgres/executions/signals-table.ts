/**
 * The signals of executions, and the signals that commits send to other executions.
 *
 * A statement that stores a signal locks only the row of its execution and no other row afterwards. So workers that
 * signal each other's executions never deadlock. For this reason, a commit only stores the signals that it sends. After
 * the commit, each is delivered by a statement of its own. If the process dies before that, the next process that polls
 * delivers them.
 */

import type { NewSignal } from '../../../../engine/execution/stored-execution.ts';
import type { SignalResult, SignalStore } from '../../../../engine/storage/storage.port.ts';
import { readNumber } from '../../sql/columns.ts';
import { DUE_IN_POSTGRES } from '../../sql/due.ts';
import { columnsOf, readSignal, SIGNAL, typesOf, writeFields } from '../../sql/fields.ts';
import { type SqlClient, type SqlRunner, statement, toArray } from '../drivers/driver.ts';
import { toTextColumn } from '../tables/columns.ts';
import type { Names } from '../tables/names.ts';

export interface SignalsTable extends SignalStore {
  /** Locks the worker's row, so that the worker is not considered dead before the transaction ends. */
  lockWorker(on: SqlRunner, worker: string): Promise<void>;
  /** Stores the signals that entries send, in the transaction of the entries. */
  send(on: SqlRunner, signals: readonly NewSignal[]): Promise<void>;
  /** Delivers the sent signals to their executions. */
  deliverSent(): Promise<void>;
}

const COLUMNS = columnsOf(SIGNAL);
const ALL = COLUMNS.join(', ');
/** How many signals are read at a time for delivery. */
const MAX_DELIVERED = 100;

/** @param onFreed - called when an execution became due, or when its worker must be notified of a signal */
export function signalsTable(client: SqlClient, names: Names, namespace: string, onFreed: () => void): SignalsTable {
  const { executions, owners, signals, sentSignals } = names;
  const lockWorker = statement(`SELECT ref FROM ${owners} WHERE namespace = $1 AND id = $2 FOR KEY SHARE`, ['ref']);
  /** @param source - a query for the columns of one signal, or for no row */
  const store = (source: string, before = '') => `
    WITH ${before}x AS MATERIALIZED (${source}), t AS MATERIALIZED (
      SELECT e.namespace, e.id, e.ref, e.finished_at FROM x CROSS JOIN LATERAL (
        SELECT * FROM ${executions} WHERE namespace = $1 AND id = x.execution LIMIT 1 FOR NO KEY UPDATE
      ) e
    ), put AS (
      INSERT INTO ${signals} (execution, ${ALL})
      SELECT t.ref, ${COLUMNS.map((name) => `x.${name}`).join(', ')} FROM x, t WHERE t.finished_at IS NULL
      ON CONFLICT (execution, id) DO NOTHING RETURNING created_at
    ), notified AS (
      UPDATE ${executions} e SET signals = coalesce(e.signals, 0) + 1,
        signalled_at = coalesce(e.signalled_at, put.created_at),
        due_at = ${DUE_IN_POSTGRES.signalled('position(to_json(x.name)::text IN e.waits_for) > 0', 'put.created_at')}
      FROM put, t, x WHERE e.namespace = t.namespace AND e.id = t.id RETURNING 1
    )
    SELECT (SELECT count(*) FROM x) AS found, (SELECT count(*) FROM notified) AS notified,
      (SELECT CASE WHEN t.finished_at IS NULL THEN 'stored' ELSE 'ended' END FROM t) AS answer,
      EXISTS (SELECT FROM ${signals} s, t, x WHERE s.execution = t.ref AND s.id = x.id) AS is_known`;
  const columns = ['found', 'notified', 'answer', 'is_known'];
  const put = statement(
    store(`SELECT $2::text AS execution, ${typesOf(SIGNAL).map((type, i) => `$${i + 3}::${type} AS ${COLUMNS[i]}`)}`),
    columns,
  );
  const ofExecution = `SELECT ${ALL} FROM ${signals}
    WHERE execution = (SELECT ref FROM ${executions} WHERE namespace = $1 AND id = $2)`;
  const list = statement(`${ofExecution} AND name = $3 ORDER BY seq LIMIT $4::bigint OFFSET $5::bigint`, COLUMNS);
  const selectOne = statement(`${ofExecution} AND id = $3`, COLUMNS);
  const insertSent = statement(
    `INSERT INTO ${sentSignals} (namespace, execution, ${ALL})
    SELECT $1, x.execution, ${COLUMNS.map((name) => `x.${name}`).join(', ')}
    FROM unnest($2::text[], ${typesOf(SIGNAL).map((type, i) => `$${i + 3}::${type}[]`)})
      WITH ORDINALITY x (execution, ${ALL}, nr) ORDER BY x.nr`,
  );
  const selectSent = statement(
    `SELECT seq FROM ${sentSignals} WHERE namespace = $1 ORDER BY seq LIMIT ${MAX_DELIVERED}`,
    ['seq'],
  );
  // A signal that another process is delivering is skipped.
  const deliverOne = statement(
    store(
      'SELECT * FROM gone',
      `gone AS (
        DELETE FROM ${sentSignals} WHERE namespace = $1 AND seq = (
          SELECT seq FROM ${sentSignals} WHERE namespace = $1 AND seq = $2::bigint FOR UPDATE SKIP LOCKED
        ) RETURNING execution, ${ALL}
      ), `,
    ),
    columns,
  );

  return {
    async put(signal) {
      const params = [namespace, ...toColumns(signal)];
      const [row = {}] = (await client.run(put, params)).rows;
      if (readNumber(row, 'notified', 'a signal') > 0) onFreed();
      return row.is_known === 't' ? 'stored' : ((row.answer ?? 'unknown') as SignalResult);
    },
    async list(executionId, { name, after, limit }) {
      const { rows } = await client.run(list, [namespace, toTextColumn(executionId), toTextColumn(name), limit, after]);
      return rows.map((row) => readSignal(row, executionId));
    },
    async find(executionId, id) {
      const [row] = (await client.run(selectOne, [namespace, toTextColumn(executionId), toTextColumn(id)])).rows;
      return row && readSignal(row, executionId);
    },
    async lockWorker(on, worker) {
      await on.run(lockWorker, [namespace, toTextColumn(worker)]);
    },
    async send(on, sent) {
      const rows = sent.map(toColumns);
      const arrays = ['execution', ...COLUMNS].map((_, i) => toArray(rows.map((row) => row[i] ?? null)));
      await on.run(insertSent, [namespace, ...arrays]);
    },
    async deliverSent() {
      for (;;) {
        const { rows } = await client.run(selectSent, [namespace]);
        let found = 0;
        let notified = 0;
        for (const { seq = null } of rows) {
          const [row = {}] = (await client.run(deliverOne, [namespace, seq])).rows;
          found += readNumber(row, 'found', 'a signal');
          notified += readNumber(row, 'notified', 'a signal');
        }
        if (notified > 0) onFreed();
        if (rows.length < MAX_DELIVERED || found === 0) return;
      }
    },
  };
}

function toColumns(signal: NewSignal) {
  return [toTextColumn(signal.executionId), ...writeFields(SIGNAL, signal, toTextColumn)];
}
