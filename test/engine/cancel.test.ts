/** Cancelling a run by its handle or by the caller's signal, at every point of its life. */

import { describe, expect, it } from 'vitest';
import type { Script } from '../../src/operations/code/script.ts';
import { boom, code, deferred, ok, scene, turns, when } from './scene.ts';

const CANCELLED = { code: 'EXECUTION_CANCELLED', message: 'the execution was cancelled' };

/** A script that throws the reason of its signal as soon as the signal aborts. */
const obedient: Script = ({ signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
const never: Script = () => new Promise(() => {});

describe('cancelling a run', () => {
  it('by the handle, during a step: its signal aborts, what it throws is not a result, and nothing runs after it', async () => {
    const signals: AbortSignal[] = [];
    const work: Script = (context) => {
      signals.push(context.signal);
      return obedient(context);
    };
    const { start, ran, clock, orchestrator } = scene(
      {
        flow: [ok('a'), code('b', 'work', { retry: { maxAttempts: 5 } }), ok('c', when('b.failed'))],
        outputs: { a: '${a.output}', b: '${b.failed}' },
      },
      { scripts: { work } },
    );
    const handle = await start();
    await turns();
    handle.cancel();
    const result = await handle.result();
    expect(signals[0]?.reason).toMatchObject({ code: 'EXECUTION_CANCELLED' });
    expect(result).toMatchObject({
      status: 'cancelled',
      error: CANCELLED,
      partialOutput: { a: 'a', b: false },
      duration: 0,
    });
    expect(result.agents.map(({ name }) => name)).toEqual(['a']);
    expect(ran).toEqual(['a', 'b']);
    expect(clock.nextIn).toBeUndefined();
    expect(await orchestrator.executions.get(handle.id)).toEqual(result);
  });

  it("by the caller's signal, during a step", async () => {
    const caller = new AbortController();
    const { start, ran } = scene([code('a', 'obedient'), ok('b')], { scripts: { obedient } });
    const handle = await start({}, { signal: caller.signal });
    await turns();
    caller.abort();
    expect(await handle.result()).toMatchObject({ status: 'cancelled', error: CANCELLED });
    expect(ran).toEqual(['a']);
  });

  it("by the caller's signal, aborted before: no step runs", async () => {
    for (const way of ['execute', 'start'] as const) {
      const { run, start, ran } = scene([ok('a'), ok('b')]);
      const options = { signal: AbortSignal.abort() };
      const result = way === 'execute' ? await run({}, options) : await (await start({}, options)).result();
      expect(result).toMatchObject({ status: 'cancelled', error: CANCELLED });
      expect(ran).toEqual([]);
    }
  });

  it('during the wait before a retry: at once, without another attempt', async () => {
    const { start, clock, ran, orchestrator } = scene([
      boom('a', { retry: { maxAttempts: 5 } }),
      ok('b', when('a.failed')),
    ]);
    const handle = await start();
    await clock.advance(500);
    handle.cancel();
    const result = await handle.result();
    expect([result.status, result.duration, ran]).toEqual(['cancelled', 500, ['a']]);
    expect(clock.nextIn).toBeUndefined();
    expect(result.metrics.agents).toBe(0);
    await clock.advance(60_000);
    expect(ran).toEqual(['a']);
    expect(await orchestrator.executions.get(handle.id)).toEqual(result);
  });

  it('a step that ignores its signal and ends within 25 s has its result stored', async () => {
    const pending = deferred();
    const { start, clock, ran } = scene(
      { flow: [code('a', 'slow'), ok('b')], outputs: { a: '${a.output}' } },
      { scripts: { slow: () => pending.promise } },
    );
    const handle = await start();
    handle.cancel();
    await clock.advance(24_999);
    pending.resolve('done after all');
    const result = await handle.result();
    expect(result).toMatchObject({ status: 'cancelled', duration: 24_999, partialOutput: { a: 'done after all' } });
    expect(result.agents).toMatchObject([{ name: 'a', status: 'completed', output: 'done after all' }]);
    expect(ran).toEqual(['a']);
    expect(clock.nextIn).toBeUndefined();
  });

  it('a step that ignores its signal delays the end by at most 25 s', async () => {
    const { start, clock, orchestrator } = scene([code('a', 'never')], { scripts: { never } });
    const handle = await start();
    handle.cancel();
    await clock.advance(24_999);
    expect((await orchestrator.executions.get(handle.id)).status).toBe('running');
    await clock.advance(1);
    expect(await handle.result()).toMatchObject({ status: 'cancelled', duration: 25_000, agents: [] });
    expect(clock.nextIn).toBeUndefined();
  });

  it('a step with its own timeout that is cancelled while it begins leaves no timer', async () => {
    const made = scene([code('a', 'suicidal', { timeout: 40_000 })], {
      scripts: {
        async suicidal() {
          caller.abort();
        },
      },
    });
    const caller = new AbortController();
    const handle = await made.start({}, { signal: caller.signal });
    expect((await handle.result()).status).toBe('cancelled');
    await turns();
    expect(made.clock.nextIn).toBeUndefined();
  });

  it('by a script at the end of its own step: the result is stored, and nothing runs after it', async () => {
    const caller = new AbortController();
    const { run, ran } = scene([code('a', 'stop'), ok('b')], {
      scripts: {
        stop: () => {
          caller.abort();
          return 'stopped here';
        },
      },
    });
    const result = await run({}, { signal: caller.signal });
    expect(result).toMatchObject({ status: 'cancelled', agents: [{ name: 'a', output: 'stopped here' }] });
    expect(ran).toEqual(['a']);
  });

  it('in a foreach: all items in flight receive the abort signal, and no other item begins', async () => {
    const { start, ran } = scene(
      [{ foreach: [1, 2, 3, 4, 5], concurrency: 2, steps: [code('x', 'obedient')] }, ok('z')],
      { scripts: { obedient } },
    );
    const handle = await start();
    await turns();
    handle.cancel();
    expect((await handle.result()).status).toBe('cancelled');
    expect(ran).toEqual(['x', 'x']);
  });

  it('has no effect after the end, and no effect the second time', async () => {
    const { start, orchestrator } = scene([ok('a')]);
    const handle = await start();
    const result = await handle.result();
    handle.cancel();
    handle.cancel();
    expect(result.status).toBe('completed');
    expect((await orchestrator.executions.get(handle.id)).status).toBe('completed');
    expect((await handle.result()).status).toBe('completed');
  });

  it('at its deadline, before the timer fires: the run is `timed_out`, since the deadline came first', async () => {
    const { start, orchestrator, clock } = scene(
      { timeout: 5_000, flow: [code('a', 'obedient')] },
      { scripts: { obedient } },
    );
    const handle = await start();
    await turns();
    clock.setNow(clock.now() + 5_000);
    await orchestrator.executions.cancel(handle.id);
    expect((await handle.result()).status).toBe('timed_out');
  });

  it('keeps its reason: a deadline during the grace period changes nothing', async () => {
    const { start, clock } = scene({ timeout: 1000, flow: [code('a', 'never')] }, { scripts: { never } });
    const handle = await start();
    handle.cancel();
    await clock.advance(25_000);
    expect(await handle.result()).toMatchObject({ status: 'cancelled', error: CANCELLED });
  });

  it("by one caller's signal for a hundred runs: all are cancelled, and Node.js sees one listener", async () => {
    const caller = new AbortController();
    let listeners = 0;
    const { addEventListener } = caller.signal;
    caller.signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      listeners += 1;
      addEventListener.apply(caller.signal, args);
    };
    const { start } = scene([code('a', 'obedient')], { scripts: { obedient } });
    const handles = await Promise.all(Array.from({ length: 100 }, () => start({}, { signal: caller.signal })));
    await turns();
    expect(listeners).toBe(1);
    caller.abort();
    const results = await Promise.all(handles.map((handle) => handle.result()));
    expect(new Set(results.map(({ status }) => status))).toEqual(new Set(['cancelled']));
  });

  it("leaves no listener on the caller's signal after the run has ended", async () => {
    const listeners = new Set<unknown>();
    const signal = new AbortController().signal;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      listeners.add(args[1]);
      addEventListener.apply(signal, args);
    };
    signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      listeners.delete(args[1]);
      removeEventListener.apply(signal, args);
    };
    const { run } = scene([ok('a')]);
    await run({}, { signal });
    expect(listeners.size).toBe(0);
  });

  it('stops no other run', async () => {
    const first = deferred();
    let begun = 0;
    const { start } = scene([code('a', 'work'), ok('b')], {
      scripts: { work: ({ signal }) => (begun++ === 0 ? obedient({ signal } as never) : first.promise) },
    });
    const [one, other] = [await start(), await start()];
    one.cancel();
    expect((await one.result()).status).toBe('cancelled');
    first.resolve(1);
    expect((await other.result()).status).toBe('completed');
  });
});
