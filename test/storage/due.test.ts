/** When a free execution is due: the functions and the SQL expressions say the same. */

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DUE_IN_POSTGRES, DUE_IN_SQLITE } from '../../src/adapters/storage/sql/due.ts';
import type { SqlConnection } from '../../src/adapters/storage/sqlite/drivers/driver.ts';
import { loadDriver } from '../../src/adapters/storage/sqlite/drivers/load-driver.ts';
import { signal } from '../../src/conformance/storage-suite/context.ts';
import {
  dueWhenCancelled,
  dueWhenReleased,
  dueWhenSignalled,
  isDueAsReleased,
} from '../../src/engine/execution/due.ts';
import type { Release } from '../../src/engine/execution/stored-execution.ts';
import { createDatabase, findServer, type TestDatabase } from './postgres-server.ts';

const STATUSES = ['queued', 'running', 'waiting'] as const;
const NOTHING = { cancelRequestedAt: undefined, signals: 0, signalledAt: undefined };

/** Runs an expression over one row `e`, and another row `x` if there is one. */
type Evaluate = (expression: string, e: Row, x?: Row) => Promise<unknown>;
type Row = Readonly<Record<string, number | string | null>>;

const literal = (value: number | string | null) => (typeof value === 'string' ? `'${value}'` : String(value));
const rowOf = (name: string, row: Row, types: Readonly<Record<string, string>> = {}) =>
  `(SELECT ${Object.entries(row)
    .map(
      ([column, value]) =>
        `${types[column] ? `CAST(${literal(value)} AS ${types[column]})` : literal(value)} AS ${column}`,
    )
    .join(', ')}) AS ${name}`;
const TYPES = {
  due_at: 'bigint',
  cancel_at: 'bigint',
  signalled_at: 'bigint',
  signals: 'int',
  seen: 'int',
  owner: 'int',
};
const selectOf = (expression: string, e: Row, x: Row = { none: 0 }) =>
  `SELECT ${expression} AS due FROM ${rowOf('e', e, TYPES)}, ${rowOf('x', x, TYPES)}`;

describe('the rules', () => {
  it('a released execution is due at its `dueAt`', () => {
    for (const status of STATUSES) expect(dueWhenReleased({ status, dueAt: 100 }, NOTHING)).toBe(100);
  });

  it('it is due at the request to cancel it, if that is earlier', () => {
    const facts = { ...NOTHING, cancelRequestedAt: 40 };
    for (const status of STATUSES) {
      expect(dueWhenReleased({ status, dueAt: 100 }, facts)).toBe(40);
      expect(dueWhenReleased({ status, dueAt: 30 }, facts)).toBe(30);
    }
    expect([dueWhenCancelled(100, 40), dueWhenCancelled(30, 40)]).toEqual([40, 30]);
  });

  it('it is due at the first signal since its claim, if it waits and its worker has not seen all signals', () => {
    const facts = { ...NOTHING, signals: 2, signalledAt: 50 };
    const dueAt = (release: Partial<Release>) => dueWhenReleased({ status: 'waiting', dueAt: 100, ...release }, facts);
    expect([dueAt({}), dueAt({ signals: 1 }), dueAt({ signals: 2 })]).toEqual([50, 50, 100]);
    expect([dueAt({ status: 'running' }), dueAt({ status: 'queued' })]).toEqual([100, 100]);
    expect(dueWhenReleased({ status: 'waiting', dueAt: 100 }, { ...facts, signalledAt: undefined })).toBe(100);
  });

  it('a signal makes it due only if it waits for this signal', () => {
    const go = signal(1, 1, { name: 'go', createdAt: 50 });
    const dueAt = (status: Release['status'], waitsFor?: readonly string[]) =>
      dueWhenSignalled({ status, dueAt: 100, waitsFor }, go);
    expect([dueAt('waiting'), dueAt('waiting', ['go']), dueAt('waiting', ['stop']), dueAt('waiting', [])]).toEqual([
      50, 50, 100, 100,
    ]);
    expect([dueAt('running'), dueAt('queued')]).toEqual([100, 100]);
  });

  it('it is due as released also if a request or a signal made it due earlier since', () => {
    const waits = { status: 'waiting', dueAt: 100 } as const;
    expect(isDueAsReleased(100, waits, NOTHING)).toBe(true);
    expect(isDueAsReleased(99, waits, NOTHING)).toBe(false);
    expect(isDueAsReleased(40, waits, { ...NOTHING, cancelRequestedAt: 40 })).toBe(true);
    expect(isDueAsReleased(50, waits, { ...NOTHING, signals: 1 })).toBe(true);
    expect(isDueAsReleased(101, waits, { ...NOTHING, signals: 1 })).toBe(false);
    expect(isDueAsReleased(50, { status: 'running', dueAt: 100 }, { ...NOTHING, signals: 1 })).toBe(false);
  });
});

