/** `while`: rounds, their limits, and failures in the loop. */

import { describe, expect, it } from 'vitest';
import { boom, code, echo, ok, scene, turns, when } from './scene.ts';

type Fields = Readonly<Record<string, unknown>>;
const tick = echo('tick', '${(tick.output ?? 0) + 1}');
const rounds = (most: number, steps: readonly Fields[] = [], fields: Fields = {}): Fields => ({
  while: `\${(tick.output ?? 0) < ${most}}`,
  steps: [tick, ...steps],
  ...fields,
});

describe('while', () => {
  it.each([0, 1, 3])('its condition is checked before each round: %i rounds', async (most) => {
    const { run, ran } = scene({ flow: [rounds(most), ok('z')], outputs: { last: '${tick.output}' } });
    expect((await run()).output).toEqual({ last: most || null });
    expect(ran.filter((name) => name === 'tick').length).toBe(most);
  });

  it('keys contain the round, and a name has the result of the last round, readable in the next', async () => {
    const { run } = scene({
      flow: [rounds(3, [echo('sum', '${(sum.output ?? 0) + tick.output}'), ok('odd', when('tick.output == 2'))])],
      outputs: { sum: '${sum.output}', odd: '${odd.executed}' },
    });
    const result = await run();
    expect(result.output).toEqual({ sum: 6, odd: false });
    expect(result.agents.map(({ key }) => key).slice(0, 3)).toEqual([
      'flow[0].while[0].steps[0]',
      'flow[0].while[0].steps[1]',
      'flow[0].while[1].steps[0]',
    ]);
  });

  it('it fails after 1,000 rounds, or after `maxIterations`', async () => {
    const many = scene({ flow: [rounds(1000)], outputs: { n: '${tick.output}' } });
    expect(await many.run()).toMatchObject({ status: 'completed', output: { n: 1000 } });
    const over = scene([rounds(1001)]);
    const failed = await over.run();
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'ITERATION_LIMIT' }, metrics: { agents: 1000 } });
    expect(failed.error?.message).toBe('`while` at flow[0] still holds after 1000 rounds (`maxIterations`)');
    const few = scene([rounds(3, [], { maxIterations: 2 })]);
    expect((await few.run()).error?.message).toContain('2 rounds');
    const one = scene([rounds(2, [], { maxIterations: 1 })]);
    expect((await one.run()).error?.message).toContain('1 round (');
    const exact = scene([rounds(2, [], { maxIterations: 2 })]);
    expect((await exact.run()).status).toBe('completed');
  });

  it.each<[string, readonly Fields[], string, string | undefined]>([
    ['checked by nothing', [{ while: true, steps: [boom('a'), ok('b')] }], 'a', 'a'],
    [
      'checked by its condition, which leads to another round',
      [{ while: '${!a.success && !b.failed}', steps: [code('a', 'second'), ok('x')] }, { parallel: [ok('b')] }],
      'a x a x b',
      undefined,
    ],
    [
      'checked by its condition, which no longer holds',
      [{ while: '${!a.failed}', steps: [boom('a'), ok('x')] }, ok('z')],
      'a x',
      'a',
    ],
    [
      '... and by a condition after it',
      [{ while: '${!a.failed}', steps: [boom('a'), ok('x')] }, ok('z', when('a.failed'))],
      'a x z',
      undefined,
    ],
    [
      'checked by a step of the round',
      [rounds(2, [boom('a'), ok('b', when('a.failed'))])],
      'tick a b tick a b',
      undefined,
    ],
    [
      'checked by a step before it: only in the next round',
      [rounds(2, [ok('b', when('a.failed')), boom('a')])],
      'tick a',
      'a',
    ],
    [
      'outside, checked inside the loop',
      [boom('a'), rounds(2, [ok('b', when('a.failed'))]), ok('z')],
      'a tick b tick b z',
      undefined,
    ],
    [
      'outside, checked inside the loop, without a round',
      [boom('a'), rounds(0, [ok('b', when('a.failed'))]), ok('z')],
      'a',
      'a',
    ],
  ])('a failure %s', async (_rule, flow, ran, fails) => {
    let calls = 0;
    const made = scene(flow, {
      scripts: {
        second: () => {
          calls += 1;
          if (calls < 2) throw new Error('not yet');
        },
      },
    });
    const result = await made.run();
    expect(made.ran.join(' ')).toBe(ran);
    expect([result.status, result.error?.agent]).toEqual([fails ? 'failed' : 'completed', fails]);
  });

  it('a condition that can not be evaluated fails; a condition on the state reads what the round set', async () => {
    const broken = scene([{ while: '${input.x - 1}', steps: [ok('a')] }]);
    expect(await broken.run({ x: 'text' })).toMatchObject({ status: 'failed', error: { code: 'EXPRESSION_ERROR' } });
    const { run, ran } = scene({
      state: { initial: { n: 0 } },
      flow: [{ while: '${state.n < 3}', steps: [ok('a', { setState: { n: '${state.n + 1}' } })] }],
    });
    expect((await run()).status).toBe('completed');
    expect(ran).toEqual(['a', 'a', 'a']);
  });

  it('a cancellation and a deadline end it between rounds', async () => {
    const { start, ran } = scene([{ while: true, steps: [code('a', 'turn')], maxIterations: 1_000_000 }], {
      scripts: { turn: () => turns(1) },
    });
    const handle = await start();
    await turns(5);
    handle.cancel();
    expect((await handle.result()).status).toBe('cancelled');
    const before = ran.length;
    await turns(5);
    expect(ran.length).toBe(before);
    const late = scene({ timeout: 1000, flow: [{ while: true, steps: [{ sleep: 300 }] }] });
    expect(await late.run()).toMatchObject({ status: 'timed_out', duration: 1000 });
  });

  it('random values differ between rounds', async () => {
    const { run } = scene({
      flow: [rounds(2, [echo('all', '${merge({ list: all.output }, { r: random() })}')])],
      outputs: { all: '${all.output}' },
    });
    const { all } = (await run()).output as { all: { r: number; list: { r: number } } };
    expect(all.r).not.toBe(all.list.r);
  });
});
