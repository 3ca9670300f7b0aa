/** The `code` operation: which names are scripts, what a script may return, and what of its failures stays in its step. */

import { describe, expect, it } from 'vitest';
import { createTestOrchestrator, manualClock } from '../../src/entries/testing.ts';
import { createOrchestrator, isOrchestratorError, type Script } from '../../src/index.ts';

const flow = (script: string, more = {}) => [{ agent: 'a', operation: 'code', config: { script }, ...more }];

describe('`config.script` is the name of a registered script, and nothing else', () => {
  it.each([
    'node:fs',
    '../x',
    './scripts/one.mjs',
    '/etc/passwd',
    'data:text/javascript,export default () => 1',
    'https://scripts.example/x.mjs',
    'file:///tmp/x.mjs',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'one\u0000',
    'One',
    '() => 1',
  ])('`%s` is refused when the definition is loaded', (script) => {
    try {
      createOrchestrator({ scripts: { one: () => 1 }, ensembles: [{ name: 'e', flow: flow(script) }] });
      throw new Error('was accepted');
    } catch (error) {
      if (!isOrchestratorError(error, 'INVALID_DEFINITION')) throw error;
      expect(error.details.issues[0]).toMatchObject({ path: 'flow[0].config.script' });
      expect(error.details.issues[0]?.message).toContain('there is no script');
    }
  });

  it('a script whose own name is `__proto__` is found, and only then', async () => {
    const scripts: Record<string, Script> = Object.fromEntries([['__proto__', () => 'own']]);
    const orchestrator = createTestOrchestrator({
      scripts,
      ensembles: [{ name: 'e', flow: flow('__proto__'), outputs: { x: '${a.output}' } }],
    });
    expect((await orchestrator.execute('e')).output).toEqual({ x: 'own' });
  });
});

/** Runs a script that returns a value, with a step behind it that always runs. */
async function give(value: () => unknown) {
  let calls = 0;
  const orchestrator = createTestOrchestrator({
    scripts: {
      give: () => {
        calls += 1;
        return value();
      },
      after: () => 'ran',
    },
    ensembles: [
      {
        name: 'e',
        flow: [
          { ...flow('give', { retry: { maxAttempts: 3 } })[0], agent: 'a' },
          { agent: 'b', operation: 'code', config: { script: 'after' }, condition: '${a.failed}' },
        ],
        outputs: { code: '${a.error.code}', message: '${a.error.message}', after: '${b.output}', value: '${a.output}' },
      },
    ],
  });
  const { output } = await orchestrator.execute('e');
  return { ...(output as { code: string | null; message: string; after: string | null; value: unknown }), calls };
}

const nested = (depth: number) => {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = [value];
  return value;
};
const bomb = (): unknown => ({ a: { toJSON: bomb }, b: { toJSON: bomb } });