function sameInSql(
  evaluate: Evaluate,
  due: typeof DUE_IN_SQLITE,
  cancelled: (at: number | null) => Row,
  at: number,
): void {
  it('of a release', async () => {
    for (const status of STATUSES)
      for (const dueAt of [10, 100])
        for (const seen of [undefined, 0, 1, 2])
          for (const signals of [0, 1, 2])
            for (const signalledAt of signals > 0 ? [undefined, 50] : [undefined])
              for (const requested of [false, true]) {
                const release = { status, dueAt, ...(seen !== undefined && { signals: seen }) };
                const facts = { cancelRequestedAt: requested ? at : undefined, signals, signalledAt };
                const e = {
                  signals: signals || null,
                  signalled_at: signalledAt ?? null,
                  ...cancelled(requested ? at : null),
                };
                const found = await evaluate(due.released('x'), e, { status, due_at: dueAt, seen: seen ?? null });
                expect([release, facts, found]).toEqual([release, facts, dueWhenReleased(release, facts)]);
              }
  });

  it('of a request to cancel', async () => {
    for (const dueAt of [10, 100])
      expect(await evaluate(due.cancelled('40'), { owner: null, due_at: dueAt })).toBe(dueWhenCancelled(dueAt, 40));
    expect(await evaluate(due.cancelled('40'), { owner: 1, due_at: null })).toBe(null);
  });

  it('of a signal', async () => {
    for (const status of STATUSES)
      for (const waitsFor of [undefined, ['go'], ['stop']]) {
        const e = { owner: null, status, due_at: 100, waits_for: waitsFor ? JSON.stringify(waitsFor) : null };
        const found = await evaluate(due.signalled(`e.waits_for LIKE '%"go"%'`, '50'), e);
        const go = signal(1, 1, { name: 'go', createdAt: 50 });
        expect([e, found]).toEqual([e, dueWhenSignalled({ status, dueAt: 100, waitsFor }, go)]);
      }
    const held = { owner: 1, status: 'running', due_at: null, waits_for: null };
    expect(await evaluate(due.signalled('true', '50'), held)).toBe(null);
  });
}

describe('the same in SQLite', () => {
  let connection: SqlConnection;
  beforeAll(async () => {
    connection = (await loadDriver(undefined))(':memory:');
  });
  afterAll(() => connection.close());
  const evaluate: Evaluate = async (expression, e, x) => connection.prepare(selectOf(expression, e, x)).all([])[0]?.due;
  sameInSql(evaluate, DUE_IN_SQLITE, (at) => ({ cancel_requested: at === null ? 0 : 1 }), 0);
});

const hasServer = await findServer();
describe.skipIf(!hasServer)('the same in Postgres', () => {
  let database: TestDatabase;
  let client: pg.Client;
  beforeAll(async () => {
    database = await createDatabase();
    client = new pg.Client({ connectionString: database.connectionString });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });
  const evaluate: Evaluate = async (expression, e, x) => {
    const { due } = (await client.query(selectOf(expression, e, x))).rows[0];
    return due === null ? null : Number(due);
  };
  sameInSql(evaluate, DUE_IN_POSTGRES, (at) => ({ cancel_at: at }), 40);
});
