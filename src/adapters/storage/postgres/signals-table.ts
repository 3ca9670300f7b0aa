/**
 * The signals of executions, and those that entries bring along for others.
 *
 * Whatever gives an execution a signal locks its row alone, and nothing else behind that: owners that signal each other's
 * executions never wait in a circle. So an entry only stores what it sends, and each is given on by itself behind that; what a process
 * that died left behind is given on by whoever looks next.
 */

import type { NewSignal } from '../../../engine/model/stored-execution.ts';
import type { SignalResult, Storage } from '../../../engine/ports/storage.ts';
import { readJson, readNumber, readText, toJsonColumn } from '../sql/columns.ts';
import { toText } from './columns.ts';
import type { Names } from './names.ts';
import { type SqlClient, type SqlRow, type SqlRunner, statement, toArray } from './sql-client.ts';

/** `signalled_at` is the first signal since the execution was claimed. */
export const SIGNALS_MIGRATION = `
  ALTER TABLE $.executions ADD COLUMN signals integer, ADD COLUMN signalled_at bigint;
  CREATE INDEX executions_signalled ON $.executions (owner) WHERE signalled_at IS NOT NULL AND owner IS NOT NULL;
  CREATE TABLE $.signals (
    execution bigint NOT NULL,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    created_at bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    payload text NOT NULL,
    PRIMARY KEY (execution, id)
  ) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);
  CREATE INDEX signals_by_name ON $.signals (execution, name, seq);
  CREATE TABLE $.sent_signals (
    seq bigint GENERATED ALWAYS AS IDENTITY,
    created_at bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    execution text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    payload text NOT NULL,
    PRIMARY KEY (namespace, seq)
  );
`;

export interface SignalsTable extends Pick<Storage, 'putSignal' | 'listSignals' | 'findSignal'> {
  /** Sees to it that nobody takes an owner for dead before the transaction ends. */
  holdOwner(on: SqlRunner, owner: string): Promise<void>;
  /** Stores what entries send, in their transaction. */
  send(on: SqlRunner, signals: readonly NewSignal[]): Promise<void>;
  /** Gives what was sent to its executions. */
  giveSent(): Promise<void>;
}

const SIGNAL = ['id', 'name', 'payload', 'created_at'];
/** How many are given on by one look. */
const AT_ONCE = 100;