describe('an output that is not JSON fails its step only, with the place of the value, and is not retried', () => {
  it.each<[string, () => unknown, string]>([
    [
      'a value that contains itself',
      () => {
        const list: unknown[] = [];
        list.push({ list: [list] });
        return list;
      },
      '`[0].list[0]`',
    ],
    ['a BigInt', () => ({ n: [1n] }), '`n[0]`'],
    ['an invalid Date', () => ({ at: new Date(Number.NaN) }), '`at`'],
    ['bytes', () => ({ body: new Uint8Array(3) }), '`body`'],
    ['an ArrayBuffer', () => ({ body: new ArrayBuffer(3) }), '`body`'],
    ['a Map', () => ({ seen: new Map([['a', 1]]) }), '`seen`'],
    ['a Set', () => new Set([1]), 'what agent `a` gave'],
    ['NaN', () => ({ n: Number.NaN }), '`n`'],
    ['Infinity', () => [Number.POSITIVE_INFINITY], '`[0]`'],
    ['a function', () => ({ f: () => 1 }), '`f`'],
    ['a symbol', () => ({ s: Symbol('s') }), '`s`'],
    ['an instance of a class', () => ({ seat: new (class Seat {})() }), '`seat`'],
    ['a regular expression', () => ({ r: /x/ }), '`r`'],
    ['a promise in a value', () => ({ p: Promise.resolve(1) }), '`p`'],
    ['an error', () => ({ e: new Error('x') }), '`e`'],
    ['a key `__proto__`', () => JSON.parse('{"a": {"__proto__": 1}}'), '`a.__proto__`'],
    ['65 levels', () => nested(65), '[0]'],
    [
      'a toJSON that throws',
      () => ({
        a: {
          toJSON() {
            throw new Error('no');
          },
        },
      }),
      '`a`',
    ],
    ['a toJSON that gives values with toJSON without end', bomb, 'a'],
    ['500 MB of text', () => 'x'.repeat(500e6), '4 MiB'],
    ['10 million elements', () => new Array(1e7).fill(0), '4 MiB'],
    ['4 billion holes', () => new Array(2 ** 32 - 1), '4 MiB'],
    ['200,000 keys', () => Object.fromEntries(Array.from({ length: 2e5 }, (_, i) => [`k${i}`, 0])), '4 MiB'],
  ])('%s', async (_what, value, place) => {
    const { code, message, after, calls } = await give(value);
    expect([code, after, calls]).toEqual(['INVALID_OUTPUT', 'ran', 1]);
    expect(message).toContain(place);
  });

  it('a getter or a proxy that throws is a failure of the script', async () => {
    const getter = {
      get a() {
        throw new Error('trap');
      },
    };
    expect(await give(() => getter)).toMatchObject({ code: 'AGENT_FAILED', message: 'trap', after: 'ran' });
    const proxy = new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error('keys');
        },
      },
    );
    expect(await give(() => proxy)).toMatchObject({ code: 'AGENT_FAILED', message: 'keys', after: 'ran' });
  });

  it('dates, holes and `undefined` are taken as JSON.stringify takes them', async () => {
    // biome-ignore lint/suspicious/noSparseArray: the hole is the case
    const { value, code } = await give(() => ({ at: new Date(0), gone: undefined, list: [undefined, , 1], zero: -0 }));
    expect([code, value]).toEqual([null, { at: '1970-01-01T00:00:00.000Z', list: [null, null, 1], zero: 0 }]);
  });
});

describe('what a script leaves behind', () => {
  it('a promise that never settles ends at the timeout, and the signal of the script aborts', async () => {
    let aborted: unknown;
    const clock = manualClock();
    const orchestrator = createTestOrchestrator({
      clock,
      scripts: {
        hang: ({ signal }) => {
          signal.addEventListener('abort', () => {
            aborted = signal.reason;
          });
          return new Promise(() => {});
        },
      },
      ensembles: [{ name: 'e', flow: flow('hang', { timeout: 1000 }), outputs: { code: '${a.error.code}' } }],
    });
    const running = orchestrator.execute('e');
    await clock.advance(1000);
    expect((await running).partialOutput).toEqual({ code: 'TIMEOUT' });
    expect(aborted).toMatchObject({ code: 'TIMEOUT' });
  });

  it('a timer that fires after the result changes nothing of it', async () => {
    const fired: Promise<void>[] = [];
    const orchestrator = createTestOrchestrator({
      scripts: {
        late: () => {
          const result = { n: 1 };
          fired.push(
            new Promise((resolve) => {
              setTimeout(() => {
                result.n = 2;
                resolve();
              }, 0);
            }),
          );
          return result;
        },
      },
      ensembles: [{ name: 'e', flow: flow('late'), outputs: { n: '${a.output.n}' } }],
    });
    const { id, output } = await orchestrator.execute('e');
    await Promise.all(fired);
    expect([output, (await orchestrator.executions.get(id)).output]).toEqual([{ n: 1 }, { n: 1 }]);
  });

  it('a second settlement of its promise, and a failure after the timeout, are ignored', async () => {
    const clock = manualClock();
    const orchestrator = createTestOrchestrator({
      clock,
      scripts: {
        twice: () =>
          new Promise((resolve, reject) => {
            resolve(1);
            reject(new Error('late'));
          }),
        slow: ({ signal }) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(new Error('after the timeout'))),
          ),
      },
      ensembles: [
        { name: 'twice', flow: flow('twice'), outputs: { x: '${a.output}' } },
        { name: 'slow', flow: flow('slow', { timeout: 10 }), outputs: { code: '${a.error.code}' } },
      ],
    });
    expect((await orchestrator.execute('twice')).output).toEqual({ x: 1 });
    const slow = orchestrator.execute('slow');
    await clock.advance(10);
    expect((await slow).agents[0]?.error?.code).toBe('TIMEOUT');
  });
});
