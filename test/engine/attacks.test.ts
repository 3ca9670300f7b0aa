/** Attacks on runs: outputs that are not data, inherited names, values that look like code, and steps that cost too much. */

import { describe, expect, it } from 'vitest';
import type { Script } from '../../src/operations/code/script.ts';
import { scaled } from '../slowdown.ts';
import { code, echo, ok, scene, turns, when } from './scene.ts';

/** Runs an agent that returns `give()`, and an agent after it that must not be affected. */
async function outputOf(give: Script) {
  const { run } = scene(
    {
      flow: [code('a', 'give'), ok('b', when('a.failed || a.success'))],
      outputs: { a: '${a.output}', error: '${a.error}', b: '${b.output}' },
    },
    { scripts: { give } },
  );
  const result = await run();
  expect(result.status).toBe('completed');
  const { a, error, b } = result.output as { a: unknown; error: { code: string; message: string } | null; b: string };
  expect(b).toBe('b');
  return { a, error };
}

class Own {
  toJSON() {
    return this;
  }
}

class Money {
  declare missing: { readonly value: number };
  amount = 5;
}

describe('an output is copied to plain data', () => {
  it.each<[string, () => unknown, unknown]>([
    ['undefined in an object is left out', () => ({ u: undefined, v: 1 }), { v: 1 }],
    ['undefined in a list is null', () => [undefined, 1], [null, 1]],
    ['undefined is null', () => undefined, null],
    [
      'a getter is read once',
      () => ({
        get x() {
          return 'got';
        },
      }),
      { x: 'got' },
    ],
    [
      'what is not enumerable or own is left out',
      () => Object.create({ inherited: 1 }, { hidden: { value: 1 }, shown: { value: 2, enumerable: true } }),
      undefined,
    ],
    ['an object without a prototype', () => Object.assign(Object.create(null), { x: 1 }), { x: 1 }],
    ['a Proxy of plain data', () => new Proxy({ x: 1 }, {}), { x: 1 }],
    ['a sparse list has nulls', () => new Array(3), [null, null, null]],
    [
      'one object in two places is two copies',
      () => {
        const o = { x: 1 };
        return [o, o];
      },
      [{ x: 1 }, { x: 1 }],
    ],
    ['negative zero is zero', () => -0, 0],
    ['2^53 + 1 is the double it is', () => 2 ** 53 + 1, 2 ** 53],
    ['a lone surrogate stays', () => '\ud800', '\ud800'],
  ])('%s', async (_what, give, expected) => {
    const { a, error } = await outputOf(give);
    if (expected === undefined) expect(error?.code).toBe('INVALID_OUTPUT');
    else expect([a, error]).toEqual([expected, null]);
    if (Object.is(expected, 0)) expect(Object.is(a, 0)).toBe(true);
  });

  it.each<[string, () => unknown, string]>([
    ['an invalid Date', () => ({ at: new Date(Number.NaN) }), '`at` in what agent `a` gave is an invalid Date'],
    ['a Uint8Array', () => new Uint8Array(1), 'what agent `a` gave is a Uint8Array without toJSON(), not plain data'],
    ['a function', () => () => 1, 'what agent `a` gave is a function'],
    ['a method', () => ({ list: [{ f() {} }] }), '`list[0].f` in what agent `a` gave is a function'],
    [
      'a toJSON that throws',
      () => ({ x: [{ toJSON: () => new Money().missing.value }] }),
      '`x[0]` in what agent `a` gave has a toJSON() that failed: Cannot read properties of undefined',
    ],
    ['a toJSON that gives a function', () => ({ toJSON: () => () => 1 }), 'what agent `a` gave is a function'],
    ['a toJSON that gives itself', () => ({ x: new Own() }), '`x` in what agent `a` gave is a Own'],
    ['a symbol', () => ({ kind: Symbol('x') }), '`kind` in what agent `a` gave is a symbol'],
    ['a BigInt', () => [1n], '`[0]` in what agent `a` gave is a BigInt'],
    ['a Map', () => ({ m: new Map() }), '`m` in what agent `a` gave is a Map'],
    ['a class instance', () => new Money(), 'is a Money without toJSON(), not plain data'],
    ['a promise inside', () => ({ p: Promise.resolve(1) }), 'is a Promise (await it first)'],
    ['NaN', () => ({ x: [Number.NaN] }), '`x[0]` in what agent `a` gave is NaN'],
    ['Infinity', () => -1 / 0, 'is -Infinity'],
    [
      'a cycle',
      () => {
        const o: Record<string, unknown> = {};
        o.self = o;
        return o;
      },
      '`self` in what agent `a` gave contains itself',
    ],
    [
      'a cycle of two',
      () => {
        const p: unknown[] = [];
        const q = [p];
        p.push(q);
        return p;
      },
      'contains itself',
    ],
    ['a key __proto__', () => JSON.parse('{"a":{"__proto__":{"admin":true}}}'), 'is a key that is never allowed'],
    [
      '65 levels',
      () => Array.from({ length: 65 }).reduce<unknown>((inner) => [inner], 1),
      'nested deeper than 64 levels',
    ],
    [
      'a Proxy that never ends',
      () => {
        const endless: object = new Proxy(
          {},
          {
            ownKeys: () => ['x'],
            getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
            get: () => endless,
          },
        );
        return endless;
      },
      'Proxy|nested deeper|contains itself',
    ],
    ['a text just over 4 MiB', () => 'x'.repeat(4 * 1024 * 1024 + 1), 'larger than the limit'],
    [
      '10^7 keys',
      () => Object.fromEntries(Array.from({ length: 1_000_000 }, (_, i) => [`k${i}`, i])),
      'larger than the limit',
    ],
    ['a list of a thousand million holes', () => new Array(1e9), 'larger than the limit'],
  ])('%s fails only that agent, with INVALID_OUTPUT', async (_what, give, message) => {
    const { a, error } = await outputOf(give);
    expect(a).toBeNull();
    expect(error?.code).toBe('INVALID_OUTPUT');
    expect(message.split('|').some((part) => error?.message.includes(part))).toBe(true);
  });

  it('a string of 4 MiB is accepted, and a record with several of them can be read', async () => {
    const { run, orchestrator } = scene([code('a', 'big'), code('b', 'big')], {
      scripts: { big: () => 'x'.repeat(4 * 1024 * 1024) },
    });
    const { id, status } = await run();
    expect(status).toBe('completed');
    const { agents } = await orchestrator.executions.get(id);
    const own = await Promise.all(agents.map(({ key }) => orchestrator.executions.agent(id, key)));
    expect(own.map(({ output }) => (output as string).length)).toEqual([4 * 1024 * 1024, 4 * 1024 * 1024]);
    expect(agents.filter(({ outputOmitted }) => outputOmitted).length).toBeGreaterThan(0);
  });

  it("outputs over the limit fail the run and are not kept; the agents' results are kept", async () => {
    const flow = [code('a', 'big'), code('b', 'big')];
    const { run } = scene(
      { flow, outputs: { both: ['${a.output}', '${b.output}'] } },
      { scripts: { big: () => 'x'.repeat(3 * 1024 * 1024) } },
    );
    const result = await run();
    expect(result).toMatchObject({ status: 'failed', partialOutput: { both: null }, metrics: { agents: 2 } });
    expect(result.error).toMatchObject({
      code: 'INVALID_OUTPUT',
      message: expect.stringMatching(/^outputs\.both: .*larger than the limit/),
    });
  });

  it('a record with an output of 64 levels can be read', async () => {
    const deep = Array.from({ length: 64 }).reduce<unknown>((inner) => [inner], 1);
    const { run, orchestrator } = scene([code('a', 'deep')], { scripts: { deep: () => deep } });
    const result = await run();
    expect(result.status).toBe('completed');
    expect((await orchestrator.executions.get(result.id)).agents[0]?.output).toEqual(deep);
  });

  it('a getter that throws fails the agent like an exception', async () => {
    const { error } = await outputOf(() => ({
      get x() {
        throw new Error('from a getter');
      },
    }));
    expect(error).toMatchObject({ code: 'AGENT_FAILED', message: 'from a getter' });
  });

  it('the agent waits for a thenable', async () => {
    const { a } = await outputOf(() => ({ then: (resolve: (value: unknown) => void) => resolve({ x: 1 }) }));
    expect(a).toEqual({ x: 1 });
  });

  it('an input that is not data is refused before anything runs', async () => {
    const { run, ran, orchestrator } = scene([ok('a')]);
    for (const input of [
      { at: new Date(Number.NaN) },
      { big: 1n },
      { m: new Map() },
      Number.NaN,
      new Money(),
      JSON.parse('{"__proto__":{"x":1}}'),
    ]) {
      await expect(run(input)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    }
    expect(ran).toEqual([]);
    expect((await orchestrator.executions.list()).executions).toEqual([]);
  });
});

describe('names that objects inherit', () => {
  const inherited = ['constructor', 'toString', 'hasOwnProperty', 'valueOf', 'isPrototypeOf'];

  it.each(inherited)('an agent, an output, a state key and an input field can be named %s', async (name) => {
    const { run } = scene({
      state: { initial: { [name]: 1 } },
      flow: [ok(name, { setState: { [name]: `\${state.${name} + 1}` } })],
      outputs: { [name]: `\${${name}.output}`, state: `\${state['${name}']}`, input: `\${input.${name}}` },
    });
    expect((await run({ [name]: 'given' })).output).toEqual({ [name]: name, state: 2, input: 'given' });
    expect((await run()).output).toEqual({ [name]: name, state: 3, input: null });
  });

  it.each(inherited)('%s of a value without an own property of that name is null', async (name) => {
    const { run } = scene({
      flow: [echo('a', {})],
      outputs: { x: [`\${a.output.${name}}`, `\${input.x.${name}}`, `\${input['${name}']}`, `\${state.${name}}`] },
      state: { initial: {} },
    });
    expect((await run({ x: [] })).output).toEqual({ x: [null, null, null, null] });
  });

  it('merging input of a caller changes no prototype', async () => {
    const { run } = scene({
      flow: [],
      outputs: { merged: '${merge(input.a, parseJson(input.text))}', admin: '${input.a.admin}' },
    });
    const result = await run({ a: {}, text: '{"__proto__":{"admin":true}}' });
    expect(result.error?.code).toBe('EXPRESSION_ERROR');
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  it.each(['__proto__', 'prototype'])(
    'a variable, a script and an operation named %s are found only when they are own',
    async (name) => {
      expect(() => scene([code('a', name)])).toThrow(`there is no script \`${name}\``);
      expect(() => scene([{ agent: 'a', operation: name }])).toThrow(`there is no operation \`${name}\``);
      expect(() => scene([echo('a', `\${env['${name}']}`)])).toThrow();
    },
  );

  it('a script is a registered name, never a path, a URL or an inherited key', () => {
    for (const script of [
      'node:fs',
      '../x',
      'data:text/javascript,1',
      'https://a.example/x.js',
      'constructor',
      '__proto__',
      'toString',
    ]) {
      expect(() => scene([code('a', script)])).toThrow(`there is no script \`${script}\``);
    }
    expect(() => scene([code('a', '${input.script}')])).toThrow('must be a plain name');
  });
});

describe('results are never evaluated again', () => {
  const payload = '${env.KEY} ${input.other} {{ env.KEY }} $${x}';

  it.each([
    ['input', [echo('a', { t: '${input.text}' })], '${a.output.t}'],
    ['a text around it', [echo('a', '<${input.text}>')], '${a.output}'],
    ['config', [code('a', 'config', { config: { t: '${input.text}' } })], '${a.output.t}'],
    ['an item', [{ foreach: ['${input.text}'], name: 'a', steps: [echo('x', '${item}')] }], '${a.output[0]}'],
    ['two steps', [echo('x', '${input.text}'), echo('a', '${x.output}')], '${a.output}'],
    ['an error message', [code('a', 'throws', { continueOnError: true })], '${a.error.message}'],
  ])('through %s', async (_what, flow, read) => {
    const { run } = scene(
      { flow, outputs: { read } },
      {
        env: { KEY: 'value of key' },
        scripts: {
          config: ({ config }) => config,
          throws: ({ input }) => {
            throw new Error(input.text);
          },
        },
      },
    );
    const { read: seen } = (await run({ text: payload, other: 'x' })).output as { read: string };
    expect(seen.replace(/^<|>$/g, '')).toBe(payload);
  });

  it('a key of a result that looks like an expression is a key', async () => {
    const { run } = scene({ flow: [echo('a', '${input}')], outputs: { a: '${a.output}' } });
    expect((await run({ '${env.KEY}': '${1 + 1}' })).output).toEqual({ a: { '${env.KEY}': '${1 + 1}' } });
  });
});

describe('unusual reads and numbers', () => {
  it.each<[string, unknown]>([
    ['${a.output[1e9]}', null],
    ['${a.output[-1]}', null],
    ["${a.output['0x1']}", null],
    ['${a.output.length}', 2],
    ["${length('text')}", 4],
    ['${input.text[0]}', 't'],
    ['${input.text[9]}', null],
    ['${input.text.length}', 4],
    ['${a.output[0].x.y.z}', null],
    ['${input.none[0].x}', null],
  ])('%s', async (read, expected) => {
    const { run } = scene({ flow: [echo('a', [1, 2])], outputs: { read } });
    const { read: seen } = (await run({ text: 'text' })).output as { read: unknown };
    expect(seen).toBe(expected);
  });

  it.each(['${1 / 0}', '${0 / 0}', '${1e308 * 10}', '${input.x / input.x}'])(
    '%s has no JSON value: it is null',
    async (read) => {
      expect(await scene({ flow: [], outputs: { read } }).run({ x: 0 })).toMatchObject({
        status: 'completed',
        output: { read: null },
      });
    },
  );

  it('a condition whose value is not a number does not hold', async () => {
    const { run, ran } = scene([ok('a', { condition: '${input.x / input.x}' }), ok('b')]);
    expect((await run({ x: 0 })).status).toBe('completed');
    expect(ran).toEqual(['b']);
  });
});

describe('scripts that misbehave', () => {
  it('a promise that never settles ends with its timeout, and others run meanwhile', async () => {
    const { start, clock, orchestrator } = scene([code('a', 'never', { timeout: 1000 })], {
      scripts: { never: () => new Promise(() => {}) },
      ensembles: [{ name: 'other', flow: [ok('x')] }],
    });
    const handle = await start();
    expect((await orchestrator.orchestrator.execute('other')).status).toBe('completed');
    await clock.advance(1000);
    expect((await handle.result()).error?.code).toBe('TIMEOUT');
  });

  it('a promise that settles twice, and a step that rejects after its timeout, affect nothing', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    const { run } = scene([code('a', 'twice'), code('b', 'late', { timeout: 50_000 }), ok('c')], {
      scripts: {
        twice: () => ({
          then(resolve: (value: unknown) => void, reject: (reason: unknown) => void) {
            resolve(1);
            resolve(2);
            reject(new Error('too late'));
            throw new Error('later still');
          },
        }),
        late: async () => 'in time',
      },
    });
    const result = await run();
    await turns();
    process.off('unhandledRejection', note);
    expect(result.agents.map(({ output }) => output)).toEqual([1, 'in time', 'c']);
    expect(unhandled).toEqual([]);
  });

  it('throwing a value that is not an error, even with hostile getters, fails only the agent', async () => {
    const refuse = () => {
      throw new Error('no');
    };
    const hostile = [
      new Proxy({}, { get: refuse, getPrototypeOf: refuse }),
      new Proxy(new Error('x'), { get: refuse }),
      {
        get message() {
          return refuse();
        },
      },
    ];
    for (const thrown of [null, 5n, Symbol('s'), () => 1, Object.create(null), ...hostile]) {
      const { run } = scene([code('a', 'throws', { continueOnError: true }), ok('b')], {
        scripts: {
          throws: () => {
            throw thrown;
          },
        },
      });
      const result = await run();
      expect(result.status).toBe('completed');
      expect(result.agents[0]).toMatchObject({
        status: 'failed',
        error: { code: 'AGENT_FAILED', message: expect.any(String) },
      });
    }
  });
});

describe('expressions that cost too much', () => {
  it('a condition over the budget fails its agent, before it has blocked for long', async () => {
    const list = Array.from({ length: 200_000 }, (_, i) => (i * 7919) % 200_000);
    const condition =
      '${length(unique(flatten([input.list, sort(input.list), sort(input.list), sort(input.list)]))) > 0}';
    const { run, ran } = scene([ok('a', { condition })]);
    const began = performance.now();
    const result = await run({ list });
    expect(performance.now() - began).toBeLessThan(scaled(5000));
    expect(result.error).toMatchObject({ code: 'EXPRESSION_ERROR', message: expect.stringContaining('budget') });
    expect(ran).toEqual([]);
  });

  it('outputs that double forty times stop at the size limit', async () => {
    const flow = Array.from({ length: 40 }, (_, i) =>
      echo(`a${i}`, i === 0 ? '${input.text}' : `\${a${i - 1}.output + a${i - 1}.output}`),
    );
    const result = await scene(flow).run({ text: 'x'.repeat(1000) });
    expect(result).toMatchObject({ status: 'failed', error: { code: 'EXPRESSION_ERROR' } });
    expect(result.metrics.agents).toBeLessThan(20);
  });
});

describe('definitions and inputs at their limits', () => {
  it('1,000 steps run, 1,001 are refused', async () => {
    const steps = (count: number) => Array.from({ length: count }, (_, i) => ok(`a${i}`));
    const { run, ran } = scene(steps(1000));
    expect((await run()).metrics.agents).toBe(1000);
    expect(ran.length).toBe(1000);
    expect(() => scene(steps(1001))).toThrow(/1,?000/);
  });
});
