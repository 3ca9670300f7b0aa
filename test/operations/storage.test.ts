import { describe, expect, it } from 'vitest';
import { memoryKv, memoryObjects } from '../../src/adapters/storage/memory/data.ts';
import { isOrchestratorError, OrchestratorError } from '../../src/engine/base/errors.ts';
import type { JsonObject } from '../../src/engine/base/json/json.ts';
import type { Logger } from '../../src/engine/host/logger.port.ts';
import { sqliteDatabase } from '../../src/entries/sqlite.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import type { Binding } from '../../src/operations/storage/storage-operation.ts';

/** Runs one config after the other in one execution, and returns their outputs and errors. */
function store(
  configs: readonly JsonObject[],
  options: { readonly bindings?: Readonly<Record<string, Binding>>; readonly logger?: Logger } = {},
) {
  const flow = configs.map((config, i) => ({ agent: `s${i}`, operation: 'storage', config, continueOnError: true }));
  const orchestrator = createTestOrchestrator({
    errors: { stack: false },
    ensembles: [{ name: 'e', flow }],
    ...options,
  });
  const run = async (input: JsonObject = {}) => {
    const { agents } = await orchestrator.execute('e', input);
    return agents.map(({ output, error }) => error ?? output);
  };
  return { orchestrator, run };
}

function refused(
  config: JsonObject,
  bindings: Readonly<Record<string, Binding>> = {},
): readonly (string | undefined)[][] {
  try {
    store([config], { bindings });
    return [];
  } catch (error) {
    if (!isOrchestratorError(error, 'INVALID_DEFINITION')) throw error;
    return error.details.issues.map(({ path, message, suggestion }) => [path, message, suggestion]);
  }
}

describe('what is left out', () => {
  it('`ttl` and `limit` that evaluate to null are absent', async () => {
    const { run } = store([
      { type: 'kv', action: 'put', key: 'a', value: 1, ttl: '${input.ttl}' },
      { type: 'kv', action: 'list', limit: '${input.limit}' },
    ]);
    expect(await run({ ttl: null })).toEqual([{ key: 'a', success: true }, expect.objectContaining({ keys: ['a'] })]);
  });

  it('`d1` with a `query` needs no `action`; other types and an empty config do', async () => {
    const sql = sqliteDatabase({ path: ':memory:' });
    const { run } = store([{ type: 'd1', query: 'SELECT ${input.n} AS n' }], { bindings: { sql } });
    expect(await run({ n: 7 })).toEqual([{ results: [{ n: 7 }], count: 1 }]);
    expect(refused({ type: 'd1' }, { sql })).toEqual([
      ['flow[0].config.action', expect.stringContaining('is required'), undefined],
    ]);
    expect(refused({ type: 'kv', key: 'a' })).toEqual([
      ['flow[0].config.action', expect.stringContaining('is required'), undefined],
    ]);
  });
});

