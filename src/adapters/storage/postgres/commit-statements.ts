/**
 * The statements that commit: one for each shape of write, so that what is written most is also the least to run.
 *
 * Every one of them is fenced inside of itself. `alive` holds the owner's row, so that nobody can take the owner for dead
 * between the look and the write; the execution's row must name that owner and the epoch.
 */

import type { Names } from './names.ts';
import { type Statement, statement } from './sql-client.ts';

/**
 * `fresh` takes starts, and results of first attempts, of which it is told the less; it fails where one of them is stored already.
 * `careful` takes any record, replaces an earlier attempt, and leaves a result or an execution as it is.
 */
export interface Shape {
  readonly fresh: Statement;
  readonly careful: Statement;
}

/** Parameters: the namespace, the owner, then each statement's parts in the order in which they are named here. */
export interface CommitStatements {
  /** One step: its execution and epoch, its columns. */
  readonly step: Shape;
  /** Steps: arrays. */
  readonly steps: Shape;
  /** One start: its columns. */
  readonly start: Shape;
  /** Starts: arrays. */
  readonly starts: Shape;
  /** One entry that ends its execution or gives it up: its execution, epoch and columns; arrays of its steps. */
  readonly settle: Shape;
  /** One entry that changes a state: its execution, epoch and columns, the key of its last step; arrays of its steps. */
  readonly state: Shape;
  /** Many entries: arrays of starts; of settles, and how many; of steps. */
  readonly mixed: Shape;
  /** All that entries may hold: starts; states, and how many; settles, and how many; steps; deliveries. */
  readonly whole: Statement;
}

export const START_COLUMNS = [
  ...['id', 'ensemble', 'version', 'status', 'epoch', 'seed', 'started_by'],
  ...['created_at', 'deadline_at', 'retry_of', 'due_at', 'input', 'parent_id', 'root_id'],
];
export const STEP_COLUMNS = [
  ...['key', 'name', 'status', 'attempts', 'started_at', 'duration'],
  ...['retry_at', 'note', 'error', 'output'],
];
/** What is told of a result of a first attempt. */
export const RESULT_COLUMNS = ['key', 'name', 'started_at', 'duration', 'output'];
const RESULT = { columns: 'status, attempts, note', values: "'completed', 1, false" };
export const SETTLE_COLUMNS = [
  ...['status', 'due_at', 'finished_at', 'duration', 'agents', 'heard'],
  ...['waits_for', 'error', 'output'],
];
export const STATE_COLUMNS = ['ensemble', 'expected', 'updated_at', 'value'];
export const DELIVERY_COLUMNS = ['delivery', 'event', 'target', 'payload', 'created_at', 'due_at'];
/** Of an entry that only changes a state: what its last step is stored under, if it is. */
const LAST_KEY = ['last_key'];
/** What stands before the columns of each part of an entry. */
const FENCED = ['id', 'epoch'];
/** What stands behind them where entries may change a state: the state that the entry stands and falls with. */
const GATED = ['ensemble'];

/** Types of columns that hold no text. */
const TYPES: Readonly<Record<string, string>> = {
  ...{
    epoch: 'integer',
    attempts: 'integer',
    agents: 'integer',
    heard: 'integer',
    expected: 'integer',
    note: 'boolean',
  },
  ...{ created_at: 'bigint', deadline_at: 'bigint', due_at: 'bigint', started_at: 'bigint', retry_at: 'bigint' },
  ...{ finished_at: 'bigint', updated_at: 'bigint', duration: 'double precision' },
};
const typeOf = (column: string) => TYPES[column] ?? 'text';

/** Numbers parameters in the order in which a statement's parts are put together. */
function parameters() {
  let last = 2;
  const next = (type: string) => {
    last += 1;
    return `$${last}::${type}`;
  };
  return {
    /** One row of scalars. */
    row: (columns: readonly string[]) =>
      `(SELECT $1 AS namespace, ${columns.map((c) => `${next(typeOf(c))} AS ${c}`).join(', ')}) x`,
    /** A row for each element of one array a column, numbered in `nr`. */
    rows: (columns: readonly string[]) =>
      `unnest(${columns.map((c) => next(`${typeOf(c)}[]`)).join(', ')}) WITH ORDINALITY x (${columns.join(', ')}, nr)`,
    /**
     * The same, with their number in a parameter, and each with its namespace. The limit takes nothing away: it lets the
     * planner expect few rows, of which it knows nothing, so that it looks each of them up by the whole of the primary key.
     */
    fewRows: (columns: readonly string[]) =>
      `(SELECT $1, u.* FROM unnest(${columns.map((c) => next(`${typeOf(c)}[]`)).join(', ')}) u LIMIT ${next('bigint')})
      x (namespace, ${columns.join(', ')})`,
  };
}

