/** Deliveries. Commits insert them; a Postgres commit does so in a statement of its own. */

import { andThen, type MaybePromise } from '../../../../engine/base/maybe-promise.ts';
import {
  type DeliveryState,
  firstDeliveryId,
  type NewDelivery,
  type StoredDelivery,
} from '../../../../engine/delivery/delivery.ts';
import type { DeliveryQuery, DeliveryStore, SettledDelivery } from '../../../../engine/delivery/delivery-store.port.ts';
import { readNumber, readText, type StoredRow, toJsonColumn } from '../columns.ts';
import type { SqlDialect, SqlParam, SqlQuery } from '../dialect.ts';
import { columnsOf, DELIVERY_STATE, NEW_DELIVERY, readFields, writeFields } from '../fields.ts';

export interface DeliveriesTable extends DeliveryStore {
  /** Stores a delivery, unless its id is stored already. */
  put(delivery: NewDelivery): MaybePromise<number>;
}

const STATE = columnsOf(DELIVERY_STATE);
const ALL = [...STATE, 'body'];
const SETTLED = ['text', 'integer', 'text', 'integer', 'bigint', 'text'];
/** How many results one statement stores, and how many ids it finds: a Durable Object takes 100 parameters. */
const SETTLED_AT_ONCE = 16;
const FOUND_AT_ONCE = 64;

export function deliveriesTable(dialect: SqlDialect, namespace: string): DeliveriesTable {
  const deliveries = dialect.table('deliveries');
  // A new one is due at once.
  const names = [...columnsOf(NEW_DELIVERY), 'due_at'];
  const insert = dialect.prepare(
    `INSERT INTO ${deliveries} (namespace, ${names.join(', ')})
    VALUES ($1, ${names.map((_, i) => `$${i + 2}`).join(', ')}) ON CONFLICT DO NOTHING`,
  );
  // Looks up the next receiver in the index, and never passes the deliveries of one.
  const next = (after: string) => `(SELECT d.receiver FROM ${deliveries} d
      WHERE d.namespace = $1 AND d.due_at IS NOT NULL AND d.receiver > ${after} ORDER BY d.receiver LIMIT 1)`;
  const selectReceivers = dialect.prepare(
    `WITH RECURSIVE r (receiver) AS (
      SELECT ${next('$2')} UNION ALL SELECT ${next('r.receiver')} FROM r WHERE r.receiver IS NOT NULL
    )
    SELECT r.receiver, (SELECT d.due_at FROM ${deliveries} d WHERE d.namespace = $1 AND d.receiver = r.receiver
      AND d.due_at IS NOT NULL ORDER BY d.due_at LIMIT 1) AS due_at
    FROM r WHERE r.receiver IS NOT NULL LIMIT $3::bigint`,
    ['receiver', 'due_at'],
  );
  const due = (columns: readonly string[]) => `SELECT ${columns.join(', ')} FROM ${deliveries}
    WHERE namespace = $1 AND receiver = $2 AND due_at IS NOT NULL AND due_at <= $3::bigint ORDER BY due_at LIMIT $4::bigint`;
  const claim = dialect.prepareTake(
    due(ALL),
    `WITH due AS MATERIALIZED (${due(['id'])} ${dialect.skipLocked})
    UPDATE ${deliveries} SET due_at = $5 WHERE namespace = $1 AND id IN (SELECT id FROM due)`,
    ALL,
  );
  const settle = settleQueries(dialect, deliveries);
  const requeueSome = (count: number) => {
    const places = Array.from({ length: count }, (_, i) => `$${i + 3}`);
    return dialect.prepare(
      `UPDATE ${deliveries} SET status = 'pending', due_at = $2, attempts_before = attempts
      WHERE namespace = $1 AND id IN (${places.join(', ')}) AND status <> 'pending'`,
    );
  };
  const requeue = { one: requeueSome(1), many: requeueSome(FOUND_AT_ONCE), atOnce: FOUND_AT_ONCE };
  const selectOne = dialect.prepare(
    `SELECT ${ALL.join(', ')} FROM ${deliveries} WHERE namespace = $1 AND id = $2`,
    ALL,
  );
  // The condition is not `due_at IS NULL`: while nearly all are due, the planner of Postgres would read the whole table for it.
  const purge = dialect.prepare(
    `WITH old AS MATERIALIZED (
      SELECT id FROM ${deliveries} WHERE namespace = $1 AND id < $2 AND coalesce(due_at, -1) = -1 ORDER BY id LIMIT $3::bigint ${dialect.skipLocked}
    )
    DELETE FROM ${deliveries} WHERE namespace = $1 AND id IN (SELECT id FROM old)`,
  );
  const list = listQueries(dialect, deliveries);

  return {
    put: (delivery) =>
      insert.count([namespace, ...writeFields(NEW_DELIVERY, delivery, dialect.text), delivery.createdAt]),
    receivers: (after, limit) =>
      andThen(selectReceivers.rows([namespace, dialect.text(after), limit]), (rows) =>
        rows.map((row) => ({
          receiver: readText(row, 'receiver', 'a receiver'),
          dueAt: readNumber(row, 'due_at', 'a receiver'),
        })),
      ),
    claim: (receiver, { now, until, limit }) =>
      andThen(claim.rows([namespace, dialect.text(receiver), now, limit, until]), (rows) =>
        rows.map((row) => ({ ...readDelivery(row), dueAt: until })).sort((a, b) => (a.id < b.id ? -1 : 1)),
      ),
    settle: (results) => settle(namespace, results),
    requeue(ids, now) {
      return countAll(
        requeue,
        [namespace, now],
        ids.map((id) => [dialect.text(id)]),
        [null],
      );
    },
    get: (id) => andThen(selectOne.rows([namespace, dialect.text(id)]), ([row]) => row && readDelivery(row)),
    list: (query) => andThen(list(namespace, query), (rows) => rows.map(readState)),
    purge: (before, limit) => purge.count([namespace, firstDeliveryId(before), limit]),
  };
}

