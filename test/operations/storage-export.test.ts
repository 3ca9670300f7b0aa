/** `action: export`, pages of lists, and the formats of objects. */

import { parse } from 'csv-parse/sync';
import { describe, expect, it } from 'vitest';
import { memoryObjects } from '../../src/adapters/storage/memory/data.ts';
import type { JsonObject } from '../../src/engine/base/json/json.ts';
import type { ObjectStore } from '../../src/engine/storage/data.port.ts';
import { sqliteDatabase } from '../../src/entries/sqlite.ts';
import { runConfigs } from './storage-run.ts';

const exportOf = (query: string, more: JsonObject = {}): JsonObject => ({
  type: 'sql',
  action: 'export',
  query,
  ...more,
});
const numbers = (count: number) =>
  `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < ${count}) SELECT x AS id, 'name ' || x AS name FROM c`;

describe('export of rows', () => {
  it('CSV without a row has its header, where the columns are known', async () => {
    const csv = { format: 'csv' };
    const [kv, objects, sql] = await runConfigs([
      { type: 'kv', action: 'export', ...csv },
      { type: 'r2', action: 'export', ...csv },
      exportOf('SELECT 1 AS id, 2 AS name WHERE false', { ...csv, exportOptions: { fields: ['name', 'id'] } }),
    ]);
    expect([kv.content, objects.content, sql.content]).toEqual([
      ...['key,value\r\n', 'key,size,contentType,updatedAt\r\n', 'name,id\r\n'],
    ]);
  });

  it('CSV is read back by another library as it was, with every character that needs quotes', async () => {
    const cells = [
      'plain',
      'a,b',
      'say "hi"',
      'two\r\nlines',
      'ends with\n',
      ' space ',
      '',
      "it's",
      'ä👍',
      '\\',
      'x=1',
    ];
    const value = cells.map((cell, id) => ({ id, cell }));
    const [, exported] = await runConfigs([
      { type: 'r2', action: 'put', key: 'rows.csv', value, format: 'csv' },
      { type: 'r2', action: 'get', key: 'rows.csv' },
    ]);
    expect(parse(exported.content, { columns: true })).toEqual(value.map(({ id, cell }) => ({ id: String(id), cell })));
    expect(exported.content.split('\r\n')[1]).toBe('0,plain');
    expect(exported.contentType).toBe('text/csv; charset=utf-8');
  });

  it('a cell that a spreadsheet would run gets an apostrophe, and numbers stay numbers', async () => {
    const cells = ['=HYPERLINK("http://x")', '+1', '-1+1', '@SUM(1)', '\t=1', '\r=1', -5, '-12.50', '1e5'];
    const value = cells.map((cell) => ({ cell, '=x': null }));
    const [, exported] = await runConfigs([
      { type: 'r2', action: 'put', key: 'k', value, format: 'csv' },
      { type: 'r2', action: 'get', key: 'k' },
    ]);
    const [head, ...rows] = parse(exported.content) as string[][];
    expect(head).toEqual(['cell', "'=x"]);
    expect(rows.map(([cell]) => cell)).toEqual([
      ...['\'=HYPERLINK("http://x")', "'+1", "'-1+1", "'@SUM(1)", "'\t=1", "'\r=1", '-5', '-12.50', '1e5'],
    ]);
  });

  it('gives data, text and count, by default as JSON', async () => {
    const rows = [
      { id: 1, name: 'name 1' },
      { id: 2, name: 'name 2' },
    ];
    const [json, csv, bare, lines, none] = await runConfigs([
      exportOf(numbers(2)),
      exportOf(numbers(2), { format: 'csv' }),
      exportOf(numbers(2), { format: 'csv', exportOptions: { headers: false, fields: ['name', 'id'] } }),
      exportOf(numbers(2), { format: 'ndjson', exportOptions: { fields: ['id'] } }),
      exportOf('SELECT 1 AS id WHERE 1 = 0', { format: 'csv', exportOptions: { fields: ['id'] } }),
    ]);
    expect(json).toEqual({ data: rows, content: json.content, contentType: 'application/json', count: 2 });
    expect(JSON.parse(json.content)).toEqual(rows);
    expect(csv).toMatchObject({ content: 'id,name\r\n1,name 1\r\n2,name 2\r\n', data: rows });
    expect(bare).toMatchObject({ content: 'name 1,1\r\nname 2,2\r\n', data: [{ name: 'name 1', id: 1 }, rows[1]] });
    expect(lines).toMatchObject({ content: '{"id":1}\n{"id":2}\n', contentType: 'application/x-ndjson' });
    expect(none).toEqual({ data: [], content: 'id\r\n', contentType: 'text/csv; charset=utf-8', count: 0 });
  });

  it('a field that the rows lack is an error that names the columns', async () => {
    const [error] = await runConfigs([exportOf(numbers(1), { exportOptions: { fields: ['nmae'] } })]);
    expect(error).toMatchObject({
      code: 'INVALID_INPUT',
      message: 'storage: there is no column nmae; the columns are id, name',
    });
  });

  it('an export that is too large for an output names the limit and `exportOptions.to`', async () => {
    const [error] = await runConfigs([exportOf(numbers(60_000), { format: 'csv' })]);
    expect(error).toMatchObject({
      code: 'INVALID_OUTPUT',
      message: expect.stringMatching(/4 MiB.*`exportOptions\.to`/),
    });
  });

  it('kv: keys with their values; objects: keys with size and type; a prefix is literal', async () => {
    const [, , , kv, , , objects] = await runConfigs([
      { type: 'kv', action: 'put', key: 'a%1', value: { n: [1] } },
      { type: 'kv', action: 'put', key: 'ab', value: 2 },
      { type: 'kv', action: 'put', key: 'a%2', value: 'x' },
      { type: 'kv', action: 'export', prefix: 'a%', format: 'csv' },
      { type: 'objects', action: 'put', key: 'f/1', value: 'grüß' },
      { type: 'objects', action: 'put', key: 'g', value: '' },
      { type: 'objects', action: 'export', prefix: 'f/', exportOptions: { fields: ['key', 'size', 'contentType'] } },
    ]);
    expect(kv).toMatchObject({ content: 'key,value\r\na%1,"{""n"":[1]}"\r\na%2,x\r\n', count: 2 });
    expect(kv.data[0]).toEqual({ key: 'a%1', value: { n: [1] } });
    expect(objects.data).toEqual([{ key: 'f/1', size: 6, contentType: 'text/plain; charset=utf-8' }]);
  });
});