describe('`storage` of type kv', () => {
  it('keeps JSON values by key, in the configured storage', async () => {
    const value = { a: [1, null, 'ü'] };
    const { run } = store([
      { type: 'kv', action: 'get', key: 'k' },
      { type: 'kv', action: 'put', key: 'k', value },
      { type: 'kv', action: 'get', key: 'k' },
      { type: 'kv', action: 'delete', key: 'k' },
      { type: 'kv', action: 'delete', key: 'k' },
      { type: 'kv', action: 'get', key: 'k' },
    ]);
    expect(await run()).toEqual([
      { value: null, found: false },
      { key: 'k', success: true },
      { value, found: true },
      { key: 'k', success: true },
      { key: 'k', success: false },
      { value: null, found: false },
    ]);
  });

  it('a stored null is found', async () => {
    const { run } = store([
      { type: 'kv', action: 'put', key: 'k', value: null },
      { type: 'kv', action: 'get', key: 'k' },
    ]);
    expect((await run())[1]).toEqual({ value: null, found: true });
  });

  it('ttl counts seconds: the value exists at the last ms, and not at the next', async () => {
    const { orchestrator } = store([{ type: 'kv', action: 'put', key: 'k', value: 1, ttl: 60 }]);
    const reader = {
      name: 'r',
      flow: [{ agent: 'g', operation: 'storage', config: { type: 'kv', action: 'get', key: 'k' } }],
    };
    const kv = memoryKv();
    const clocked = createTestOrchestrator({
      bindings: { kv },
      ensembles: [
        {
          name: 'w',
          flow: [
            { agent: 'p', operation: 'storage', config: { type: 'kv', action: 'put', key: 'k', value: 1, ttl: 60 } },
          ],
        },
        reader,
      ],
    });
    await clocked.execute('w');
    await clocked.clock.advance(59_999);
    expect((await clocked.execute('r')).agents[0]?.output).toEqual({ value: 1, found: true });
    await clocked.clock.advance(1);
    expect((await clocked.execute('r')).agents[0]?.output).toEqual({ value: null, found: false });
    await orchestrator.close();
  });

  it('a prefix is literal, and keys are in the order of their bytes', async () => {
    const keys = ['a%b', 'a_b', 'a*b', '../a', 'ab', 'z'];
    const { run } = store([
      ...keys.map((key) => ({ type: 'kv', action: 'put', key, value: 1 })),
      { type: 'kv', action: 'list', prefix: 'a%' },
      { type: 'kv', action: 'list', prefix: 'a' },
      { type: 'kv', action: 'list' },
    ]);
    expect((await run()).slice(keys.length)).toEqual([
      { keys: ['a%b'], count: 1 },
      { keys: ['a%b', 'a*b', 'a_b', 'ab'], count: 4 },
      { keys: ['../a', 'a%b', 'a*b', 'a_b', 'ab', 'z'], count: 6 },
    ]);
  });

  it.each([
    ['empty', ''],
    ['longer than 512 bytes', 'ü'.repeat(257)],
    ['with a NUL', 'a\0b'],
  ])('a key that is %s fails the agent, without a retry', async (_what, key) => {
    const { run } = store([{ type: 'kv', action: 'put', key: '${input.key}', value: 1 }]);
    const [error] = await run({ key });
    expect(error).toMatchObject({ code: 'INVALID_INPUT' });
  });

  it('a key of 512 bytes is accepted', async () => {
    const { run } = store([{ type: 'kv', action: 'put', key: '${input.key}', value: 1 }]);
    expect((await run({ key: 'ü'.repeat(256) }))[0]).toMatchObject({ success: true });
  });
});