/** @param onFreed - told when something became due, or its owner is to hear of a signal */
export function signalsTable(client: SqlClient, names: Names, namespace: string, onFreed: () => void): SignalsTable {
  const { executions, owners, signals, sentSignals } = names;
  const holdOwner = statement(`SELECT ref FROM ${owners} WHERE namespace = $1 AND id = $2 FOR KEY SHARE`, ['ref']);
  /** @param given - gives the columns of one signal; no row when there is none */
  const give = (given: string, before = '') => `
    WITH ${before}x AS MATERIALIZED (${given}), t AS MATERIALIZED (
      SELECT e.namespace, e.id, e.ref, e.finished_at FROM x CROSS JOIN LATERAL (
        SELECT * FROM ${executions} WHERE namespace = $1 AND id = x.execution LIMIT 1 FOR NO KEY UPDATE
      ) e
    ), put AS (
      INSERT INTO ${signals} (execution, id, name, payload, created_at)
      SELECT t.ref, x.id, x.name, x.payload, x.created_at FROM x, t WHERE t.finished_at IS NULL
      ON CONFLICT (execution, id) DO NOTHING RETURNING created_at
    ), told AS (
      UPDATE ${executions} e SET signals = coalesce(e.signals, 0) + 1,
        signalled_at = coalesce(e.signalled_at, put.created_at),
        due_at = CASE WHEN e.status = 'waiting' AND e.owner IS NULL
            AND (e.waits_for IS NULL OR position(to_json(x.name)::text IN e.waits_for) > 0)
          THEN least(e.due_at, put.created_at) ELSE e.due_at END
      FROM put, t, x WHERE e.namespace = t.namespace AND e.id = t.id RETURNING 1
    )
    SELECT (SELECT count(*) FROM x) AS given, (SELECT count(*) FROM told) AS told,
      (SELECT CASE WHEN t.finished_at IS NULL THEN 'stored' ELSE 'ended' END FROM t) AS answer,
      EXISTS (SELECT FROM ${signals} s, t, x WHERE s.execution = t.ref AND s.id = x.id) AS is_known`;
  const columns = ['given', 'told', 'answer', 'is_known'];
  const put = statement(
    give(
      'SELECT $2::text AS execution, $3::text AS id, $4::text AS name, $5::text AS payload, $6::bigint AS created_at',
    ),
    columns,
  );
  const ofExecution = `SELECT id, name, payload, created_at FROM ${signals}
    WHERE execution = (SELECT ref FROM ${executions} WHERE namespace = $1 AND id = $2)`;
  const list = statement(`${ofExecution} AND name = $3 ORDER BY seq LIMIT $4::bigint OFFSET $5::bigint`, SIGNAL);
  const selectOne = statement(`${ofExecution} AND id = $3`, SIGNAL);
  const insertSent = statement(
    `INSERT INTO ${sentSignals} (namespace, execution, id, name, payload, created_at)
    SELECT $1, x.execution, x.id, x.name, x.payload, x.created_at
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
      WITH ORDINALITY x (execution, id, name, payload, created_at, nr) ORDER BY x.nr`,
  );
  const selectSent = statement(`SELECT seq FROM ${sentSignals} WHERE namespace = $1 ORDER BY seq LIMIT ${AT_ONCE}`, [
    'seq',
  ]);
  // Whoever comes second to one that another is giving on leaves it to that one.
  const giveOne = statement(
    give(
      'SELECT * FROM gone',
      `gone AS (
        DELETE FROM ${sentSignals} WHERE namespace = $1 AND seq = (
          SELECT seq FROM ${sentSignals} WHERE namespace = $1 AND seq = $2::bigint FOR UPDATE SKIP LOCKED
        ) RETURNING execution, id, name, payload, created_at
      ), `,
    ),
    columns,
  );

  return {
    async putSignal({ executionId, id, name, payload, createdAt }) {
      const params = [namespace, toText(executionId), toText(id), toText(name), toJsonColumn(payload), createdAt];
      const [row = {}] = (await client.run(put, params)).rows;
      if (readNumber(row, 'told', 'a signal') > 0) onFreed();
      return row.is_known === 't' ? 'stored' : ((row.answer ?? 'unknown') as SignalResult);
    },
    async listSignals(executionId, { name, after, limit }) {
      const { rows } = await client.run(list, [namespace, toText(executionId), toText(name), limit, after]);
      return rows.map((row) => readSignal(row, executionId));
    },
    async findSignal(executionId, id) {
      const [row] = (await client.run(selectOne, [namespace, toText(executionId), toText(id)])).rows;
      return row && readSignal(row, executionId);
    },
    async holdOwner(on, owner) {
      await on.run(holdOwner, [namespace, toText(owner)]);
    },
    async send(on, sent) {
      const texts = [
        sent.map(({ executionId }) => toText(executionId)),
        sent.map(({ id }) => toText(id)),
        sent.map(({ name }) => toText(name)),
        sent.map(({ payload }) => toJsonColumn(payload)),
      ];
      const createdAt = toArray(sent.map((signal) => signal.createdAt));
      await on.run(insertSent, [namespace, ...texts.map(toArray), createdAt]);
    },
    async giveSent() {
      for (;;) {
        const { rows } = await client.run(selectSent, [namespace]);
        let given = 0;
        let told = 0;
        for (const { seq = null } of rows) {
          const [row = {}] = (await client.run(giveOne, [namespace, seq])).rows;
          given += readNumber(row, 'given', 'a signal');
          told += readNumber(row, 'told', 'a signal');
        }
        if (told > 0) onFreed();
        if (rows.length < AT_ONCE || given === 0) return;
      }
    },
  };
}

function readSignal(row: SqlRow, executionId: string): NewSignal {
  const name = `signal ${row.id} of execution ${executionId}`;
  return {
    id: readText(row, 'id', name),
    executionId,
    name: readText(row, 'name', name),
    payload: readJson(row, 'payload', name),
    createdAt: readNumber(row, 'created_at', name),
  };
}