type Parameters = ReturnType<typeof parameters>;

/** What is different in the statements of a shape. */
interface ShapeSql {
  /** Steps are inserted from rows `x` of these columns, for an execution's ref. */
  readonly columns: readonly string[];
  readonly insert: (ref: string) => string;
  /** What becomes of a step whose key is stored. */
  readonly conflict: string;
  /** What becomes of a start whose id is stored. */
  readonly keep: string;
}

const from = (as: string, columns: readonly string[]) => columns.map((column) => `${as}.${column}`).join(', ');
const countOf = (name: string) => `(SELECT count(*) FROM ${name}) AS ${name}`;
const fence = (namespace: string) =>
  `e.namespace = ${namespace} AND e.id = x.id AND e.epoch = x.epoch AND e.owner = (SELECT ref FROM alive)`;
const FENCE = fence('x.namespace');
const GATE = '(x.ensemble IS NULL OR x.ensemble IN (SELECT ensemble FROM changed))';

export function commitStatements({ owners, executions, steps, states, deliveries }: Names): CommitStatements {
  const alive = `alive AS (SELECT ref FROM ${owners} WHERE namespace = $1 AND id = $2 FOR KEY SHARE)`;
  const make = (text: (p: Parameters) => string, columns: readonly string[] = []) =>
    statement(`WITH ${alive}${text(parameters())}`, columns);

  const replaced = STEP_COLUMNS.filter((column) => column !== 'key' && column !== 'note');
  const results: ShapeSql = {
    columns: RESULT_COLUMNS,
    insert: (ref) => `INSERT INTO ${steps} AS s (execution, ${RESULT_COLUMNS.join(', ')}, ${RESULT.columns})
      SELECT ${ref}, ${from('x', RESULT_COLUMNS)}, ${RESULT.values}`,
    conflict: '',
    keep: '',
  };
  const records: ShapeSql = {
    columns: STEP_COLUMNS,
    insert: (ref) => `INSERT INTO ${steps} AS s (execution, ${STEP_COLUMNS.join(', ')})
      SELECT ${ref}, ${from('x', STEP_COLUMNS)}`,
    conflict: `ON CONFLICT (execution, key) DO UPDATE
      SET ${replaced.map((column) => `${column} = excluded.${column}`).join(', ')}
      WHERE s.retry_at IS NOT NULL AND s.attempts <= excluded.attempts`,
    keep: 'ON CONFLICT (namespace, id) DO NOTHING',
  };
  const shape = (text: (p: Parameters, sql: ShapeSql) => string, columns: readonly string[] = []): Shape => ({
    fresh: make((p) => text(p, results), columns),
    careful: make((p) => text(p, records), columns),
  });
  const held = `SELECT e.ref FROM ${executions} e WHERE ${fence('$1')}`;
  const heldOrStarted = `${held} UNION ALL SELECT n.ref FROM started n WHERE n.id = x.id AND x.epoch IS NULL`;
  const insertSteps = (p: Parameters, { columns, insert, conflict }: ShapeSql) => `${insert('t.ref')}
    FROM ${p.rows([...FENCED, ...columns])} CROSS JOIN LATERAL (${held} LIMIT 1) t ORDER BY x.nr ${conflict}`;

  // Who queues needs no owner.
  const insertStarts = (rows: string, conflict: string) => `
    INSERT INTO ${executions} (namespace, owner, ${START_COLUMNS.join(', ')}, started_at)
    SELECT $1, CASE WHEN x.due_at IS NULL THEN (SELECT ref FROM alive) END, ${from('x', START_COLUMNS)},
      CASE WHEN x.due_at IS NULL THEN x.created_at END
    FROM ${rows} WHERE x.due_at IS NOT NULL OR EXISTS (SELECT FROM alive)
    ${conflict}`;

  // Who was asked to stop waits for nothing, and who was given a signal that its owner has not heard of does not wait.
  const updateSettled = (rows: string) => `
    UPDATE ${executions} e SET owner = NULL, status = x.status, finished_at = x.finished_at, duration = x.duration,
      agents = x.agents, error = x.error, output = x.output, waits_for = x.waits_for,
      due_at = least(x.due_at, CASE WHEN x.due_at IS NOT NULL THEN e.cancel_at END,
        CASE WHEN x.status = 'waiting' AND (x.heard IS NULL OR e.signals > x.heard) THEN e.signalled_at END),
      started_at = CASE WHEN x.status = 'queued' THEN NULL ELSE e.started_at END
    FROM ${rows} WHERE ${FENCE}`;

  const versionOf = (x: string) =>
    `coalesce((SELECT o.version FROM ${states} o WHERE o.namespace = $1 AND o.ensemble = ${x}.ensemble), 0)`;
  const insertStates = (rows: string, where: string) => `
    INSERT INTO ${states} AS s (namespace, ensemble, version, updated_at, value)
    SELECT $1, x.ensemble, x.expected + 1, x.updated_at, x.value
    FROM ${rows} WHERE ${where} AND ${versionOf('x')} = x.expected
    ORDER BY x.ensemble
    ON CONFLICT (namespace, ensemble) DO UPDATE
      SET version = excluded.version, updated_at = excluded.updated_at, value = excluded.value
      WHERE s.version = excluded.version - 1`;

  const insertDeliveries = (p: Parameters) => `
    INSERT INTO ${deliveries} (execution, id, event, target, payload, created_at, due_at)
    SELECT t.ref, ${from('x', DELIVERY_COLUMNS)} FROM ${p.rows([...FENCED, ...DELIVERY_COLUMNS, ...GATED])}
    CROSS JOIN LATERAL (${heldOrStarted} LIMIT 1) t WHERE ${GATE} ORDER BY x.nr
    ON CONFLICT (execution, id) DO NOTHING`;

  return {
    step: shape(
      (p, { columns, insert, conflict }) => ` ${insert('e.ref')}
      FROM ${p.row([...FENCED, ...columns])}, ${executions} e WHERE ${FENCE} ${conflict}`,
    ),
    steps: shape((p, sql) => ` ${insertSteps(p, sql)}`),
    start: shape((p, { keep }) => insertStarts(p.row(START_COLUMNS), keep)),
    starts: shape((p, { keep }) => insertStarts(p.rows(START_COLUMNS), keep)),
    settle: shape(
      (p, sql) => `, settled AS (${updateSettled(p.row([...FENCED, ...SETTLE_COLUMNS]))} RETURNING e.ref), put AS (
        ${sql.insert('t.ref')} FROM settled t CROSS JOIN ${p.rows(sql.columns)} ORDER BY x.nr ${sql.conflict}
      ) SELECT ref FROM settled`,
      ['ref'],
    ),
    state: shape(
      (p, sql) => `, x AS MATERIALIZED (
        SELECT x.*, e.ref FROM ${p.row([...FENCED, ...STATE_COLUMNS, ...LAST_KEY])}, ${executions} e WHERE ${FENCE}
      ), changed AS (${insertStates('x', 'true')} RETURNING 1), put AS (
        ${sql.insert('t.ref')} FROM x t CROSS JOIN ${p.rows(sql.columns)}
        WHERE EXISTS (SELECT FROM changed) ORDER BY x.nr ${sql.conflict}
      ) SELECT ${countOf('changed')},
        ${versionOf('x')} <> x.expected
          AND NOT EXISTS (SELECT FROM ${steps} s WHERE s.execution = x.ref AND s.key = x.last_key) AS is_conflict
      FROM x`,
      ['changed', 'is_conflict'],
    ),
    mixed: shape(
      (p, sql) => `, started AS (${insertStarts(p.rows(START_COLUMNS), sql.keep)} RETURNING 1),
      settled AS (${updateSettled(p.fewRows([...FENCED, ...SETTLE_COLUMNS]))} RETURNING e.id),
      put AS (${insertSteps(p, sql)} RETURNING 1)
      SELECT ${countOf('started')}, ${countOf('settled')}, ${countOf('put')},
        (SELECT json_agg(id)::text FROM settled) AS ids`,
      ['started', 'settled', 'put', 'ids'],
    ),
    whole: make(
      (p) => `, started AS (${insertStarts(p.rows(START_COLUMNS), records.keep)} RETURNING id, ref),
      changed AS (
        ${insertStates(`${p.fewRows([...FENCED, ...STATE_COLUMNS])}, ${executions} e`, FENCE)} RETURNING ensemble
      ),
      settled AS (${updateSettled(p.fewRows([...FENCED, ...SETTLE_COLUMNS, ...GATED]))} AND ${GATE} RETURNING e.id),
      put AS (
        ${records.insert('t.ref')} FROM ${p.rows([...FENCED, ...STEP_COLUMNS, ...GATED])}
        CROSS JOIN LATERAL (${heldOrStarted} LIMIT 1) t WHERE ${GATE} ORDER BY x.nr ${records.conflict} RETURNING 1
      ),
      sent AS (${insertDeliveries(p)} RETURNING 1)
      SELECT ${countOf('started')}, ${countOf('changed')}, ${countOf('settled')}, ${countOf('put')}, ${countOf('sent')},
        (SELECT json_agg(id)::text FROM settled) AS ids, (SELECT json_agg(ensemble)::text FROM changed) AS ensembles`,
      ['started', 'changed', 'settled', 'put', 'sent', 'ids', 'ensembles'],
    ),
  };
}
