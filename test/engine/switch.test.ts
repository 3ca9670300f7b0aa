/** `switch`: the case that a value chooses. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { boom, echo, ok, scene, when } from './scene.ts';

type Fields = Readonly<Record<string, unknown>>;

describe('switch', () => {
  const cases = { refund: [ok('a')], 1: [ok('b')], true: [ok('c')], '1.5': [ok('d')], '': [ok('e')] };

  it.each([
    ['refund', 'a'],
    [1, 'b'],
    ['1', 'b'],
    [true, 'c'],
    [1.5, 'd'],
    ['', 'e'],
    [false, 'other'],
    [null, 'other'],
    [undefined, 'other'],
    [['refund'], 'other'],
    [{ refund: 1 }, 'other'],
    ['REFUND', 'other'],
    ['toString', 'other'],
    ['__proto__', 'other'],
    ['constructor', 'other'],
  ])('%j chooses %s: only own keys of `cases` count', async (kind, expected) => {
    const { run, ran } = scene([{ switch: '${input.kind}', cases, default: [ok('other')] }, ok('z')]);
    expect((await run({ kind })).status).toBe('completed');
    expect(ran).toEqual([expected, 'z']);
  });

  it('without a matching case and a default nothing runs; `${}` may be left out; each case may have the same name', async () => {
    const flow = [
      {
        switch: 'input.kind',
        cases: { a: [echo('x', 1, { name: 'got' })], b: [echo('y', 2, { name: 'got' })] },
      },
    ];
    const { run, ran } = scene({ flow, outputs: { got: '${got.output}' } });
    expect((await run({ kind: 'b' })).output).toEqual({ got: 2 });
    expect((await run({ kind: 'c' })).output).toEqual({ got: null });
    expect(ran.length).toBe(1);
  });

  it.each<[string, readonly Fields[], string, string | undefined]>(
    [
      [
        'handled by a switch that checked it and led to a step',
        [boom('a'), { switch: '${a.failed}', cases: { true: [ok('b')] } }, ok('z')],
        'a b z',
        undefined,
      ],
      [
        'not handled by a switch that led to no step',
        [boom('a'), { switch: '${a.failed}', cases: { false: [ok('b')] } }, ok('z')],
        'a',
        'a',
      ],
      [
        'handled by a switch that led to its default',
        [boom('a'), { switch: '${a.success}', cases: { true: [ok('b')] }, default: [ok('c')] }, ok('z')],
        'a c z',
        undefined,
      ],
      [
        'not handled by a switch that read its error',
        // As text of any kind: that the case is never chosen is known when it is loaded.
        [boom('a'), { switch: '${parseJson(json(a.error.code))}', cases: { AGENT_FAILED: [ok('b')] } }],
        'a',
        'a',
      ],
      [
        'handled inside a case, when a condition after it checks it',
        [{ switch: 'x', cases: {}, default: [boom('a')] }, ok('b', when('a.failed'))],
        'a b',
        undefined,
      ],
    ].map(
      ([rule, flow, ...rest]) =>
        [
          rule,
          (flow as Fields[]).map((step) =>
            step.switch === 'x' ? { ...step, switch: "${'x'}", cases: { y: [] } } : step,
          ),
          ...rest,
        ] as never,
    ),
  )('a failure is %s', async (_rule, flow, ran, fails) => {
    const made = scene(flow);
    const result = await made.run();
    expect(made.ran.join(' ')).toBe(ran);
    expect([result.status, result.error?.agent]).toEqual([fails ? 'failed' : 'completed', fails]);
  });

  it('a value that can not be evaluated fails the flow, with and without the state; the failure is recorded once', async () => {
    const flow = [{ switch: '${input.x - 1}', cases: { a: [ok('a')] } }];
    expect(await scene(flow).run({ x: 'text' })).toMatchObject({
      status: 'failed',
      error: { code: 'EXPRESSION_ERROR' },
    });
    const stateful = [{ switch: '${state.x - 1}', cases: { a: [ok('a')] } }];
    const made = scene({ state: { initial: { x: 'text' } }, flow: stateful }, { storage: memoryStorage() });
    expect(await made.run()).toMatchObject({ status: 'failed', error: { code: 'EXPRESSION_ERROR' } });
  });
});
