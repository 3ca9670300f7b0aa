/** Retries on the manual clock: how many attempts, how far apart, and which failures are retried. */

import { describe, expect, it } from 'vitest';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import { stubHttp } from '../../src/entries/testing.ts';
import { boom, code, ok, scene, when } from './scene.ts';

/** Runs an agent that fails `failures` times. @returns the waits between its attempts, ms */
async function waits(retry: object, failures: number, error: () => unknown = () => new Error('not yet')) {
  const at: number[] = [];
  const made = scene([code('a', 'flaky', { retry }), ok('z', when('a.failed'))], {
    scripts: {
      flaky: () => {
        at.push(made.clock.monotonic());
        if (at.length <= failures) throw error();
        return at.length;
      },
    },
  });
  const run = await made.run();
  return { run, waits: at.slice(1).map((time, i) => time - (at[i] as number)), attempts: at.length };
}

const exponential = [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000];

describe('retry', () => {
  it('waits exactly 1, 2 and 4 s, and the record says so', async () => {
    const { run, waits: seen } = await waits({ maxAttempts: 4 }, 3);
    expect(seen).toEqual([1000, 2000, 4000]);
    expect([run.status, run.duration]).toEqual(['completed', 7000]);
    expect(run.metrics).toEqual({ totalDuration: 7000, agents: 1, queued: 0, waited: 7000 });
    expect(run.agents).toEqual([
      {
        name: 'a',
        key: 'flow[0]',
        status: 'completed',
        attempts: 4,
        startedAt: run.createdAt,
        duration: 7000,
        output: 4,
      },
    ]);
    expect((run.finishedAt ?? 0) - run.createdAt).toBe(7000);
  });

  it.each([
    ['exponential by default', { maxAttempts: 4 }, exponential.slice(0, 3)],
    ['exponential, doubling up to 60 s', { maxAttempts: 10, backoff: 'exponential' }, exponential],
    ['fixed, 1 s by default', { maxAttempts: 4, backoff: 'fixed' }, [1000, 1000, 1000]],
    ['fixed', { maxAttempts: 4, backoff: 'fixed', delay: 250 }, [250, 250, 250]],
    ['fixed without a wait', { maxAttempts: 3, backoff: 'fixed', delay: 0 }, [0, 0]],
    ['linear', { maxAttempts: 5, backoff: 'linear', delay: 300 }, [300, 600, 900, 1200]],
    ['exponential from `delay`', { maxAttempts: 4, delay: '200ms', factor: 3 }, [200, 600, 1800]],
  ])('waits: %s', async (_what, retry, expected) => {
    const { waits: seen, run } = await waits(retry, 1000);
    expect(seen).toEqual(expected);
    const total = expected.reduce((sum, wait) => sum + wait, 0);
    expect(run.agents[0]).toMatchObject({ status: 'failed', attempts: expected.length + 1, duration: total });
  });

  it.each([1, 2, 5])('maxAttempts: %i counts all attempts, the first included', async (maxAttempts) => {
    const { attempts, run } = await waits({ maxAttempts }, 1000);
    expect(attempts).toBe(maxAttempts);
    expect(run.agents[0]).toMatchObject({
      status: 'failed',
      attempts: maxAttempts,
      error: { code: 'AGENT_FAILED', message: 'not yet', agent: 'a' },
    });
  });

  it.each<[object]>([
    [{ maxAttempts: 1e9 }],
    [{ maxAttempts: 101 }],
    [{ maxAttempts: 0 }],
    [{ maxAttempts: -1 }],
    [{ maxAttempts: Number.NaN }],
    [{ maxAttempts: 2.5 }],
    [{ maxAttempts: '3' }],
    [{ maxAttempts: 3, backoff: 'random' }],
    [{ maxAttempts: 3, backoff: 'fixed', delay: -1 }],
    [{ maxAttempts: 3, backoff: 'fixed', delay: 2 ** 31 }],
    [{}],
  ])('%j is refused at load', (retry) => {
    expect(() => scene([ok('a', { retry })])).toThrow(/INVALID_DEFINITION|has 1 problem/);
  });

  it('an agent without `retry` has one attempt', async () => {
    const { run, ran } = scene([boom('a')]);
    expect((await run()).agents[0]?.attempts).toBe(1);
    expect(ran).toEqual(['a']);
  });

  it('an attempt that succeeds ends the retries', async () => {
    const { attempts, run } = await waits({ maxAttempts: 10 }, 1);
    expect([attempts, run.status, run.duration]).toEqual([2, 'completed', 1000]);
  });

  it('a permanent failure is not retried', async () => {
    const error = () => new OrchestratorError('INVALID_REQUEST', 'no such table');
    const { attempts, run } = await waits({ maxAttempts: 5 }, 1000, error);
    expect(attempts).toBe(1);
    expect(run.agents[0]?.error).toEqual({ code: 'INVALID_REQUEST', message: 'no such table', agent: 'a' });
  });

  it('a retryable failure is retried, and keeps its code', async () => {
    const error = () => new OrchestratorError('OVERLOADED', 'busy', { retryable: true });
    const { attempts, run } = await waits({ maxAttempts: 3 }, 1000, error);
    expect(attempts).toBe(3);
    expect(run.agents[0]?.error?.code).toBe('OVERLOADED');
  });

  it.each([
    ['an output that is not JSON', () => new Map(), 'INVALID_OUTPUT'],
    [
      'an output that is too deep',
      () => Array.from({ length: 70 }).reduce<unknown>((inner) => [inner], 1),
      'INVALID_OUTPUT',
    ],
  ])('%s is not retried', async (_what, give, expected) => {
    const { run, ran } = scene([code('a', 'give', { retry: { maxAttempts: 3 } })], { scripts: { give } });
    expect((await run()).error?.code).toBe(expected);
    expect(ran).toEqual(['a']);
  });

  it('an input that cannot be evaluated is not retried', async () => {
    const { run, ran } = scene([code('a', 'echo', { input: '${input.text - 1}', retry: { maxAttempts: 3 } })]);
    const result = await run({ text: 'x' });
    expect([result.error?.code, result.duration, ran]).toEqual(['EXPRESSION_ERROR', 0, []]);
  });

  it.each([
    ['seconds, longer than the backoff', { 'retry-after': '30' }, 30_000],
    ['shorter than the backoff', { 'retry-after': '0' }, 1000],
    ['a date', { 'Retry-After': 'Thu, 01 Jan 2026 00:00:20 GMT' }, 20_000],
    ['absent', {}, 1000],
  ])('Retry-After is respected: %s', async (_what, headers, wait) => {
    const http = stubHttp({ 'https://api.example.com/x': [{ status: 429, headers }, { json: 1 }] });
    const { run } = scene(
      [{ agent: 'a', operation: 'api', config: { url: 'https://api.example.com/x' }, retry: { maxAttempts: 2 } }],
      { http },
    );
    const result = await run();
    expect([result.status, result.duration, http.calls.length]).toEqual(['completed', wait, 2]);
  });

  it.each([
    [400, 1],
    [401, 1],
    [404, 1],
    [408, 2],
    [409, 1],
    [422, 1],
    [425, 2],
    [429, 2],
    [500, 2],
    [503, 2],
  ])('a response with status %i: %i attempts', async (status, attempts) => {
    const http = stubHttp({ 'https://api.example.com/x': { status } });
    const { run } = scene(
      [{ agent: 'a', operation: 'api', config: { url: 'https://api.example.com/x' }, retry: { maxAttempts: 2 } }],
      { http },
    );
    expect((await run()).status).toBe('failed');
    expect(http.calls.length).toBe(attempts);
  });

  it("the step's `retry` overrides the agent's", async () => {
    const agents = [{ name: 'a', operation: 'code', config: { script: 'boom' }, retry: { maxAttempts: 5 } }];
    const { run, ran } = scene({ agents, flow: [{ agent: 'a', retry: { maxAttempts: 2 } }] });
    await run();
    expect(ran.length).toBe(2);
  });

  it('later steps wait for the retries of earlier steps', async () => {
    let tries = 0;
    const made = scene([code('a', 'flaky', { retry: { maxAttempts: 3 } }), code('b', 'time')], {
      scripts: {
        flaky: () => {
          if (++tries < 3) throw new Error('not yet');
        },
        time: () => made.clock.monotonic(),
      },
    });
    const result = await made.run();
    expect(result.agents[1]?.output).toBe(3000);
    expect(made.ran).toEqual(['a', 'a', 'a', 'b']);
  });

  it('each item of a foreach retries on its own', async () => {
    const tries = new Map<number, number>();
    const made = scene(
      [
        {
          foreach: [0, 1, 2],
          concurrency: 3,
          steps: [code('x', 'flaky', { input: '${item}', retry: { maxAttempts: 4 } })],
          name: 'all',
        },
      ],
      {
        scripts: {
          flaky: ({ input }) => {
            const count = (tries.get(input) ?? 0) + 1;
            tries.set(input, count);
            if (count <= input) throw new Error('not yet');
            return `${input}: ${count} at ${made.clock.monotonic()}`;
          },
        },
      },
    );
    const result = await made.run();
    expect(result.agents.map(({ output }) => output).sort()).toEqual(['0: 1 at 0', '1: 2 at 1000', '2: 3 at 3000']);
    expect(result.duration).toBe(3000);
  });

  it('between two attempts the stored record is `retrying`, and counts no agent', async () => {
    const { start, orchestrator, clock } = scene([boom('a', { retry: { maxAttempts: 3 } })]);
    const handle = await start();
    await clock.advance(0);
    const between = await orchestrator.executions.get(handle.id);
    expect([between.status, between.metrics.agents]).toEqual(['waiting', 0]);
    expect(between.agents).toMatchObject([
      { status: 'retrying', attempts: 1, output: null, error: { message: 'boom in a' } },
    ]);
    await clock.advance(1000);
    expect((await orchestrator.executions.get(handle.id)).agents).toMatchObject([
      { status: 'retrying', attempts: 2, duration: 1000 },
    ]);
    await handle.result();
    expect((await orchestrator.executions.get(handle.id)).agents).toMatchObject([
      { status: 'failed', attempts: 3, duration: 3000 },
    ]);
  });

  it('the returned record lists its agents in the order of the stored record', async () => {
    const tried = new Set<number>();
    const { run, orchestrator } = scene(
      [
        {
          foreach: [0, 1],
          concurrency: 2,
          steps: [code('x', 'flaky', { input: '${item}', retry: { maxAttempts: 2 } }), ok('y')],
        },
      ],
      {
        scripts: {
          flaky: async ({ input }) => {
            if (input === 1 || tried.has(input)) return;
            tried.add(input);
            throw new Error('not yet');
          },
        },
      },
    );
    const result = await run();
    expect((await orchestrator.executions.get(result.id)).agents.map(({ key }) => key)).toEqual(
      result.agents.map(({ key }) => key),
    );
  });

  it('a wall clock that jumps between two attempts changes no retry and no duration', async () => {
    for (const jump of [-3_600_000, 3_600_000, -86_400_000 * 365]) {
      const { start, clock, ran } = scene([boom('a', { retry: { maxAttempts: 2 } })]);
      const handle = await start();
      await clock.advance(400);
      clock.setNow(clock.now() + jump);
      await clock.advance(599);
      expect(ran.length).toBe(1);
      await clock.advance(1);
      expect(ran.length).toBe(2);
      expect((await handle.result()).duration).toBe(1000);
    }
  });

  it('the idempotency key is equal on every attempt, and different for each step, item and execution', async () => {
    const keys: string[] = [];
    const flow = [
      code('a', 'key', { retry: { maxAttempts: 3 } }),
      code('b', 'key', { continueOnError: true }),
      { foreach: [1, 2], steps: [code('x', 'key', { continueOnError: true })] },
    ];
    const { run } = scene(
      flow.map((step, i) => (i === 0 ? { ...step, continueOnError: true } : step)),
      {
        scripts: {
          key: ({ idempotencyKey }) => {
            keys.push(idempotencyKey);
            throw new Error('not yet');
          },
        },
      },
    );
    await run();
    const [first, second, third, ...others] = keys;
    expect([first, second, third]).toEqual([first, first, first]);
    expect(new Set([first, ...others]).size).toBe(4);
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    const before = new Set(keys);
    keys.length = 0;
    await run();
    expect(keys.filter((key) => before.has(key))).toEqual([]);
  });

  it('a script receives the number of its attempt', async () => {
    const seen: number[] = [];
    const { run } = scene([code('a', 'flaky', { retry: { maxAttempts: 3 } })], {
      scripts: {
        flaky: ({ execution }) => {
          seen.push(execution.attempt);
          throw new Error('not yet');
        },
      },
    });
    await run();
    expect(seen).toEqual([1, 2, 3]);
  });
});