describe('export to an object', () => {
  const to = { exportOptions: { to: { key: 'reports/${input.day}.csv' } }, format: 'csv' };

  it('writes the rows, and gives key, count and size', async () => {
    const [written, read] = await runConfigs(
      [exportOf(numbers(3), to), { type: 'objects', action: 'get', key: 'reports/1.csv', format: 'csv' }],
      { input: { day: 1 } },
    );
    expect(written).toEqual({
      ...{ key: 'reports/1.csv', binding: 'objects', contentType: 'text/csv; charset=utf-8', count: 3, size: 39 },
    });
    expect(read).toMatchObject({ content: [1, 2, 3].map((id) => ({ id: String(id), name: `name ${id}` })), size: 39 });
  });

  it('a store that takes no parts takes up to 16 MiB; a larger export stores nothing', async () => {
    const [error, missing] = await runConfigs(
      [
        exportOf(
          'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 180) SELECT hex(zeroblob(50000)) AS a FROM c',
          to,
        ),
        { type: 'objects', action: 'get', key: 'reports/1.csv' },
      ],
      {
        bindings: { sql: sqliteDatabase({ path: ':memory:' }), objects: { ...memoryObjects(), putStream: undefined } },
        input: { day: 1 },
      },
    );
    expect(error).toMatchObject({ code: 'INVALID_OUTPUT', message: expect.stringMatching(/16 MiB.*putStream/) });
    expect(missing).toMatchObject({ code: 'NOT_FOUND' });
  });

  it('a statement that fails, and a key that no store takes, store nothing', async () => {
    const objects = memoryObjects();
    const bindings = { sql: sqliteDatabase({ path: ':memory:' }), objects };
    const outputs = await runConfigs([exportOf('SELECT x FROM nowhere', to), exportOf('SELECT 1 AS x', to)], {
      bindings,
      input: { day: 'x'.repeat(1_000_000) },
    });
    expect(outputs.map(({ code }) => code)).toEqual(['INVALID_INPUT', 'INVALID_INPUT']);
    const [failed] = await runConfigs([exportOf('SELECT x FROM nowhere', to)], { bindings, input: { day: 1 } });
    expect(failed).toMatchObject({ code: 'AGENT_FAILED', message: 'SQL: no such table: nowhere' });
    expect(await objects.list({ limit: 10, now: 0 })).toEqual([]);
  });

  it('gives the parts to a store with putStream, which decides how fast they come', async () => {
    const sizes: number[] = [];
    const memory = memoryObjects();
    const objects: ObjectStore = {
      ...memory,
      async putStream(_key, { content }) {
        for await (const part of content) sizes.push(part.byteLength);
        return sizes.reduce((a, b) => a + b, 0);
      },
    };
    const [output] = await runConfigs([exportOf(numbers(2000), to)], {
      bindings: { sql: sqliteDatabase({ path: ':memory:' }), objects },
      input: { day: 1 },
    });
    expect(output).toMatchObject({ count: 2000, size: sizes.reduce((a, b) => a + b, 0) });
    expect(sizes.length).toBeGreaterThan(3);
  });
});

