/** Scripts from source text: what they receive, what they return, and how they fail. */

import { describe, expect, it } from 'vitest';
import { loadQuickJs } from '../../src/adapters/sandbox/load-quickjs.ts';
import { type SandboxOptions, sandbox } from '../../src/entries/sandbox.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { type LoggedLine, sandboxContext } from './sandbox-context.ts';

/** The limit of scripts that end by themselves: a slow machine does not meet it. */
const PATIENT = 60_000;

async function run(source: string, options: SandboxOptions = {}, given = {}): Promise<unknown> {
  return sandbox({ threads: 0, timeout: PATIENT, ...options }).script(source, 'score')(sandboxContext(given));
}

describe('the package quickjs-wasi', () => {
  it('that is missing is NOT_CONFIGURED with what to install, and without a path of the host', async () => {
    const missing = new Error("Cannot find package 'quickjs-wasi' imported from /srv/app/node_modules/x.js");
    await expect(loadQuickJs(undefined, () => Promise.reject(missing))).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: 'sandbox: the package quickjs-wasi is not installed; `npm install quickjs-wasi`',
    });
  });
});

describe('a sandboxed script', () => {
  it('is a script of an orchestrator: it receives input and config, and its result is the output of its agent', async () => {
    const box = sandbox({ threads: 0, timeout: PATIENT });
    const orchestrator = createTestOrchestrator({
      scripts: {
        score: box.script('export default async ({ input, config }) => ({ high: input.cents > config.limit })'),
      },
      ensembles: [
        {
          name: 'e',
          flow: [{ agent: 'a', operation: 'code', config: { script: 'score', limit: 100 }, input: { cents: 250 } }],
          outputs: { x: '${a.output}' },
        },
      ],
    });
    const { output, error } = await orchestrator.execute('e');
    expect([output, error]).toEqual([{ x: { high: true } }, undefined]);
  });

  it('receives copies, the execution and the idempotency key, and of `env` only the names that the sandbox lists', async () => {
    const source = 'export default ({ logger, ...context }) => ({ ...context, keys: Object.keys(logger) })';
    const env = { RATE: 'r', SECRET: 's' };
    expect(
      await run(source, { env: ['RATE', 'ABSENT', 'toString'] }, { env, input: { a: [1] }, config: { b: 2 } }),
    ).toEqual({
      input: { a: [1] },
      config: { b: 2 },
      env: { RATE: 'r' },
      idempotencyKey: 'key-1',
      execution: { id: 'exec_1', ensemble: 'e', agent: 'a', attempt: 1, hops: 0 },
      keys: ['debug', 'info', 'warn', 'error'],
    });
    expect(await run('export default ({ env }) => env', {}, { env })).toEqual({});
  });

  it('can change its input without an effect on the input of its caller', async () => {
    const input = { list: [1] };
    expect(await run('export default ({ input }) => { input.list.push(2); return input }', {}, { input })).toEqual({
      list: [1, 2],
    });
    expect(input).toEqual({ list: [1] });
  });

  it('may await promises: its jobs run until none is left', async () => {
    const source =
      'let n = 0; for (let i = 0; i < 3; i++) n += await Promise.resolve(i);\nexport default async () => { await null; return n }';
    expect(await run(source)).toBe(3);
  });

  it('keeps nothing from call to call', async () => {
    const script = sandbox({ threads: 0, timeout: PATIENT }).script(
      'let n = 0; export default () => { globalThis.m = (globalThis.m ?? 0) + 1; return [++n, globalThis.m] }',
    );
    expect([await script(sandboxContext()), await script(sandboxContext())]).toEqual([
      [1, 1],
      [1, 1],
    ]);
  });

  it('has dates in UTC, whatever the zone of the host is', async () => {
    expect(await run('export default () => new Date(2030, 0, 1).toISOString()')).toBe('2030-01-01T00:00:00.000Z');
  });

  it('logs through `logger` and `console`', async () => {
    const lines: LoggedLine[] = [];
    const script = sandbox({ threads: 0, timeout: PATIENT }).script(
      "export default ({ logger }) => { logger.warn({ id: 7 }, 'late'); logger.info('text'); console.log('a', { b: 1 }); console.error(new Error('no')) }",
    );
    expect(await script(sandboxContext({}, lines))).toBeNull();
    expect(lines).toEqual([
      { level: 'warn', fields: { id: 7 }, message: 'late' },
      { level: 'info', fields: {}, message: 'text' },
      { level: 'info', fields: {}, message: 'a {"b":1}' },
      { level: 'error', fields: {}, message: 'Error: no' },
    ]);
  });

  it('is not run for an execution that no longer needs it', async () => {
    const reason = new Error('cancelled');
    await expect(run('export default () => 1', {}, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });
});

describe('a failure of a sandboxed script', () => {
  it.each([
    ['a syntax error', 'export default () => {\n  let x = ;\n}', /can't be compiled: .*line 2/],
    ['an import', "import fs from 'node:fs';\nexport default () => 1", /imports are not available/],
    ['no default export', 'export const a = 1', /exports nothing by default; write `export default/],
    ['a default export that is no function', 'export default 4', /exports number by default/],
    [
      'a promise that nothing settles',
      'export default () => new Promise(() => {})',
      /waits for a promise that nothing settles/,
    ],
    [
      'an await at its top level that nothing settles',
      'await new Promise(() => {}); export default () => 1',
      /nothing settles/,
    ],
  ])('%s is AGENT_FAILED with the remedy, and is not retried', async (_what, source, message) => {
    await expect(run(source)).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: false,
      message: expect.stringMatching(message),
    });
  });

  it('an exception keeps its message, its details, its code and the stack of the text', async () => {
    const source =
      "const fail = () => { throw Object.assign(new RangeError('too far'), { code: 'E7', details: { seat: '4A' } }) };\nexport default () => fail()";
    const error = (await run(source).catch((thrown) => thrown)) as Error & { details: unknown };
    expect([error.message, error.details]).toEqual(['too far', { seat: '4A', code: 'E7' }]);
    expect(error.stack).toMatch(/^RangeError: too far\n\s+at fail \(score:1:\d+\)\n\s+at default \(score:2/);
    expect(error.stack).not.toContain('sandbox.ts');
  });

  it('an exception is retried as that of any script, unless it says `retryable: false`', async () => {
    expect(await run("export default () => { throw new Error('busy') }").catch((e) => e)).not.toHaveProperty('code');
    await expect(
      run("export default () => { throw Object.assign(new Error('bad card'), { retryable: false }) }"),
    ).rejects.toMatchObject({ code: 'AGENT_FAILED', retryable: false, message: 'bad card' });
  });

  it.each([
    ['text', "'no seat'", 'no seat'],
    ['null', 'null', 'null'],
    ['a symbol', "Symbol('s')", 'Symbol(s)'],
    ['an object whose getters throw', '{ get message() { throw 1 } }', "can't be read"],
  ])('%s that is thrown has a message', async (_what, thrown, message) => {
    await expect(run(`export default () => { throw ${thrown} }`)).rejects.toThrow(message);
  });

  it.each([
    ['{ a: [1, new Map()] }', '`a[1]`', 'Object.fromEntries(map)'],
    ['{ f() {} }', '`f`', 'function'],
    ['{ n: 0 / 0 }', '`n`', 'NaN'],
    ['10n', 'the output', 'bigint'],
    ['new Uint8Array(2)', 'the output', 'Uint8Array'],
    ['JSON.parse(\'{"__proto__": 1}\')', '`__proto__`', 'never allowed'],
    ['{ "a b": new (class Seat {})() }', '`["a b"]`', 'Seat'],
    ['(() => { const a = {}; a.a = a; return a })()', 'the output', 'contains itself'],
    ["'x'.repeat(17e6)", 'the output', 'limit of 4 MiB'],
  ])('the output %s is INVALID_OUTPUT, with its place', async (output, place, why) => {
    const error = (await run(`export default () => (${output})`).catch((thrown) => thrown)) as Error;
    expect(error).toMatchObject({ code: 'INVALID_OUTPUT', retryable: false });
    if (!error.message.includes('contains itself')) expect(error.message).toContain(place);
    expect(error.message).toContain(why);
  });

  it('the output is taken as that of any script: dates become text, undefined is left out, or null', async () => {
    const source =
      'export default () => ({ at: new Date(0), gone: undefined, list: [undefined, , 1], own: { toJSON: () => 7 } })';
    expect(await run(source)).toEqual({ at: '1970-01-01T00:00:00.000Z', list: [null, null, 1], own: 7 });
  });
});

describe('check', () => {
  const { check } = sandbox({ threads: 0, timeout: PATIENT });

  it('finds the first syntax error of a text, with its place, and runs nothing of it', async () => {
    expect(await check('for (;;) {}\nexport default () => 1')).toBeUndefined();
    expect(await check('export default () =>\n\n y z')).toEqual({ message: expect.any(String), line: 3, column: 4 });
    expect(await check("import a from 'b'")).toEqual({ message: expect.stringContaining('imports') });
  });
});

describe('options of the sandbox', () => {
  it.each([
    [{ timeoutMs: 5 }, 'did you mean `timeout`?'],
    [{ timeout: 0 }, '`timeout` must be a duration such as `30s` or `5m`, or milliseconds, from 1 to 60,000 ms, not 0'],
    [{ timeout: 1.5 }, '`timeout` must be a duration'],
    [{ memoryBytes: 1 }, '`memoryBytes` must be a whole number'],
    [{ stackBytes: 2 ** 20 }, '`stackBytes` must be a whole number'],
    [{ threads: 0.5 }, '`threads` must be a whole number from 0 to 64'],
    [{ env: 'RATE' }, '`env` must be a list of names'],
    [{ wasm: {} }, '`wasm` must be a WebAssembly.Module'],
    [
      { wasm: new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)), threads: 2 },
      '`wasm` needs `threads: 0`',
    ],
  ])('%j is refused', (options, message) => {
    expect(() => sandbox(options as SandboxOptions)).toThrow(message);
  });
});