/** Stores the results of many deliveries with few statements. */
function settleQueries(dialect: SqlDialect, deliveries: string) {
  const prepare = (rows: number) => {
    const values = Array.from({ length: rows }, (_, row) => {
      const params = SETTLED.map((type, column) => `$${row * SETTLED.length + column + 2}::${type}`);
      return `(${params.join(', ')})`;
    });
    return dialect.prepare(
      `UPDATE ${deliveries} AS d SET status = x.column3, attempts = x.column4, due_at = x.column5, log = x.column6
      FROM (VALUES ${values.join(', ')}) AS x
      WHERE d.namespace = $1 AND d.id = x.column1 AND d.status = 'pending' AND d.attempts = x.column2`,
    );
  };
  const settle = { one: prepare(1), many: prepare(SETTLED_AT_ONCE), atOnce: SETTLED_AT_ONCE };
  const toParams = ({ id, expectedAttempts, status, attempts, dueAt, log }: SettledDelivery): SqlParam[] => [
    ...[dialect.text(id), expectedAttempts, status, attempts],
    ...[dueAt ?? null, toJsonColumn(log as never)],
  ];
  const none = SETTLED.map(() => null);
  return (namespace: string, results: readonly SettledDelivery[]): MaybePromise<number> =>
    countAll(settle, [namespace], results.map(toParams), none);
}

/** A statement for one row of parameters, and one for many. */
interface ForRows {
  readonly one: SqlQuery;
  readonly many: SqlQuery;
  readonly atOnce: number;
}

/**
 * Runs few statements for many rows. Each statement is a commit of SQLite, so few rows fill a statement for many with rows that match nothing.
 * @param first - the parameters before the rows @param none - a row that matches nothing
 * @returns how many rows were changed
 */
function countAll(
  { one, many, atOnce }: ForRows,
  first: readonly SqlParam[],
  all: readonly (readonly SqlParam[])[],
  none: readonly SqlParam[],
): MaybePromise<number> {
  const counts: MaybePromise<number>[] = [];
  for (let at = 0; at < all.length; at += atOnce) {
    const rows = all.slice(at, at + atOnce);
    if (rows.length > 1) while (rows.length < atOnce) rows.push(none);
    counts.push((rows.length === 1 ? one : many).count([...first, ...rows.flat()]));
  }
  return sum(counts);
}

function sum(counts: readonly MaybePromise<number>[]): MaybePromise<number> {
  const add = (all: readonly number[]) => all.reduce((total, count) => total + count, 0);
  const isDone = (all: readonly MaybePromise<number>[]): all is readonly number[] =>
    all.every((count) => typeof count === 'number');
  return isDone(counts) ? add(counts) : Promise.all(counts).then(add);
}

const FILTERS = {
  executionId: 'execution = $',
  ensemble: 'ensemble = $',
  status: 'status = $',
  receiver: 'receiver = $',
  since: 'id >= $',
  until: 'id < $',
  before: 'id < $',
} as const;
type Filter = keyof typeof FILTERS;

/** One statement for each combination of filters. */
function listQueries(dialect: SqlDialect, deliveries: string) {
  const made = new Map<string, SqlQuery>();
  const prepare = (filters: readonly Filter[]) => {
    const conditions = filters.map((filter, i) => ` AND ${FILTERS[filter]}${i + 3}`);
    return dialect.prepare(
      `SELECT ${STATE.join(', ')} FROM ${deliveries} WHERE namespace = $1${conditions.join('')} ORDER BY id DESC LIMIT $2::bigint`,
      STATE,
    );
  };
  return (namespace: string, query: DeliveryQuery) => {
    const filters = (Object.keys(FILTERS) as Filter[]).filter((filter) => query[filter] !== undefined);
    const key = filters.join(' ');
    const known = made.get(key) ?? prepare(filters);
    made.set(key, known);
    const values = filters.map((filter) => {
      const value = query[filter] as string | number;
      return typeof value === 'number' ? firstDeliveryId(value) : dialect.text(value);
    });
    return known.rows([namespace, query.limit, ...values]);
  };
}

/** @throws INTERNAL when a column is damaged */
function readState(row: StoredRow): DeliveryState {
  return readFields(DELIVERY_STATE, row, `delivery ${String(row.id)}`);
}

function readDelivery(row: StoredRow): StoredDelivery {
  return { ...readState(row), body: readText(row, 'body', `delivery ${String(row.id)}`) };
}