describe('`storage` of type r2', () => {
  it('text is returned as text, JSON as text or parsed, bytes in base64', async () => {
    const bytes = { content: '//79', contentType: 'image/png', encoding: 'base64' };
    const { run } = store([
      { type: 'r2', action: 'put', key: 't', value: 'grüß' },
      { type: 'r2', action: 'get', key: 't' },
      { type: 'r2', action: 'put', key: 'j', value: { a: 1 } },
      { type: 'r2', action: 'get', key: 'j' },
      { type: 'r2', action: 'get', key: 'j', format: 'json' },
      { type: 'r2', action: 'put', key: 'b', value: bytes },
      { type: 'r2', action: 'get', key: 'b' },
    ]);
    const outputs = await run();
    expect(outputs[1]).toEqual({ content: 'grüß', contentType: 'text/plain; charset=utf-8', size: 6 });
    expect(outputs[3]).toEqual({ content: '{"a":1}', contentType: 'application/json', size: 7 });
    expect(outputs[4]).toEqual({ content: { a: 1 }, contentType: 'application/json', size: 7 });
    expect(outputs[6]).toEqual({ ...bytes, size: 3 });
  });

  it('a byte-order mark is kept; contentType sets another type', async () => {
    const { run } = store([
      { type: 'r2', action: 'put', key: 't', value: '\ufeffa,b', contentType: 'text/csv' },
      { type: 'r2', action: 'get', key: 't' },
    ]);
    expect((await run())[1]).toEqual({ content: '\ufeffa,b', contentType: 'text/csv', size: 6 });
  });

  it('fails with NOT_FOUND for an unknown key, and with INVALID_INPUT for invalid JSON or base64', async () => {
    const { run } = store([
      { type: 'r2', action: 'get', key: 'none' },
      { type: 'r2', action: 'put', key: 't', value: 'no json' },
      { type: 'r2', action: 'get', key: 't', format: 'json' },
      { type: 'r2', action: 'put', key: 'b', value: { content: '%', encoding: 'base64' } },
      { type: 'r2', action: 'put', key: 'p', value: '{"__proto__":{"x":1}}' },
      { type: 'r2', action: 'get', key: 'p', format: 'json' },
    ]);
    const outputs = await run();
    expect(outputs[0]).toMatchObject({ code: 'NOT_FOUND' });
    for (const at of [2, 3, 5]) expect(outputs[at]).toMatchObject({ code: 'INVALID_INPUT' });
  });

  it('text that UTF-8 can not represent is refused, and stored as JSON if it is part of a value', async () => {
    const { run } = store([
      { type: 'r2', action: 'put', key: 't', value: 'half \ud83d' },
      { type: 'r2', action: 'put', key: 't', value: { content: '\ude00', encoding: 'utf8' } },
      { type: 'r2', action: 'put', key: 'j', value: { half: '\ud83d' } },
      { type: 'r2', action: 'get', key: 'j', format: 'json' },
      { type: 'kv', action: 'put', key: '${input.key}', value: 1 },
    ]);
    const outputs = await run({ key: 'k\ud83d' });
    for (const at of [0, 1])
      expect(outputs[at]).toMatchObject({
        code: 'INVALID_INPUT',
        message: expect.stringMatching(/half of a surrogate/),
      });
    expect(outputs[3]).toMatchObject({ content: { half: '\ud83d' } });
    expect(outputs[4]).toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringMatching(/a key must be text of 1 to 512 bytes/),
    });
  });

  it('lists and deletes', async () => {
    const { run } = store([
      { type: 'r2', action: 'put', key: 'a/1', value: '' },
      { type: 'r2', action: 'put', key: 'b/1', value: '' },
      { type: 'r2', action: 'list', prefix: 'a/' },
      { type: 'r2', action: 'delete', key: 'a/1' },
      { type: 'r2', action: 'list' },
    ]);
    expect((await run()).slice(2)).toEqual([
      { keys: ['a/1'], count: 1 },
      { key: 'a/1', success: true },
      { keys: ['b/1'], count: 1 },
    ]);
  });
});