describe('pages of `list`', () => {
  it('continue after the last key, and a cursor of another prefix is refused', async () => {
    const put = Array.from({ length: 5 }, (_, i) => ({ type: 'kv', action: 'put', key: `k${i}`, value: i }));
    const list = { type: 'kv', action: 'list', prefix: 'k' };
    const flow = [...put, { ...list, limit: 3 }, { ...list, limit: 3, cursor: '${s5.output.nextCursor}' }];
    const other = { ...list, prefix: '', cursor: '${s5.output.nextCursor}' };
    const outputs = await runConfigs([...flow, other, { ...list, limit: 5 }]);
    expect(outputs[5]).toEqual({ keys: ['k0', 'k1', 'k2'], count: 3, nextCursor: expect.any(String) });
    expect(outputs[6]).toEqual({ keys: ['k3', 'k4'], count: 2 });
    expect(outputs[7]).toMatchObject({ code: 'INVALID_INPUT' });
    expect(outputs[8]).toEqual({ keys: ['k0', 'k1', 'k2', 'k3', 'k4'], count: 5 });
  });

  it.each([['%'], ['_'], ['*'], ['../'], ['a\0'], ['x'.repeat(1_000_000)]])(
    'the prefix %.20s matches itself only',
    async (prefix) => {
      const outputs = await runConfigs(
        [
          { type: 'kv', action: 'put', key: 'abc', value: 1 },
          { type: 'kv', action: 'list', prefix: '${input.prefix}' },
          { type: 'objects', action: 'export', prefix: '${input.prefix}' },
        ],
        { input: { prefix } },
      );
      expect(outputs.slice(1)).toMatchObject([
        { keys: [], count: 0 },
        { data: [], count: 0 },
      ]);
    },
  );
});

describe('formats of objects', () => {
  it('CSV is a list of rows, lines of JSON a list of values', async () => {
    const [, csv, , lines, , text] = await runConfigs([
      { type: 'r2', action: 'put', key: 'c', value: '\ufeffid,name\n1,"a ""b"""\r\n\n2,\n' },
      { type: 'r2', action: 'get', key: 'c', format: 'csv' },
      { type: 'r2', action: 'put', key: 'l', value: [{ a: 1 }, 'x'], format: 'ndjson' },
      { type: 'r2', action: 'get', key: 'l', format: 'ndjson' },
      { type: 'r2', action: 'put', key: 't', value: 'quoted', format: 'json' },
      { type: 'r2', action: 'get', key: 't' },
    ]);
    expect(csv.content).toEqual([
      { id: '1', name: 'a "b"' },
      { id: '2', name: '' },
    ]);
    expect(lines).toMatchObject({ content: [{ a: 1 }, 'x'], contentType: 'application/x-ndjson' });
    expect(text).toMatchObject({ content: '"quoted"', contentType: 'application/json' });
  });

  it.each([
    ['id,name\n1', /line 2 has 1 cells/],
    ['id,id\n1,2', /two columns/],
    ['a\n"x"y', /quote/],
    ['__proto__\n1', /__proto__/],
  ])('%j is not CSV, and the error says why', async (value, message) => {
    const [, error] = await runConfigs([
      { type: 'r2', action: 'put', key: 'c', value },
      { type: 'r2', action: 'get', key: 'c', format: 'csv' },
    ]);
    expect(error).toMatchObject({ code: 'INVALID_INPUT', message: expect.stringMatching(message) });
  });

  it('CSV that is larger than an output is refused before it is read', async () => {
    const content = new TextEncoder().encode(`a\n"${'x'.repeat(16_000_000)}"\n`);
    const get = () => ({ content, contentType: 'text/csv', updatedAt: 0 });
    const objects = { kind: 'objects', get, put() {}, delete: () => false, list: () => [] } as const;
    const config = { type: 'r2', action: 'get', key: 'c', format: 'csv' };
    const [error] = await runConfigs([config], { bindings: { objects } });
    expect(error).toMatchObject({ code: 'INVALID_OUTPUT', message: expect.stringContaining('16000005 bytes') });
  });

  it('a value that the format can not write is refused', async () => {
    const outputs = await runConfigs([
      { type: 'r2', action: 'put', key: 'c', value: [1], format: 'csv' },
      { type: 'r2', action: 'put', key: 'c', value: { a: 1 }, format: 'ndjson' },
      { type: 'r2', action: 'put', key: 'c', value: 1, format: 'text' },
    ]);
    for (const output of outputs) expect(output).toMatchObject({ code: 'INVALID_INPUT' });
  });
});
