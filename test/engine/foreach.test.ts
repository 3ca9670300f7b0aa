/** `if` and `foreach`: which steps run, in what order, what they read, and their outputs. */

import { describe, expect, it } from 'vitest';
import { isOrchestratorError } from '../../src/engine/base/errors.ts';
import type { Script } from '../../src/operations/code/script.ts';
import { boom, code, deferred, echo, ok, scene, turns, when } from './scene.ts';

type Fields = Readonly<Record<string, unknown>>;
const each = (items: unknown, steps: readonly Fields[], fields: Fields = {}): Fields => ({
  foreach: items,
  steps,
  name: 'all',
  ...fields,
});
const outputs = { all: '${all.output}' };
const issuesOf = (definition: Fields | readonly Fields[]) => {
  try {
    scene(definition);
  } catch (error) {
    if (isOrchestratorError(error, 'INVALID_DEFINITION')) return error.details.issues.map(({ message }) => message);
    throw error;
  }
  return [];
};

describe('if', () => {
  it.each([
    [true, 'a z'],
    [false, 'b z'],
    [1, 'a z'],
    [0, 'b z'],
    ['', 'b z'],
    ['false', 'a z'],
    [null, 'b z'],
    [[], 'a z'],
    [{}, 'a z'],
  ])('a condition has the truth of its value in JavaScript: %j', async (go, expected) => {
    const { run, ran } = scene([{ if: '${input.go}', then: [ok('a')], else: [ok('b')] }, ok('z')]);
    expect((await run({ go })).status).toBe('completed');
    expect(ran.join(' ')).toBe(expected);
  });

  it.each([
    [{ a: true, b: true }, '1 2 z'],
    [{ a: true, b: false }, '1 3 z'],
    [{ a: false, b: true }, '4 z'],
    [{ a: false, b: false }, '5 6 z'],
  ])('nested, with input %j', async (input, expected) => {
    const numbered = (n: number) => ok(`s${n}`);
    const { run, ran } = scene([
      {
        if: '${input.a}',
        then: [numbered(1), { if: '${input.b}', then: [numbered(2)], else: [numbered(3)] }],
        else: [{ if: 'input.b', then: [numbered(4)], else: [numbered(5), numbered(6)] }],
      },
      ok('z'),
    ]);
    await run(input);
    expect(ran.join(' ').replaceAll('s', '')).toBe(expected);
  });

  it('a name in both branches reads the branch that ran', async () => {
    const flow = [
      {
        if: '${input.go}',
        then: [ok('a', { name: 'x', config: { give: 1 } })],
        else: [ok('b', { name: 'x', config: { give: 2 } })],
      },
    ];
    const { run } = scene({ flow, outputs: { x: '${x.output}' } });
    expect((await run({ go: true })).output).toEqual({ x: 1 });
    expect((await run({ go: false })).output).toEqual({ x: 2 });
  });

  it('step keys contain the branch', async () => {
    const { run } = scene([{ if: true, then: [{ if: false, then: [], else: [ok('a')] }] }]);
    expect((await run()).agents[0]?.key).toBe('flow[0].then[0].else[0]');
  });

  it('a boolean is a condition too', async () => {
    const { run, ran } = scene([
      { if: false, then: [ok('a')] },
      ok('b', { condition: false }),
      ok('c', { condition: true }),
    ]);
    await run();
    expect(ran).toEqual(['c']);
  });
});

