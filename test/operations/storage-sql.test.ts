/** `storage` of type sql (d1): statements with values, pages, and what is refused. */

import { describe, expect, it } from 'vitest';
import { isOrchestratorError } from '../../src/engine/base/errors.ts';
import type { JsonObject } from '../../src/engine/base/json/json.ts';
import { sqliteDatabase } from '../../src/entries/sqlite.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { execute, query, runConfigs, TABLE } from './storage-run.ts';

function refused(config: JsonObject, bindings = {}): readonly string[] {
  try {
    const flow = [{ agent: 's', operation: 'storage', config }];
    createTestOrchestrator({ ensembles: [{ name: 'e', flow }], bindings });
    return [];
  } catch (error) {
    if (!isOrchestratorError(error)) throw error;
    return [error.code, error.message];
  }
}

describe('`storage` of type sql', () => {
  it('executes and queries, also as d1, and expressions in the text are values', async () => {
    const outputs = await runConfigs(
      [
        TABLE,
        execute('INSERT INTO users (id, name) VALUES (1, ${input.name}), (2, ${null})'),
        { ...query('SELECT name FROM users WHERE id = ${input.id}'), type: 'd1' },
        execute('DELETE FROM users'),
      ],
      { input: { name: "O'Neil", id: 1 } },
    );
    expect(outputs).toEqual([
      { changes: 0, success: true },
      { changes: 2, success: true },
      { results: [{ name: "O'Neil" }], count: 1 },
      { changes: 2, success: true },
    ]);
  });

  it.each(["' OR 1=1 --", "'; DROP TABLE users; --", "x' UNION SELECT 1, 'y"])(
    '%s as a value finds nothing',
    async (name) => {
      const outputs = await runConfigs(
        [
          TABLE,
          execute("INSERT INTO users VALUES (1, 'Ada')"),
          query('SELECT * FROM users WHERE name = ${input.name}'),
          query('SELECT * FROM users WHERE name = ?', { params: ['${input.name}'] }),
          query('SELECT * FROM users WHERE name = :name', { params: { name: '${input.name}' } }),
          query('SELECT count(*) AS n FROM users'),
        ],
        { input: { name } },
      );
      expect(outputs.slice(2)).toEqual([
        ...Array.from({ length: 3 }, () => ({ results: [], count: 0 })),
        { results: [{ n: 1 }], count: 1 },
      ]);
    },
  );

  it('params fill ?, $1 and :name, and leave quotes, comments and casts alone', async () => {
    const outputs = await runConfigs([
      query("SELECT ? AS a, '?' AS b, ? AS c -- ?", { params: [1, 'x'] }),
      query('SELECT $2 AS a, $1 AS b, $2 AS c', { params: [1, 'x'] }),
      query("SELECT :v AS a, ':v' AS b, :w AS c", { params: { v: true, w: null } }),
    ]);
    expect(outputs.map(({ results }) => results[0])).toEqual([
      { a: 1, b: '?', c: 'x' },
      { a: 'x', b: 1, c: 'x' },
      { a: 1, b: ':v', c: null },
    ]);
  });

  it.each<[string, JsonObject, RegExp]>([
    ['SELECT ? AS a', { params: [] }, /has 1 placeholders \?, and `params` has 0 values/],
    ['SELECT $1 AS a', { params: [1, 2] }, /placeholders up to \$1, and `params` has 2 values/],
    ['SELECT :a AS a', { params: { a: 1, b: 2 } }, /no placeholder :b/],
    ['SELECT :a AS a, :b AS b', { params: { a: 1 } }, /no value for :b/],
    ['SELECT ? AS a', {}, /placeholder \? has no value/],
  ])('%s with %o fails, and says what does not fit', async (text, more, message) => {
    const [error] = await runConfigs([query(text, more)]);
    expect(error).toMatchObject({ code: 'INVALID_INPUT', message: expect.stringMatching(message) });
  });

  it('a query is read in pages, each of which continues after the one before', async () => {
    const ids = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 2500) SELECT x FROM c';
    const bindings = { sql: sqliteDatabase({ path: ':memory:' }) };
    const page = (cursor?: string) =>
      runConfigs([query(ids, { ...(cursor !== undefined && { cursor: '${input.cursor}' }) })], {
        bindings,
        input: { cursor: cursor ?? null },
      });
    const sizes: [number, number][] = [];
    let cursor: string | undefined;
    do {
      const [output] = await page(cursor);
      sizes.push([output.results[0].x, output.count]);
      cursor = output.nextCursor;
    } while (cursor !== undefined);
    expect(sizes).toEqual([
      [1, 1000],
      [1001, 1000],
      [2001, 500],
    ]);
  });

  it('a cursor of another statement, of other values or of nothing is refused', async () => {
    const text = 'SELECT x FROM (SELECT 1 AS x UNION SELECT 2 UNION SELECT 3) WHERE x <> ${input.not}';
    const [{ nextCursor }] = await runConfigs([query(text, { limit: 1 })], { input: { not: 9 } });
    const again = (given: JsonObject, not: number) =>
      runConfigs([query(text, { limit: 1, cursor: '${input.cursor}', ...given })], {
        input: { not, cursor: nextCursor },
      });
    expect(await again({}, 9)).toMatchObject([{ results: [{ x: 2 }] }]);
    const bad = [
      await again({}, 8),
      await again({ query: 'SELECT 1 AS x' }, 9),
      await again({ cursor: 'x'.repeat(1e6) }, 9),
    ];
    for (const [error] of bad)
      expect(error).toMatchObject({ code: 'INVALID_INPUT', message: expect.stringMatching(/`cursor`/) });
  });

  it('a statement that the database refuses fails once, without the values', async () => {
    const [, , error] = await runConfigs(
      [TABLE, execute("INSERT INTO users VALUES (1, 'a')"), execute('INSERT INTO users VALUES (1, ${input.secret})')],
      {
        input: { secret: 'hunter2-hunter2' },
      },
    );
    expect(error).toMatchObject({ code: 'AGENT_FAILED', message: 'SQL: UNIQUE constraint failed: users.id' });
  });
});

