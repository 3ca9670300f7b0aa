/** Hostile source text: it reads nothing of the host, changes nothing in it, and ends at its limits. */

import { describe, expect, it } from 'vitest';
import { type SandboxOptions, sandbox } from '../../src/entries/sandbox.ts';
import { type LoggedLine, sandboxContext } from './sandbox-context.ts';

const PATIENT = 60_000;

async function run(source: string, options: SandboxOptions = {}, lines: LoggedLine[] = []): Promise<unknown> {
  return sandbox({ threads: 0, timeout: PATIENT, ...options }).script(source)(
    sandboxContext({ env: { KEY: 'secret' } }, lines),
  );
}

const failure = (source: string, options?: SandboxOptions) =>
  run(source, options).then(
    (value) => `no failure: ${JSON.stringify(value)}`,
    (thrown) => thrown,
  );

describe('the host is out of reach', () => {
  it('no name of a host is there', async () => {
    const names = [
      'process',
      'require',
      'module',
      'fetch',
      'setTimeout',
      'setInterval',
      'WebAssembly',
      'Deno',
      'Bun',
      'std',
      'os',
      'Worker',
      'XMLHttpRequest',
      'structuredClone',
      'global',
      'importScripts',
    ];
    const source = `export default () => ${JSON.stringify(names)}.filter((name) => name in globalThis)`;
    expect(await run(source)).toEqual([]);
  });

  it.each([
    "({}).constructor.constructor('return process')()",
    "context.logger.info.constructor('return process')()",
    "console.log.constructor('return typeof process + typeof fetch')()",
    '(async () => {}).constructor(\'return await import("node:fs")\')()',
    "eval('process')",
    "import('node:fs')",
    "import('data:text/javascript,export default 1')",
    "import('./x.js')",
    'globalThis.process.env',
    'context.env.KEY.length',
    'console.log.caller.caller',
    'import.meta.dirname.length',
  ])('%s', async (expression) => {
    const outcome = await run(`export default async (context) => ${expression}`).then(
      (value) => `gave ${JSON.stringify(value)}`,
      (error: Error) => `failed: ${error.name}`,
    );
    expect(outcome).toMatch(/^failed|^gave "undefinedundefined"$/);
  });

  it('a changed prototype, in the sandbox or in the output, changes none of the host', async () => {
    const pollute = `
      Object.prototype.polluted = 1; Array.prototype.polluted = 1; JSON.stringify = () => 'x'; Promise.prototype.then = () => 1;
      Object.prototype.toJSON = () => 'json'; String.prototype.slice = () => 'y'; Object.keys = () => [];
      export default () => `;
    await run(`${pollute} 1`).catch(() => {});
    expect([({} as { polluted?: number }).polluted, JSON.stringify({ a: 1 })]).toEqual([undefined, '{"a":1}']);
    for (const output of [
      '({ ["__proto__"]: { polluted: 1 } })',
      'JSON.parse(\'{"a": {"__proto__": {"polluted": 1}}}\')',
    ]) {
      expect(await failure(`export default () => ${output}`)).toMatchObject({ code: 'INVALID_OUTPUT' });
    }
    expect(await run('export default () => ({ constructor: { prototype: { polluted: 1 } } })')).toEqual({
      constructor: { prototype: { polluted: 1 } },
    });
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  it('the stack of a failure has no path of the host', async () => {
    for (const source of ["export default () => { throw new Error('x') }", "export default () => import('node:fs')"]) {
      expect(((await failure(source)) as Error).stack).not.toMatch(/file:|\/src\/|node_modules/);
    }
  });

  it('getters and proxies of an output run inside, and a failure of theirs is that of the script', async () => {
    expect(await run('export default () => ({ get a() { return typeof process } })')).toEqual({ a: 'undefined' });
    expect(await failure("export default () => ({ get a() { throw new Error('trap') } })")).toHaveProperty(
      'message',
      'trap',
    );
    expect(
      await failure('export default () => new Proxy({}, { ownKeys() { throw new Error("keys") } })'),
    ).toHaveProperty('message', 'keys');
    expect(await run('export default () => ({ then(resolve) { resolve(7) } })')).toBe(7);
  });
});

describe('the time limit ends', () => {
  it.each([
    ['a loop', 'for (;;) {}'],
    ['a loop that catches everything', 'for (;;) { try { for (;;) {} } catch {} finally { for (;;) {} } }'],
    ['a loop in a getter of the output', 'return { get a() { for (;;) {} } }'],
    ['a loop in toJSON', 'return { toJSON() { for (;;) {} } }'],
    ['a loop in the message of an error', 'throw { get message() { for (;;) {} } }'],
    ['a regular expression that backtracks', 'return /^(a+)+$/.test("a".repeat(40) + "b")'],
    ['endless jobs of promises', 'const next = () => Promise.resolve().then(next); await next()'],
    ['an endless async generator', 'for await (const x of (async function* () { for (;;) yield 1 })()) {}'],
    ['a long array without elements', 'return [].indexOf.call({ length: 2 ** 53 - 1 }, 1)'],
    ['an output without end', 'return new Proxy([], { get: (t, k) => (k === "length" ? 2 ** 40 : null) })'],
  ])('%s', async (_what, body) => {
    const error = await failure(`export default async () => { ${body} }`, { timeout: 250 });
    // The endless output may need more memory than it may have before its time is over.
    expect(error).toSatisfy(
      ({ code, message, retryable }) =>
        (code === 'TIMEOUT' && retryable === true && message.includes('250 ms')) || /bytes of memory/.test(message),
    );
  });

  it('a loop at the top level of the text', async () => {
    expect(await failure('for (;;) {}', { timeout: 100 })).toMatchObject({
      code: 'TIMEOUT',
      details: { timeoutMs: 100 },
    });
  });
});

describe('the memory limit ends', () => {
  it.each([
    ['objects', 'const a = []; for (;;) a.push({ k: 1 })'],
    ['objects after an await', 'await 0; const a = []; for (;;) a.push({ k: 1 })'],
    ['bytes', 'const a = []; for (;;) a.push(new Uint8Array(1 << 20))'],
    ['text', 'const a = []; for (;;) a.push("x".repeat(1e5))'],
    ['one large buffer', 'return new ArrayBuffer(1 << 30).byteLength'],
  ])('%s', async (_what, body) => {
    const error = await failure(`export default async () => { ${body} }`, { memoryBytes: 8 * 1024 * 1024 });
    expect(error).toMatchObject({ retryable: false, code: 'AGENT_FAILED' });
  });

  it('the message says so', async () => {
    const source = 'export default () => { const a = []; for (;;) a.push({ k: 1 }) }';
    const error = (await failure(source, { memoryBytes: 4 * 1024 * 1024 })) as Error;
    expect(error.message).toContain('needed more than 4194304 bytes of memory');
    expect(error.message).toContain('raise `memoryBytes`');
  });
});

describe('deep nesting fails that call only', () => {
  it.each([
    ['calls', 'const f = () => f() + 1; return f()'],
    ['text that is parsed', 'return eval("[".repeat(1e5))'],
    ['JSON', 'return JSON.parse("[".repeat(1e6))'],
    ['an output', 'let d = []; for (let i = 0; i < 5000; i++) d = [d]; return d'],
    ['a regular expression', 'return new RegExp("(?:".repeat(1e5)).test("")'],
  ])('%s', async (_what, body) => {
    const box = sandbox({ threads: 0, timeout: PATIENT });
    await expect(box.script(`export default () => { ${body} }`)(sandboxContext())).rejects.toThrow();
    expect(await box.script('export default () => 1')(sandboxContext())).toBe(1);
  });
});

describe('lines are bounded', () => {
  it('in number, with a last line that says so, and in length', async () => {
    const lines: LoggedLine[] = [];
    await run(
      "export default ({ logger }) => { console.log('x'.repeat(1e6)); logger.info({ t: 'x'.repeat(1e6) }, 'big'); for (let i = 0; i < 1e4; i++) console.log(i) }",
      {},
      lines,
    );
    expect(lines).toHaveLength(100);
    expect(lines.at(-1)).toMatchObject({
      level: 'warn',
      message: expect.stringContaining('further lines are dropped'),
    });
    expect(lines[0]?.message).toHaveLength(2000);
    expect(lines[1]).toEqual({ level: 'info', fields: {}, message: 'big' });
  });
});
