/** `parallel`: which branch decides, how the others stop, the output of the block, and failures of branches. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { isOrchestratorError } from '../../src/engine/base/errors.ts';
import type { Script } from '../../src/operations/code/script.ts';
import { laterStorage } from '../storage/later-storage.ts';
import { boom, code, deferred, echo, ok, scene, turns, when } from './scene.ts';

type Fields = Readonly<Record<string, unknown>>;
const block = (parallel: readonly Fields[], fields: Fields = {}): Fields => ({ parallel, name: 'all', ...fields });
const outputs = { all: '${all.output}', failed: '${all.failed}' };
const obedient: Script = ({ signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
const never: Script = () => new Promise(() => {});
const waits = (agent: string, fields: Fields = {}) => code(agent, 'obedient', fields);
const scripts = { obedient, never };

const issuesOf = (flow: readonly Fields[]) => {
  try {
    scene(flow);
  } catch (error) {
    if (isOrchestratorError(error, 'INVALID_DEFINITION'))
      return error.details.issues.map(({ message }) => message).join('\n');
    throw error;
  }
  return '';
};

describe('parallel: all', () => {
  it('its output has the output of each branch by its name, or by its index', async () => {
    const flow = [
      block([
        ok('a'),
        ok('b', { name: 'other' }),
        { if: true, then: [ok('c'), ok('d')] },
        { foreach: [1, 2], steps: [echo('e', '${item}')], name: 'each' },
        { sleep: 5 },
        ok('skipped', when('false')),
      ]),
    ];
    const { run } = scene({ flow, outputs });
    const result = await run();
    const slept = expect.any(Number);
    expect(result.output).toEqual({
      all: { a: 'a', other: 'other', 2: 'd', each: [1, 2], 4: slept, skipped: null },
      failed: false,
    });
    expect(result.duration).toBe(5);
    expect(Object.keys((result.output as { all: object }).all).sort()).toEqual([
      '2',
      '4',
      'a',
      'each',
      'other',
      'skipped',
    ]);
  });

  it('branches are active at the same time, and their names can be read after the block', async () => {
    const gate = deferred();
    const { start, ran } = scene(
      {
        flow: [block([code('a', 'gate'), code('b', 'open')]), echo('c', ['${a.output}', '${b.output}'])],
        outputs: { c: '${c.output}' },
      },
      {
        scripts: {
          gate: () => gate.promise,
          open: () => {
            gate.resolve('opened');
            return 'opener';
          },
        },
      },
    );
    expect((await (await start()).result()).output).toEqual({ c: ['opened', 'opener'] });
    expect(ran).toEqual(['a', 'b', 'c']);
  });

  it.each([
    [undefined, 6],
    [1, 1],
    [2, 2],
    [100, 6],
  ])('concurrency %s over 6 branches: %i active at once', async (concurrency, expected) => {
    let atWork = 0;
    let most = 0;
    const work: Script = async () => {
      most = Math.max(most, ++atWork);
      await turns(1);
      atWork -= 1;
    };
    const branches = Array.from({ length: 6 }, (_, i) => code(`s${i}`, 'work'));
    const { run, ran } = scene([block(branches, concurrency ? { concurrency } : {})], { scripts: { work } });
    expect((await run()).status).toBe('completed');
    expect([most, ran.length]).toEqual([expected, 6]);
  });

  it('a branch fails: the other branches receive the abort signal, no other branch begins, and the block fails', async () => {
    const signals: AbortSignal[] = [];
    const work: Script = (context) => {
      signals.push(context.signal);
      return obedient(context);
    };
    const { run, ran } = scene(
      {
        flow: [block([code('a', 'work'), code('b', 'soon'), ok('c')], { concurrency: 2 }), ok('z')],
        outputs: { ...outputs, why: '${all.error}' },
      },
      { scripts: { work, soon: () => turns(1).then(() => Promise.reject(new Error('broke'))) } },
    );
    const result = await run();
    const error = { code: 'AGENT_FAILED', message: 'broke', agent: 'b' };
    expect(result).toMatchObject({ status: 'failed', error });
    expect(result.partialOutput).toEqual({ all: { a: null, b: null, c: null }, failed: true, why: error });
    expect(signals[0]?.reason).toMatchObject({
      code: 'EXECUTION_CANCELLED',
      message: 'another step of the block failed',
    });
    expect(ran).toEqual(['a', 'b']);
  });

  it.each<[string, readonly Fields[], string, string | undefined]>([
    [
      'a condition after the block, on a name in it',
      [block([boom('a'), ok('b')]), ok('c', when('a.failed'))],
      'a b c',
      undefined,
    ],
    [
      'a condition after the block that does not hold',
      [block([boom('a'), ok('b')]), ok('c', when('a.failed && false'))],
      'a b',
      'a',
    ],
    [
      'a guard on the name of the block',
      [block([boom('a'), ok('b')]), ok('c', when('all.failed'))],
      'a b c',
      undefined,
    ],
    ['continueOnError on the block', [block([boom('a')], { continueOnError: true }), ok('c')], 'a c', undefined],
    [
      'continueOnError in a branch',
      [block([boom('a', { continueOnError: true }), ok('b')]), ok('c')],
      'a b c',
      undefined,
    ],
    [
      'a guard inside the branch',
      [block([{ if: true, then: [boom('a'), ok('b', when('a.failed'))] }]), ok('c')],
      'a b c',
      undefined,
    ],
    [
      'another in the same branch, and a condition after the block on one of them',
      [block([{ if: true, then: [boom('a'), boom('b')] }]), ok('c', when('a.failed'))],
      'a b',
      'a',
    ],
    [
      'another in a second branch, and a condition after the block on one of them',
      [block([boom('a'), boom('b')]), ok('c', when('a.failed'))],
      'a b',
      'a',
    ],
    ['a condition on the block', [boom('a'), block([ok('b')], when('a.failed')), ok('c')], 'a b c', undefined],
    [
      'a condition on the block that does not hold',
      [boom('a'), block([ok('b')], when('a.success')), ok('c')],
      'a',
      'a',
    ],
    [
      'a guard in a branch, which handles a failure outside',
      [boom('a'), block([ok('b', when('a.failed')), ok('x')]), ok('c')],
      'a b x c',
      undefined,
    ],
    [
      'a guard in a race, which handles it when its branch wins',
      [boom('a'), block([ok('b', when('a.failed'))], { waitFor: 'any' }), ok('c')],
      'a b c',
      undefined,
    ],
  ])('a failure and %s', async (_rule, flow, ran, fails) => {
    const made = scene(flow);
    const result = await made.run();
    expect(made.ran.join(' ')).toBe(ran);
    expect([result.status, result.error?.agent]).toEqual([fails ? 'failed' : 'completed', fails]);
  });

  it('a branch that ignores its signal delays the block by at most 25 s, and its later result is dropped', async () => {
    const late = deferred();
    const { start, clock, orchestrator } = scene([block([code('a', 'late'), boom('b')]), ok('z', when('all.failed'))], {
      scripts: { late: () => late.promise },
    });
    const handle = await start();
    await clock.advance(25_000);
    const result = await handle.result();
    expect(result).toMatchObject({ status: 'completed', duration: 25_000 });
    late.resolve(1);
    await turns();
    expect((await orchestrator.executions.get(handle.id)).agents.map(({ name }) => name)).toEqual(['b', 'z']);
    expect(clock.nextIn).toBeUndefined();
  });

  it.each([
    ['at once', () => memoryStorage()],
    ['later', () => laterStorage(memoryStorage())],
  ])('setState in 50 branches loses no update, with a storage that answers %s', async (_when, storage) => {
    const branches = Array.from({ length: 50 }, (_, i) => ok(`s${i}`, { setState: { n: `\${state.n + ${i}}` } }));
    const { run } = scene(
      { state: { initial: { n: 0 } }, flow: [block(branches)], outputs: { n: '${state.n}' } },
      { storage: storage() },
    );
    expect((await run()).output).toEqual({ n: 1225 });
  });

  it('random() differs in each branch; now() in a branch is its own last commit, and after the block the latest commit', async () => {
    const flow = [
      block([
        { if: true, then: [{ sleep: 10 }, echo('a', ['${random()}', '${now()}'])] },
        { if: true, then: [{ sleep: 20 }, echo('b', ['${random()}', '${now()}'])] },
      ]),
      echo('c', ['${random()}', '${now()}']),
    ];
    const { run } = scene({ flow, outputs: { a: '${a.output}', b: '${b.output}', c: '${c.output}' } });
    const { output, createdAt } = await run();
    const { a, b, c } = output as Record<'a' | 'b' | 'c', [number, number]>;
    expect(new Set([a[0], b[0], c[0]]).size).toBe(3);
    expect([a[1], b[1], c[1]]).toEqual([createdAt + 10, createdAt + 20, createdAt + 20]);
  });

  it('names of branches that run at the same time are refused at load', () => {
    expect(issuesOf([block([ok('a'), echo('b', '${a.output}')])])).toContain('runs at the same time');
    expect(issuesOf([block([ok('a'), { foreach: [1], steps: [ok('b', when('a.failed'))] }])])).toContain(
      'runs at the same time',
    );
    expect(issuesOf([block([])])).toContain('at least one');
    expect(issuesOf([block([ok('a'), ok('a')])])).toContain('`a`');
  });
});

describe('parallel: any and first', () => {
  const race = (waitFor: string, parallel: readonly Fields[], fields: Fields = {}) =>
    block(parallel, { waitFor, ...fields });

  it('any: the first branch that succeeds wins; a failure before that decides nothing', async () => {
    const { run, ran } = scene(
      {
        flow: [race('any', [boom('a'), code('b', 'soon'), waits('c')]), ok('z')],
        outputs: { ...outputs, a: '${a.failed}', b: '${b.output}', c: '${c.executed}' },
      },
      { scripts: { ...scripts, soon: () => turns(2).then(() => 'won') } },
    );
    expect((await run()).output).toEqual({
      all: { winner: 'b', output: 'won' },
      failed: false,
      a: false,
      b: 'won',
      c: false,
    });
    expect(ran).toEqual(['a', 'b', 'c', 'z']);
  });

  it('any: a branch whose failure a condition after the block checks has not succeeded', async () => {
    const { run } = scene({
      flow: [race('any', [boom('a'), ok('b')], { concurrency: 1 }), ok('c', when('a.failed'))],
      outputs,
    });
    expect(await run()).toMatchObject({ status: 'completed', output: { all: { winner: 'b', output: 'b' } } });
  });

  it('any: all fail: the failure of the first branch in order, whichever failed first', async () => {
    const { run } = scene(
      { flow: [race('any', [code('a', 'soon'), boom('b')])], outputs },
      { scripts: { soon: () => turns(2).then(() => Promise.reject(new Error('late'))) } },
    );
    expect(await run()).toMatchObject({
      status: 'failed',
      error: { agent: 'a', message: 'late' },
      partialOutput: { all: { winner: null, output: null }, failed: true },
    });
  });

  it('first: a branch that fails ends the block, and is the winner', async () => {
    const { run } = scene(
      {
        flow: [race('first', [waits('a'), boom('b')]), ok('c', when('all.failed'))],
        outputs: { ...outputs, b: '${b.failed}' },
      },
      { scripts },
    );
    expect(await run()).toMatchObject({
      status: 'completed',
      output: { all: { winner: 'b', output: null }, failed: true, b: true },
    });
  });

  it.each(['any', 'first'])(
    '%s: a skipped branch can not win; without another branch, there is no winner',
    async (waitFor) => {
      const skipped = ok('a', when('false'));
      const won = scene({ flow: [race(waitFor, [skipped, ok('b')])], outputs });
      expect((await won.run()).output).toEqual({ all: { winner: 'b', output: 'b' }, failed: false });
      const none = scene({ flow: [race(waitFor, [skipped])], outputs });
      expect(await none.run()).toMatchObject({ status: 'completed', output: { all: { winner: null, output: null } } });
    },
  );

  it('a branch whose only step failed: for any, it has not succeeded, even when its failure is handled; for first, it has ended', async () => {
    const handled = boom('a', { continueOnError: true });
    const slow = { if: true, then: [{ sleep: 10 }, ok('b')] };
    const given = async (waitFor: string, branches: readonly Fields[]) =>
      (await scene({ flow: [race(waitFor, branches), ok('z')], outputs }).run()) as { status: string; output: unknown };
    expect((await given('any', [handled, slow])).output).toEqual({ all: { winner: '1', output: 'b' }, failed: false });
    expect((await given('first', [handled, slow])).output).toEqual({
      all: { winner: 'a', output: null },
      failed: false,
    });
    expect(await given('any', [handled])).toMatchObject({
      status: 'completed',
      output: { all: { winner: null, output: null }, failed: false },
    });
    // A block with `continueOnError` has not failed.
    const caught = { try: [boom('a')], catch: [ok('c')] };
    expect((await given('any', [caught, slow])).output).toMatchObject({ all: { winner: '0', output: 'c' } });
  });

  it('losers receive the abort signal, and the flow does not wait for a branch that ignores it', async () => {
    let reason: unknown;
    const ignoring: Script = (context) => {
      context.signal.addEventListener('abort', () => {
        reason = context.signal.reason;
      });
      return new Promise(() => {});
    };
    const { run, clock, orchestrator } = scene(
      { flow: [race('any', [ok('a'), code('b', 'ignoring'), code('c', 'never')]), ok('z')], outputs },
      { scripts: { ...scripts, ignoring } },
    );
    const result = await run();
    expect(result).toMatchObject({ status: 'completed', duration: 0 });
    expect(reason).toMatchObject({ code: 'EXECUTION_CANCELLED' });
    expect((await orchestrator.executions.get(result.id)).metrics.agents).toBe(2);
    expect(clock.nextIn).toBeUndefined();
  });

  it('a result of a loser after the end of the block is not stored, nor from a block inside it', async () => {
    const late = deferred();
    const { start, orchestrator } = scene(
      [
        race('any', [
          code('a', 'soon'),
          { parallel: [code('b', 'late'), { foreach: [1, 2], concurrency: 2, steps: [code('c', 'late')] }] },
        ]),
        code('z', 'open'),
        code('y', 'pause'),
      ],
      {
        scripts: { late: () => late.promise, soon: () => turns(1), open: () => late.resolve(1), pause: () => turns(3) },
      },
    );
    const { id, agents } = await (await start()).result();
    expect(agents.map(({ name }) => name)).toEqual(['a', 'z', 'y']);
    expect((await orchestrator.executions.get(id)).metrics.agents).toBe(3);
  });

  it('a loser that waits for its retry, or sleeps, stops waiting', async () => {
    const { run, clock } = scene(
      [race('any', [boom('a', { retry: { maxAttempts: 9 } }), { sleep: '1h' }, code('b', 'later')]), ok('z')],
      { scripts: { later: () => turns(2) } },
    );
    expect(await run()).toMatchObject({ status: 'completed', duration: 0 });
    expect(clock.nextIn).toBeUndefined();
  });

  it('in a while: the name of a loser reads as in the previous round', async () => {
    const flow = [
      {
        while: '${(tick.output ?? 0) < 2}',
        steps: [
          echo('tick', '${(tick.output ?? 0) + 1}'),
          {
            ...race('first', [
              echo('a', '${tick.output}', when('tick.output == 1')),
              echo('b', '${tick.output}', when('tick.output == 2')),
            ]),
          },
        ],
      },
    ];
    const { run } = scene({ flow, outputs: { a: '${a.output}', b: '${b.output}' } });
    expect((await run()).output).toEqual({ a: 1, b: 2 });
  });
});

describe('parallel: stopping', () => {
  it('cancel: all branches receive the abort signal, no other begins, and stored results are in the outputs', async () => {
    const { start, ran } = scene(
      {
        flow: [block([ok('a'), waits('b'), waits('c'), ok('d')], { concurrency: 3 }), ok('z')],
        outputs: { a: '${a.output}', d: '${d.executed}', ...outputs },
      },
      { scripts: { ...scripts } },
    );
    const handle = await start();
    await turns();
    handle.cancel();
    const result = await handle.result();
    expect(result).toMatchObject({ status: 'cancelled', partialOutput: { a: 'a', all: null, failed: false } });
    expect(ran).toEqual(['a', 'b', 'c', 'd']);
  });

  it('a deadline: stored results of branches are in the outputs, and the block waits for nothing', async () => {
    const { start, clock } = scene(
      { timeout: 1000, flow: [block([ok('a'), code('b', 'never')])], outputs: { a: '${a.output}' } },
      { scripts },
    );
    const handle = await start();
    await clock.advance(1000);
    expect(await handle.result()).toMatchObject({ status: 'timed_out', duration: 1000, partialOutput: { a: 'a' } });
    expect(clock.nextIn).toBeUndefined();
  });

  it('cancel by the script of the first branch: the second never begins', async () => {
    const caller = new AbortController();
    const { run, ran } = scene([block([code('a', 'stop'), { try: [ok('b')], finally: [ok('c')] }])], {
      scripts: { stop: () => caller.abort() },
    });
    expect((await run({}, { signal: caller.signal })).status).toBe('cancelled');
    expect(ran).toEqual(['a']);
  });
});