describe('`storage` of type sql at load', () => {
  const bindings = { sql: sqliteDatabase({ path: ':memory:' }) };

  it('without an SQL database, it says what option to set; the tables of the orchestrator are never one', () => {
    for (const type of ['d1', 'sql']) {
      const [code, message] = refused({ type, action: 'query', query: 'SELECT 1' });
      expect(code).toBe('NOT_CONFIGURED');
      expect(message).toContain('set the option `bindings: { sql: sqliteDatabase(...) }`');
    }
    expect(refused({ type: 'sql', action: 'query', query: 'SELECT 1', binding: 'kv' })[1]).toMatch(/another kind/);
  });

  it('with SQL databases of other names, it names them', () => {
    const [, message] = refused({ type: 'sql', action: 'query', query: 'SELECT 1' }, { orders: bindings.sql });
    expect(message).toContain('name another binding; those of this kind: `orders`');
  });

  it.each<[string, JsonObject, RegExp]>([
    ['a value in quotes', query("SELECT * FROM t WHERE a = '${input.a}'"), /quotes/],
    ['a value in the place of a name', query('SELECT * FROM ${input.t}'), /name/],
    ['a query that is one expression', query('${input.q}'), /query/],
    ['a second statement', query('SELECT 1; DELETE FROM t'), /statement/],
    ['params beside expressions', query('SELECT ${input.a} + ?', { params: [1] }), /`params`|params/],
    ['a secret, which a query could select', query('SELECT ${env.KEY} AS k'), /KEY/],
    ['get', { type: 'sql', action: 'get', key: 'k' }, /use query, execute or export/],
    ['limit of 0', query('SELECT 1', { limit: 0 }), /at least 1/],
    ['limit of 10,001', query('SELECT 1', { limit: 10_001 }), /at most 10000/],
    ['a page of `execute`', execute('DELETE FROM t', { limit: 1 }), /limit/],
  ])('%s is refused', (_what, config, message) => {
    const flow = [{ agent: 's', operation: 'storage', config }];
    expect(() =>
      createTestOrchestrator({ ensembles: [{ name: 'e', flow }], bindings, secrets: { KEY: 'k'.repeat(20) } }),
    ).toThrow(message);
  });
});
