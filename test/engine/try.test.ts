/** `try`, `catch` and `finally`: what is caught, and when and for how long cleanups run. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { createTestOrchestrator, manualClock } from '../../src/entries/testing.ts';
import type { Script } from '../../src/operations/code/script.ts';
import { boom, code, deferred, echo, ok, scene, turns, when } from './scene.ts';

type Fields = Readonly<Record<string, unknown>>;
const attempt = (steps: readonly Fields[], rest: Fields): Fields => ({ try: steps, ...rest });
const obedient: Script = ({ signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
const never: Script = () => new Promise(() => {});
const scripts = { obedient, never };

describe('try and catch', () => {
  it('${error} is the caught error, of the innermost `catch`', async () => {
    const flow = [
      attempt([boom('a')], {
        catch: [
          echo('b', ['${error.code}', '${error.message}', '${error.agent}']),
          attempt([boom('c')], { catch: [echo('d', '${error.agent}')] }),
          echo('e', '${error.agent}'),
          { foreach: [1], steps: [{ if: true, then: [echo('f', '${error.agent}')] }], name: 'each' },
        ],
      }),
    ];
    const { run } = scene({ flow, outputs: { all: ['${b.output}', '${d.output}', '${e.output}', '${each.output}'] } });
    expect((await run()).output).toEqual({ all: [['AGENT_FAILED', 'boom in a', 'a'], 'c', 'a', ['a']] });
    expect(() => scene([echo('x', '${error.code}')])).toThrow('error');
    expect(() => scene([attempt([boom('a')], { finally: [echo('x', '${error.code}')] })])).toThrow('error');
  });

  it.each<[string, readonly Fields[], string, string | undefined]>([
    ['catch runs after a failure', [attempt([boom('a'), ok('b')], { catch: [ok('c')] }), ok('z')], 'a c z', undefined],
    ['catch does not run without one', [attempt([ok('a')], { catch: [ok('c')] }), ok('z')], 'a z', undefined],
    ['an empty catch handles too', [attempt([boom('a')], { catch: [] }), ok('z')], 'a z', undefined],
    [
      'guards inside the try come first',
      [attempt([boom('a'), ok('b', when('a.failed'))], { catch: [ok('c')] })],
      'a b',
      undefined,
    ],
    [
      'guards after the try do not prevent a catch',
      [attempt([boom('a'), ok('b')], { catch: [ok('c')] }), ok('z', when('a.failed'))],
      'a c z',
      undefined,
    ],
    ['a failure in catch is not caught', [attempt([boom('a')], { catch: [boom('c')] }), ok('z')], 'a c', 'c'],
    [
      '... and finally runs before it ends the level',
      [attempt([boom('a')], { catch: [boom('c')], finally: [ok('f')] }), ok('z')],
      'a c f',
      'c',
    ],
    [
      '... and a later guard handles it',
      [attempt([boom('a')], { catch: [boom('c')] }), ok('z', when('c.failed'))],
      'a c z',
      undefined,
    ],
    [
      'without catch, a failure ends the level after finally',
      [attempt([boom('a'), ok('b')], { finally: [ok('f')] }), ok('z')],
      'a f',
      'a',
    ],
    [
      '... and a later guard keeps it pending',
      [attempt([boom('a'), ok('b')], { finally: [ok('f')] }), ok('z', when('a.failed'))],
      'a b f z',
      undefined,
    ],
    [
      'a guard in finally that led to a step does not handle it',
      [attempt([boom('a'), ok('b')], { finally: [ok('f', when('a.failed'))] }), ok('z')],
      'a f',
      'a',
    ],
    [
      'a guard in finally that led to no step does not',
      [attempt([boom('a')], { finally: [ok('f', when('a.success'))] }), ok('z')],
      'a',
      'a',
    ],
    ['a failure in finally', [attempt([ok('a')], { finally: [boom('f'), ok('g')] }), ok('z')], 'a f', 'f'],
    ['the first of two failures is reported', [attempt([boom('a')], { finally: [boom('f')] }), ok('z')], 'a f', 'a'],
    [
      'an outer catch catches a failure that an inner try does not catch',
      [attempt([attempt([boom('a')], { finally: [ok('f')] }), ok('b')], { catch: [ok('c')] }), ok('z')],
      'a f c z',
      undefined,
    ],
    [
      'a failure outside the try is not caught',
      [boom('a'), attempt([ok('b', when('a.failed && false'))], { catch: [ok('c')] })],
      'a',
      'a',
    ],
    [
      'a failure with continueOnError is not caught',
      [attempt([boom('a', { continueOnError: true }), ok('b')], { catch: [ok('c')] })],
      'a b',
      undefined,
    ],
  ])('%s', async (_rule, flow, ran, fails) => {
    const made = scene(flow);
    const result = await made.run();
    expect(made.ran.join(' ')).toBe(ran);
    expect([result.status, result.error?.agent]).toEqual([fails ? 'failed' : 'completed', fails]);
  });

  it('neither catch nor finally: refused', () => {
    expect(() => scene([attempt([ok('a')], {})])).toThrow('needs `catch`, `finally` or both');
  });

  it('its output is that of `try` or `catch`, not of `finally`', async () => {
    const each = (name: string, step: Fields) => ({ foreach: [1], steps: [step], name });
    const { run } = scene({
      flow: [
        each('x', attempt([ok('a')], { finally: [ok('f')] })),
        each('y', attempt([boom('b')], { catch: [ok('c')], finally: [ok('g')] })),
      ],
      outputs: { x: '${x.output}', y: '${y.output}' },
    });
    expect((await run()).output).toEqual({ x: ['a'], y: ['c'] });
  });
});

describe('finally', () => {
  const cleaning = (body: Fields, cleanup: readonly Fields[] = [ok('c'), ok('d')]) =>
    attempt([body], { finally: cleanup });

  it.each<[string, readonly Fields[]]>([
    ['in the flow', [cleaning(code('b', 'obedient'))]],
    ['in a parallel', [{ parallel: [cleaning(code('b', 'obedient')), code('x', 'obedient')] }]],
    ['in a foreach', [{ foreach: [1], steps: [cleaning(code('b', 'obedient'))] }]],
    ['in a foreach of several', [{ foreach: [1, 2], concurrency: 2, steps: [cleaning(code('b', 'obedient'))] }]],
    ['in a while', [{ while: true, steps: [cleaning(code('b', 'obedient'))] }]],
    ['in a try', [attempt([cleaning(code('b', 'obedient'))], { catch: [ok('no')] })]],
    ['in a catch', [attempt([boom('a')], { catch: [cleaning(code('b', 'obedient'))] })]],
    ['around a parallel', [cleaning({ parallel: [code('b', 'obedient'), code('x', 'never')] })]],
  ])('runs on a cancellation and on a deadline: %s', async (where, flow) => {
    for (const way of ['cancelled', 'timed_out'] as const) {
      const made = scene({ flow, ...(way === 'timed_out' && { timeout: 1000 }) }, { scripts });
      const handle = await made.start();
      await turns();
      if (way === 'cancelled') handle.cancel();
      await made.clock.advance(where === 'around a parallel' ? 26_000 : 1000);
      expect((await handle.result()).status).toBe(way);
      const several = where.includes('several') ? 2 : 1;
      expect(made.ran.filter((name) => name === 'd').length).toBe(several);
      expect(made.ran).not.toContain('no');
      expect(made.clock.nextIn).toBeUndefined();
    }
  });

  it('after a cancellation, steps that ignore their signal have 25 s, then finally has its own 25 s', async () => {
    const { start, clock, ran } = scene([cleaning(code('b', 'never'), [ok('c'), code('d', 'never'), ok('e')])], {
      scripts,
    });
    const handle = await start();
    await turns();
    handle.cancel();
    await clock.advance(24_999);
    expect(ran).toEqual(['b']);
    await clock.advance(1);
    expect(ran).toEqual(['b', 'c', 'd']);
    await clock.advance(25_000);
    expect(await handle.result()).toMatchObject({ status: 'cancelled', duration: 50_000 });
    expect(ran).toEqual(['b', 'c', 'd']);
    expect(clock.nextIn).toBeUndefined();
  });

  it('on a deadline steps have no grace period, and finally has 25 s', async () => {
    const { start, clock, ran } = scene(
      { timeout: 1000, flow: [cleaning(code('b', 'never'), [ok('c'), code('d', 'never')])] },
      { scripts },
    );
    const handle = await start();
    await clock.advance(1000);
    await turns();
    expect(ran).toEqual(['b', 'c', 'd']);
    await clock.advance(25_000);
    expect(await handle.result()).toMatchObject({ status: 'timed_out', duration: 26_000 });
  });

  it('nested: each has its 25 s, one after the other', async () => {
    const inner = cleaning(code('b', 'never'), [code('c', 'never')]);
    const { start, clock, ran } = scene(
      [attempt([{ foreach: [1, 2], concurrency: 2, steps: [inner] }], { finally: [ok('z')] })],
      { scripts },
    );
    const handle = await start();
    await turns();
    handle.cancel();
    await clock.advance(25_000);
    expect(ran).toEqual(['b', 'b', 'c', 'c']);
    await clock.advance(25_000);
    expect((await handle.result()).status).toBe('cancelled');
    expect(ran).toEqual(['b', 'b', 'c', 'c', 'z']);
  });

  it('a sleep and a retry in it count towards its 25 s: the run is not suspended meanwhile', async () => {
    for (const cleanup of [
      { sleep: '1h' },
      boom('c', { retry: { maxAttempts: 5, backoff: 'fixed', delay: 60_000 } }),
    ]) {
      const { start, clock, ran, orchestrator } = scene([cleaning(code('b', 'obedient'), [cleanup, ok('z')])], {
        scripts,
      });
      const handle = await start();
      await turns();
      handle.cancel();
      await turns();
      expect((await orchestrator.executions.get(handle.id)).status).toBe('running');
      await clock.advance(25_000);
      expect(await handle.result()).toMatchObject({ status: 'cancelled', duration: 25_000 });
      expect(ran).not.toContain('z');
    }
  });

  it('a cancellation while it runs does not stop it; from then on it has 25 s', async () => {
    const gate = deferred();
    const { start, clock, ran } = scene(
      [cleaning(ok('b'), [code('c', 'gate'), ok('d'), code('e', 'never')]), ok('z')],
      {
        scripts: { ...scripts, gate: () => gate.promise },
      },
    );
    const handle = await start();
    await turns();
    handle.cancel();
    await clock.advance(10_000);
    gate.resolve(1);
    await turns();
    expect(ran).toEqual(['b', 'c', 'd', 'e']);
    await clock.advance(15_000);
    expect(await handle.result()).toMatchObject({ status: 'cancelled', duration: 25_000 });
  });

  it('runs when the block around it stops, before any step after the block', async () => {
    for (const [waitFor, other] of [
      ['all', boom('a')],
      ['any', ok('a')],
      ['first', ok('a')],
    ] as const) {
      const { run, ran } = scene(
        [
          {
            parallel: [other, cleaning(code('b', 'obedient'), [code('c', 'turn'), ok('d')])],
            waitFor,
            continueOnError: true,
          },
          ok('z'),
        ],
        { scripts: { ...scripts, turn: () => turns(2) } },
      );
      expect((await run()).status).toBe('completed');
      expect(ran).toEqual(['a', 'b', 'c', 'd', 'z']);
    }
  });

  it('does not run when the run is suspended to sleep, but after the sleep', async () => {
    const { start, clock, ran, orchestrator } = scene([attempt([{ sleep: '1h' }], { finally: [ok('c')] }), ok('z')]);
    const handle = await start();
    await turns();
    expect([(await orchestrator.executions.get(handle.id)).status, ran]).toEqual(['waiting', []]);
    await clock.advance(3_600_000);
    expect((await handle.result()).status).toBe('completed');
    expect(ran).toEqual(['c', 'z']);
  });

  it('runs when the run is cancelled while it waits', async () => {
    const { start, ran, orchestrator } = scene([attempt([{ sleep: '1h' }], { finally: [ok('c')] }), ok('z')]);
    const handle = await start();
    await turns();
    await orchestrator.executions.cancel(handle.id);
    expect((await handle.result()).status).toBe('cancelled');
    expect(ran).toEqual(['c']);
  });

  it('does not run in a process that closes and releases the run, but in the next process', async () => {
    const storage = memoryStorage({ shared: true });
    const ran: string[] = [];
    const ensemble = { name: 'e', flow: [cleaning(code('b', 'work'))] };
    const clock = manualClock();
    const open = () =>
      createTestOrchestrator({
        clock,
        ensembles: [ensemble],
        storage,
        scripts: {
          work: (context) => (ran.push('b') === 1 ? obedient(context) : 'done'),
          ok: ({ execution }) => void ran.push(execution.agent),
        },
      });
    const first = open();
    const handle = await first.start('e');
    handle.result().catch(() => undefined);
    await turns();
    const closing = first.close({ grace: 0 });
    await clock.advance(1000);
    await closing;
    expect(ran).toEqual(['b']);
    const second = open();
    await second.ready();
    await clock.advance(5000);
    expect((await second.executions.get(handle.id)).status).toBe('completed');
    expect(ran).toEqual(['b', 'b', 'c', 'd']);
  });
});