describe('bindings and checks at load', () => {
  it('a binding is used instead of the configured storage', async () => {
    const mine = memoryKv();
    const { run, orchestrator } = store([{ type: 'kv', action: 'put', binding: 'mine', key: 'k', value: 7 }], {
      bindings: { mine },
    });
    await run();
    expect(mine.get('k', orchestrator.clock.now())).toBe(7);
  });

  it.each<[string, JsonObject, readonly (string | undefined)[][]]>([
    [
      'export of kv with the keys of SQL',
      { type: 'kv', action: 'export', query: 'SELECT 1', format: 'text' },
      [
        ['flow[0].config.query', 'is not for `export` of `kv`', undefined],
        ['flow[0].config.format', 'must be `json`, `csv` or `ndjson` for `export`', undefined],
      ],
    ],
    [
      'headers of another format',
      { type: 'r2', action: 'export', format: 'ndjson', exportOptions: { headers: false } },
      [['flow[0].config.exportOptions.headers', 'is for `format: csv` only', undefined]],
    ],
    [
      'an export to a binding of another kind, or to none',
      { type: 'kv', action: 'export', exportOptions: { to: { binding: 'mine', key: 'k' } } },
      [
        [
          'flow[0].config.exportOptions.to.binding',
          'binding `mine` has another kind than `exportOptions.to`: it is for `type: kv`; those of this kind: `objects`, `files`',
          undefined,
        ],
      ],
    ],
    [
      'an action of another type',
      { type: 'kv', action: 'query' },
      [['flow[0].config.action', '`query` is not an action of `kv`; use get, put, delete, list or export', undefined]],
    ],
    ['a missing key', { type: 'kv', action: 'get' }, [['flow[0].config.key', 'is required for `get`', undefined]]],
    [
      'a missing value',
      { type: 'kv', action: 'put', key: 'k' },
      [['flow[0].config.value', 'is required for `put`', undefined]],
    ],
    [
      'a key that the action does not take',
      { type: 'r2', action: 'put', key: 'k', value: 1, ttl: 5 },
      [['flow[0].config.ttl', 'is not for `put` of `r2`', undefined]],
    ],
    [
      'a type by expression',
      { type: '${input.t}', action: 'get', key: 'k' },
      [['flow[0].config.type', 'must be a plain word: it is decided when the definition is loaded', undefined]],
    ],
    [
      'an unknown binding',
      { type: 'kv', action: 'get', key: 'k', binding: 'mnie' },
      [
        [
          'flow[0].config.binding',
          'there is no binding `mnie` in the option `bindings`; those of this kind: `kv`, `mine`',
          'mine',
        ],
      ],
    ],
    [
      'a binding of another kind',
      { type: 'r2', action: 'get', key: 'k', binding: 'mine' },
      [
        [
          'flow[0].config.binding',
          'binding `mine` has another kind than `type: r2`: it is for `type: kv`; those of this kind: `objects`, `files`',
          undefined,
        ],
      ],
    ],
  ])('%s', (_what, config, issues) => {
    expect(refused(config, { mine: memoryKv(), files: memoryObjects() })).toEqual(issues);
  });

  it('a binding that is not a store is a TypeError', () => {
    expect(() => store([], { bindings: { x: {} as Binding } })).toThrow(TypeError);
  });
});

describe('a store that fails', () => {
  const text = 'connect ECONNREFUSED 10.1.2.3:6379 user=app password=hunter2';
  const failing = (thrown: unknown) => ({ ...memoryKv(), get: () => Promise.reject(thrown) });

  it.each([
    ['an error of its driver', new Error(text), 'AGENT_FAILED'],
    ['an INTERNAL of a storage, with the text of its driver', new OrchestratorError('INTERNAL', text), 'INTERNAL'],
    ['a NOT_CONFIGURED of a storage', new OrchestratorError('NOT_CONFIGURED', text), 'NOT_CONFIGURED'],
  ])('%s is logged, and callers receive the message of the operation', async (_what, thrown, errorCode) => {
    const lines: unknown[] = [];
    const { run } = store([{ type: 'kv', action: 'get', key: 'k', binding: 'mine' }], {
      bindings: { mine: failing(thrown) },
      logger: { debug() {}, info() {}, warn() {}, error: (fields) => void lines.push(fields) },
    });
    const message = 'storage: the store of binding `mine` failed to `get`; the log has its error';
    expect(await run()).toEqual([{ agent: 's0', code: errorCode, message }]);
    expect(lines).toMatchObject([{ err: { message: text }, binding: 'mine', agent: 's0' }]);
  });

  it('a missing package is named to callers, with what to install', async () => {
    const message = 'redisKv: the package ioredis is not installed; `npm install ioredis`';
    const missing = new OrchestratorError('NOT_CONFIGURED', message, { details: { driver: 'ioredis' } });
    const { run } = store([{ type: 'kv', action: 'get', key: 'k', binding: 'mine' }], {
      bindings: { mine: failing(missing) },
    });
    expect(await run()).toMatchObject([{ code: 'NOT_CONFIGURED', message }]);
  });

  it('a transient failure keeps its message, and is retried', async () => {
    const away = new OrchestratorError('OVERLOADED', 'the disk is full; make room and try again', { retryable: true });
    const { run } = store([{ type: 'kv', action: 'get', key: 'k', binding: 'mine' }], {
      bindings: { mine: failing(away) },
    });
    expect(await run()).toMatchObject([{ code: 'OVERLOADED', message: 'the disk is full; make room and try again' }]);
  });
});