describe('foreach', () => {
  it("its output is the last step's output of each item, in item order, whichever item ends first", async () => {
    const gates = [deferred(), deferred(), deferred()];
    const { start, ran } = scene(
      {
        flow: [each([0, 1, 2], [ok('first'), code('last', 'gate', { input: '${item}' })], { concurrency: 3 })],
        outputs,
      },
      { scripts: { gate: async ({ input }) => `${input}${await gates[input]?.promise}` } },
    );
    const handle = await start();
    for (const index of [2, 0, 1]) {
      gates[index]?.resolve('!');
      await turns();
    }
    expect((await handle.result()).output).toEqual({ all: ['0!', '1!', '2!'] });
    expect(ran.filter((name) => name === 'last').length).toBe(3);
  });

  it.each([
    [undefined, 1],
    [1, 1],
    [3, 3],
    [10, 7],
    [1000, 7],
  ])('concurrency %s over 7 items: at most %i active at once', async (concurrency, expected) => {
    let atWork = 0;
    let most = 0;
    const work: Script = async () => {
      most = Math.max(most, ++atWork);
      await turns(1);
      atWork -= 1;
    };
    const { run, ran } = scene(
      [each([1, 2, 3, 4, 5, 6, 7], [code('x', 'work'), code('y', 'work')], { ...(concurrency && { concurrency }) })],
      { scripts: { work } },
    );
    expect((await run()).status).toBe('completed');
    expect([most, ran.length]).toEqual([expected, 14]);
  });

  it('without `concurrency`, items run one after the other', async () => {
    const { run, ran } = scene([each(['a', 'b'], [ok('x'), ok('y')])]);
    await run();
    expect(ran).toEqual(['x', 'y', 'x', 'y']);
  });

  it('${item} and ${index}, and another name by `as`', async () => {
    const flow = [
      each('${input.list}', [echo('x', ['${item.id}', '${index}'])]),
      each('${input.list}', [echo('y', '${order.id}:${index}')], { as: 'order', name: 'named' }),
    ];
    const { run } = scene({ flow, outputs: { ...outputs, named: '${named.output}' } });
    const result = await run({ list: [{ id: 'p' }, { id: 'q' }] });
    expect(result.output).toEqual({
      all: [
        ['p', 0],
        ['q', 1],
      ],
      named: ['p:0', 'q:1'],
    });
  });

  it('a literal list, with expressions in it', async () => {
    const { run } = scene({ flow: [each(['${input.a}', { b: '${input.b}' }, 3], [echo('x', '${item}')])], outputs });
    expect((await run({ a: 1, b: 2 })).output).toEqual({ all: [1, { b: 2 }, 3] });
  });

  it('nested: the inner steps read both items, and each inner result stays in its outer item', async () => {
    const inner = each('${row.cells}', [echo('x', '${row.name}${item}${index}')], { name: 'cells' });
    const { run } = scene({
      flow: [
        each('${input.rows}', [inner, echo('y', { row: '${row.name}', cells: '${cells.output}' })], {
          as: 'row',
          concurrency: 2,
        }),
      ],
      outputs,
    });
    const rows = [
      { name: 'a', cells: [1, 2] },
      { name: 'b', cells: [3] },
      { name: 'c', cells: [] },
    ];
    expect((await run({ rows })).output).toEqual({
      all: [
        { row: 'a', cells: ['a10', 'a21'] },
        { row: 'b', cells: ['b30'] },
        { row: 'c', cells: [] },
      ],
    });
  });

  it('three levels deep, keys contain the place', async () => {
    const flow = [
      each(
        [1],
        [
          each([1, 2], [{ if: true, then: [each(['z'], [echo('x', '${a}${b}${c}')], { as: 'c', name: 'three' })] }], {
            as: 'b',
            name: 'two',
          }),
        ],
        { as: 'a' },
      ),
    ];
    const { run } = scene(flow);
    const result = await run();
    expect(result.agents.map(({ key, output }) => [key, output])).toEqual([
      ['flow[0].foreach[0].steps[0].foreach[0].steps[0].then[0].foreach[0].steps[0]', '11z'],
      ['flow[0].foreach[0].steps[0].foreach[1].steps[0].then[0].foreach[0].steps[0]', '12z'],
    ]);
  });

  it('an item can not read results of another item', async () => {
    const steps = [ok('maybe', { condition: '${item == 1}', config: { give: 'mine' } }), echo('x', '${maybe.output}')];
    const { run } = scene({ flow: [each([1, 2, 3], steps, { concurrency: 3 })], outputs });
    expect((await run()).output).toEqual({ all: ['mine', null, null] });
  });

  it('a step inside reads earlier results outside', async () => {
    const flow = [
      ok('before', { config: { give: 10 } }),
      each([1, 2], [echo('x', '${before.output + item}')]),
      echo('after', '${all.output}'),
    ];
    const { run } = scene({ flow, outputs: { after: '${after.output}' } });
    expect((await run()).output).toEqual({ after: [11, 12] });
  });

  it('a name inside cannot be read outside: refused at load', () => {
    expect(issuesOf([each([1], [ok('x')]), echo('y', '${x.output}')])).toEqual([expect.stringContaining('`x`')]);
    expect(issuesOf({ flow: [each([1], [ok('x')])], outputs: { x: '${x.output}' } })).toEqual([
      expect.stringContaining('`x`'),
    ]);
    expect(issuesOf([echo('y', '${item}')])).toEqual([expect.stringContaining('only inside a `foreach`')]);
  });

  it.each([
    ['an empty list', []],
    ['a literal empty list', undefined],
  ])('%s: no item, an empty output, and the flow continues', async (_what, list) => {
    const { run, ran } = scene({
      flow: [each(list ? '${input.list}' : [], [ok('x')]), ok('z')],
      outputs: { ...outputs, ran: '${all.success}' },
    });
    expect((await run({ list })).output).toEqual({ all: [], ran: true });
    expect(ran).toEqual(['z']);
  });

  it.each([
    [null, 'null'],
    ['text', 'a string'],
    [7, 'a number'],
    [true, 'a boolean'],
    [{ a: 1 }, 'an object'],
  ])('%j is not a list: the block fails, and the message names the value', async (list, what) => {
    const { run } = scene({
      flow: [each('${input.list}', [ok('x')]), ok('z', when('all.failed'))],
      outputs: { why: '${all.error.message}' },
    });
    const result = await run({ list });
    expect(result).toMatchObject({
      status: 'completed',
      output: { why: `\`foreach\` at flow[0] needs a list, and its expression gave ${what}` },
    });
  });

  it('100,000 items are accepted, 100,001 are not', async () => {
    const many = scene({
      flow: [each("${split(input.text, ',')}", [ok('x', when('false'))], { collect: false })],
      outputs,
    });
    const full = await many.run({ text: ','.repeat(99_999) });
    expect([full.status, full.output]).toEqual(['completed', { all: 100_000 }]);
    const over = await many.run({ text: ','.repeat(100_000) });
    expect(over.error).toMatchObject({
      code: 'EXPRESSION_ERROR',
      message: '`foreach` at flow[0] has 100001 items; at most 100000 are allowed',
    });
  });

  it('with collect: false, the output is the number of completed items', async () => {
    const { run } = scene({ flow: [each('${input.list}', [ok('x')], { collect: false })], outputs });
    expect((await run({ list: [1, 2, 3] })).output).toEqual({ all: 3 });
    expect((await run({ list: [] })).output).toEqual({ all: 0 });
  });

  it('breakWhen: evaluated after each item with its results; when it holds, no new item begins', async () => {
    const { run, ran } = scene({
      flow: [each([1, 2, 3, 4], [echo('x', '${item * 10}')], { breakWhen: '${x.output >= 20}' }), ok('z')],
      outputs,
    });
    expect((await run()).output).toEqual({ all: [10, 20] });
    expect(ran).toEqual(['x', 'x', 'z']);
  });

  it('breakWhen with concurrency: items in flight end, and count', async () => {
    const gates = [deferred(), deferred(), deferred(), deferred()];
    const gate: Script = async ({ input }) => {
      await gates[input]?.promise;
      return input;
    };
    const { start, ran } = scene(
      {
        flow: [
          each([0, 1, 2, 3], [code('x', 'gate', { input: '${item}' })], { concurrency: 2, breakWhen: '${index == 1}' }),
        ],
        outputs,
      },
      { scripts: { gate } },
    );
    const handle = await start();
    gates[1]?.resolve(1);
    await turns();
    gates[0]?.resolve(0);
    expect((await handle.result()).output).toEqual({ all: [0, 1] });
    expect(ran.length).toBe(2);
  });

  it('breakWhen that cannot be evaluated fails the block', async () => {
    const { run, ran } = scene([each([1, 2], [ok('x')], { breakWhen: '${item - input.text}' })]);
    expect(await run({ text: 'x' })).toMatchObject({ status: 'failed', error: { code: 'EXPRESSION_ERROR' } });
    expect(ran).toEqual(['x']);
  });

  it('breakWhen reads the state as it is after the item', async () => {
    const flow = [
      each([1, 2, 3, 4], [ok('x', { setState: { done: '${item}' } })], { breakWhen: '${state.done == 2}' }),
    ];
    const { run } = scene({ state: { initial: { done: 0 } }, flow, outputs });
    expect((await run()).output).toEqual({ all: ['x', 'x'] });
  });

  it('the output of an item whose last step was skipped is null', async () => {
    const { run } = scene({
      flow: [each([1, 2], [echo('x', '${item}'), ok('y', { condition: '${item == 2}' })])],
      outputs,
    });
    expect((await run()).output).toEqual({ all: [null, 'y'] });
  });

  it('an item fails: no new item begins, items in flight receive the abort signal, and the block fails with its error', async () => {
    const signals: AbortSignal[] = [];
    const gate = deferred();
    const work: Script = ({ input, signal }) => {
      signals[input] = signal;
      if (input === 1) return gate.promise;
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    const { start, ran } = scene(
      {
        flow: [
          each([0, 1, 2, 3, 4], [code('x', 'work', { input: '${item}' }), ok('y')], { concurrency: 3 }),
          ok('z', when('all.failed')),
        ],
        outputs: { error: '${all.error}' },
      },
      { scripts: { work } },
    );
    const handle = await start();
    gate.reject(new Error('item 1 broke'));
    const result = await handle.result();
    expect(result.output).toEqual({ error: { code: 'AGENT_FAILED', message: 'item 1 broke', agent: 'x' } });
    expect(signals.map((signal) => signal.aborted)).toEqual([true, false, true]);
    expect(signals[0]?.reason).toMatchObject({
      code: 'EXECUTION_CANCELLED',
      message: 'another step of the block failed',
    });
    expect(ran).toEqual(['x', 'x', 'x', 'z']);
    expect(result.status).toBe('completed');
  });

  it('an item fails: an item in flight that still succeeds is stored, and does not continue', async () => {
    const gates = [deferred(), deferred()];
    const { start, ran } = scene(
      [each([0, 1], [code('x', 'gate', { input: '${item}' }), ok('y')], { concurrency: 2 })],
      {
        scripts: { gate: ({ input }) => gates[input]?.promise },
      },
    );
    const handle = await start();
    gates[0]?.reject(new Error('broke'));
    await turns();
    gates[1]?.resolve('well');
    const result = await handle.result();
    expect(result.agents.map(({ key, status, output }) => [key, status, output])).toEqual([
      ['flow[0].foreach[0].steps[0]', 'failed', null],
      ['flow[0].foreach[1].steps[0]', 'completed', 'well'],
    ]);
    expect(ran).toEqual(['x', 'x']);
  });

  it('an item fails: an item in flight that ignores its signal delays the block by at most 25 s', async () => {
    const work: Script = ({ input }) => (input === 0 ? Promise.reject(new Error('broke')) : new Promise(() => {}));
    const { start, clock } = scene(
      [each([0, 1], [code('x', 'work', { input: '${item}' })], { concurrency: 2 }), ok('z', when('all.failed'))],
      { scripts: { work } },
    );
    const handle = await start();
    await clock.advance(25_000);
    expect(await handle.result()).toMatchObject({ status: 'completed', duration: 25_000 });
    expect(clock.nextIn).toBeUndefined();
  });

  it('an item fails while another waits for its retry: the wait ends at once', async () => {
    const work: Script = async ({ input, execution }) => {
      if (input === 0 || execution.attempt === 1) throw new Error(`item ${input} broke`);
    };
    const { start, clock, ran } = scene(
      [
        each(
          [1, 0],
          [
            code('x', 'work', {
              input: '${item}',
              retry: { maxAttempts: 4, backoff: 'fixed', delay: 60_000 },
              condition: '${item == 1}',
            }),
            code('y', 'work', { input: '${item}', timeout: 5000, condition: '${item == 0}' }),
          ],
          { concurrency: 2 },
        ),
      ],
      { scripts: { work } },
    );
    const handle = await start();
    await turns();
    expect(await handle.result()).toMatchObject({ status: 'failed', duration: 0 });
    expect([ran, clock.nextIn]).toEqual([['x', 'y'], undefined]);
  });

  it('a failed block keeps the outputs of completed items', async () => {
    const { run } = scene(
      { flow: [each([1, 2, 3], [code('x', 'second', { input: '${item}' })]), ok('z', when('all.failed'))], outputs },
      {
        scripts: {
          second: ({ input }) => {
            if (input === 2) throw new Error('broke');
            return input;
          },
        },
      },
    );
    expect((await run()).output).toEqual({ all: [1, null] });
  });

  it('the record keeps the first 1,000 runs and counts all', async () => {
    const { run, orchestrator } = scene({ flow: [each("${split(input.text, ',')}", [ok('x')], { collect: false })] });
    const result = await run({ text: ','.repeat(1499) });
    expect([result.agents.length, result.metrics.agents]).toEqual([1000, 1500]);
    expect(result.agents[999]?.key).toBe('flow[0].foreach[999].steps[0]');
    expect(await orchestrator.executions.get(result.id)).toEqual(result);
  });

  it('a failing item among many leaves no failure for later steps', async () => {
    const { run, ran } = scene([
      each([1, 2, 3], [boom('x')], { concurrency: 3, continueOnError: true }),
      boom('a'),
      ok('b', when('a.failed')),
      ok('c'),
    ]);
    expect((await run()).status).toBe('completed');
    expect(ran.slice(-3)).toEqual(['a', 'b', 'c']);
  });

  it('after a script throws at once in the first of many concurrent items, no other item begins', async () => {
    const { run, ran } = scene([each([1, 2, 3, 4], [boom('x')], { concurrency: 2 })]);
    expect((await run()).error?.message).toBe('boom in x');
    expect(ran.length).toBeLessThanOrEqual(2);
  });
});
