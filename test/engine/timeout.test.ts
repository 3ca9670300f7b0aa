/** Timeouts on the manual clock: of one attempt, and of a whole run. */

import { describe, expect, it } from 'vitest';
import type { Script } from '../../src/operations/code/script.ts';
import { boom, code, deferred, ok, scene, turns, when } from './scene.ts';

const never: Script = () => new Promise(() => {});

describe("an agent's timeout", () => {
  it('fails the attempt with TIMEOUT exactly at its time, and aborts its signal with the same error', async () => {
    const signals: AbortSignal[] = [];
    const hang: Script = ({ signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    };
    const { start, clock } = scene([code('a', 'hang', { timeout: 500 })], { scripts: { hang } });
    const handle = await start();
    await clock.advance(499);
    expect(signals[0]?.aborted).toBe(false);
    await clock.advance(1);
    expect(signals[0]?.aborted).toBe(true);
    expect(signals[0]?.reason).toMatchObject({ code: 'TIMEOUT' });
    const result = await handle.result();
    expect(result.status).toBe('failed');
    expect(result.error).toEqual({ code: 'TIMEOUT', message: 'agent `a` took longer than 500 ms', agent: 'a' });
    expect(result.agents[0]).toMatchObject({ status: 'failed', attempts: 1, duration: 500 });
  });

  it('is per attempt, and retried', async () => {
    const { start, clock, ran } = scene([code('a', 'never', { timeout: 500, retry: { maxAttempts: 3 } })], {
      scripts: { never },
    });
    const handle = await start();
    await clock.advance(500 + 1000 + 500 + 2000 + 500);
    const result = await handle.result();
    expect(ran.length).toBe(3);
    expect(result.agents[0]).toMatchObject({ attempts: 3, duration: 4500, error: { code: 'TIMEOUT' } });
  });

  it('an attempt in time is not affected, and leaves no timer', async () => {
    const { run, clock } = scene([code('a', 'soon', { timeout: 500 })], { scripts: { soon: async () => 'in time' } });
    expect((await run()).agents[0]?.output).toBe('in time');
    expect(clock.nextIn).toBeUndefined();
  });

  it('a result or an error after the timeout is dropped', async () => {
    for (const late of ['resolve', 'reject'] as const) {
      const pending = deferred();
      const unhandled: unknown[] = [];
      const note = (reason: unknown) => unhandled.push(reason);
      process.on('unhandledRejection', note);
      const { start, clock, orchestrator, ran } = scene(
        [code('a', 'late', { timeout: 10 }), ok('b', when('a.failed'))],
        {
          scripts: { late: () => pending.promise },
        },
      );
      const handle = await start();
      await clock.advance(10);
      const result = await handle.result();
      pending[late](new Error('too late'));
      await turns();
      process.off('unhandledRejection', note);
      expect(unhandled).toEqual([]);
      expect(ran).toEqual(['a', 'b']);
      expect(await orchestrator.executions.get(handle.id)).toEqual(result);
    }
  });

  it('a fallback may handle it', async () => {
    const { start, clock } = scene(
      {
        flow: [code('a', 'never', { timeout: 10 }), ok('b', when('a.failed'))],
        outputs: { code: '${a.error.code}' },
      },
      { scripts: { never } },
    );
    const handle = await start();
    await clock.advance(10);
    expect(await handle.result()).toMatchObject({ status: 'completed', output: { code: 'TIMEOUT' } });
  });

  it('a timeout of a year is not cut to the limit of a platform timer', async () => {
    const { start, clock } = scene([code('a', 'never', { timeout: 31_536_000_000 })], { scripts: { never } });
    const handle = await start();
    await clock.advance(31_535_999_999);
    expect(clock.nextIn).toBe(1);
    await clock.advance(1);
    expect((await handle.result()).error?.code).toBe('TIMEOUT');
  });

  it('a foreach has one for each item', async () => {
    const slow: Script = ({ input }) => (input === 2 ? new Promise(() => {}) : input);
    const { start, clock } = scene(
      [
        {
          foreach: [1, 2, 3],
          name: 'all',
          steps: [code('x', 'slow', { input: '${item}', timeout: 100, continueOnError: true })],
        },
      ],
      { scripts: { slow } },
    );
    const handle = await start();
    await clock.advance(100);
    const result = await handle.result();
    expect(result.agents.map(({ status, output }) => [status, output])).toEqual([
      ['completed', 1],
      ['failed', null],
      ['completed', 3],
    ]);
  });
});

describe("an ensemble's timeout", () => {
  it('makes the run timed_out at its time; the step in flight receives the abort signal, and its result is dropped', async () => {
    const signals: AbortSignal[] = [];
    const hang: Script = ({ signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    };
    const { start, clock, orchestrator, ran } = scene(
      {
        timeout: 2000,
        flow: [ok('a'), code('b', 'hang'), ok('c', when('b.failed')), ok('d')],
        outputs: { a: '${a.output}', b: '${b.executed}' },
      },
      { scripts: { hang } },
    );
    const handle = await start();
    await clock.advance(1999);
    expect([signals[0]?.aborted, (await orchestrator.executions.get(handle.id)).status]).toEqual([false, 'running']);
    await clock.advance(1);
    const result = await handle.result();
    expect(result).toMatchObject({ status: 'timed_out', duration: 2000, partialOutput: { a: 'a', b: false } });
    expect(result.error).toEqual({
      code: 'TIMEOUT',
      message: 'the execution ran out of time: `timeout` of ensemble `e` is 2000 ms',
    });
    expect(signals[0]?.reason).toMatchObject({ code: 'TIMEOUT' });
    expect(result.agents.map(({ name }) => name)).toEqual(['a']);
    expect(ran).toEqual(['a', 'b']);
    expect(clock.nextIn).toBeUndefined();
  });

  it('includes waits: a retry that would come too late never comes', async () => {
    const { run, ran } = scene({ timeout: 2500, flow: [boom('a', { retry: { maxAttempts: 5 } })] });
    const result = await run();
    expect([result.status, result.duration, ran.length]).toEqual(['timed_out', 2500, 2]);
  });

  it('leaves no timer when the run is in time', async () => {
    const { run, clock } = scene({ timeout: 60_000, flow: [ok('a')] });
    expect((await run()).status).toBe('completed');
    expect(clock.nextIn).toBeUndefined();
  });

  it.each([
    ['only of the call', undefined, 300, 300],
    ['of the call, the smaller one', 1000, 300, 300],
    ['of the ensemble, the smaller one', 200, 300, 200],
  ])('the timeout %s applies', async (_what, timeout, given, expected) => {
    const { start, clock } = scene({ ...(timeout && { timeout }), flow: [code('a', 'never')] }, { scripts: { never } });
    const handle = await start({}, { timeout: given });
    await clock.advance(5000);
    const result = await handle.result();
    expect([result.status, result.duration]).toEqual(['timed_out', expected]);
  });

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, '5'])('a timeout of %s is a TypeError', async (timeout) => {
    const { run } = scene([ok('a')]);
    await expect(run({}, { timeout: timeout as number })).rejects.toThrow(
      TypeError(
        `execute: \`timeout\` must be a duration such as \`30s\` or \`5m\`, or milliseconds, above 0, not ${timeout}`,
      ),
    );
  });

  it('all steps of a foreach in flight receive the abort signal, and no other item begins', async () => {
    const signals: AbortSignal[] = [];
    const hang: Script = ({ signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    };
    const { start, clock } = scene(
      { timeout: 50, flow: [{ foreach: [1, 2, 3, 4], concurrency: 3, steps: [code('x', 'hang')] }] },
      { scripts: { hang } },
    );
    const handle = await start();
    await clock.advance(50);
    expect((await handle.result()).status).toBe('timed_out');
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
  });

  it('a result after the end is not stored, not reported, and not logged as an error', async () => {
    for (const durability of ['step', 'none'] as const) {
      const pending = deferred();
      const logged: unknown[] = [];
      // Only that it started, and how it ended.
      const log = (_fields: object, message?: string) => logged.push(message);
      const { start, clock, orchestrator, ran } = scene(
        { timeout: 10, execution: { durability }, flow: [code('a', 'late'), ok('b')] },
        { scripts: { late: () => pending.promise }, logger: { debug: log, info: log, warn: log, error: log } },
      );
      const emitted: string[] = [];
      for (const kind of ['agent.completed', 'agent.failed', 'agent.started', 'execution.timeout'] as const) {
        orchestrator.on(kind, ({ event }) => emitted.push(event));
      }
      const handle = await start();
      await clock.advance(10);
      const result = await handle.result();
      pending.resolve('too late');
      await turns();
      expect(await orchestrator.executions.get(handle.id)).toEqual(result);
      expect(result).toMatchObject({ status: 'timed_out', agents: [], metrics: { agents: 0 } });
      expect(emitted).toEqual(['agent.started', 'execution.timeout']);
      expect(ran).toEqual(['a']);
      expect(logged).toEqual(['execution started', 'execution timed out']);
    }
  });

  it('a wall clock that jumps does not change it', async () => {
    const { start, clock, orchestrator } = scene({ timeout: 1000, flow: [code('a', 'never')] }, { scripts: { never } });
    const handle = await start();
    clock.setNow(clock.now() + 86_400_000);
    await clock.advance(999);
    expect((await orchestrator.executions.get(handle.id)).status).toBe('running');
    clock.setNow(0);
    await clock.advance(1);
    expect(await handle.result()).toMatchObject({ status: 'timed_out', duration: 1000 });
  });
});
