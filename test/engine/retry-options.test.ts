/** The retry options `maxDelay`, `factor` and `jitter`, and durations as text, on the manual clock. */

import { describe, expect, it } from 'vitest';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import { code, scene } from './scene.ts';

/** Runs an agent that always fails, and then the execution's retry. @returns the waits between the attempts of both runs, ms */
async function waits(retry: object, error: () => unknown = () => new Error('not yet')) {
  const at: number[] = [];
  const made = scene([code('a', 'flaky', { retry })], {
    scripts: {
      flaky: () => {
        at.push(made.clock.monotonic());
        throw error();
      },
    },
  });
  const between = () => at.slice(1).map((time, i) => time - (at[i] as number));
  const { id } = await made.run();
  const first = between();
  at.length = 0;
  await (await made.orchestrator.executions.retry(id)).result();
  return { first, again: between() };
}

describe('retry options', () => {
  it.each([
    ['factor', { maxAttempts: 5, factor: 3 }, [1000, 3000, 9000, 27_000]],
    ['a factor of 1', { maxAttempts: 4, factor: 1 }, [1000, 1000, 1000]],
    ['a factor, and 60 s at most', { maxAttempts: 4, factor: 100 }, [1000, 60_000, 60_000]],
    ['maxDelay', { maxAttempts: 5, maxDelay: '3s' }, [1000, 2000, 3000, 3000]],
    ['maxDelay above 60 s', { maxAttempts: 9, maxDelay: '2m' }, [1, 2, 4, 8, 16, 32, 64, 120].map((s) => s * 1000)],
    ['maxDelay, linear', { maxAttempts: 4, backoff: 'linear', delay: '2s', maxDelay: 5000 }, [2000, 4000, 5000]],
    ['delay as text', { maxAttempts: 3, backoff: 'fixed', delay: '1m' }, [60_000, 60_000]],
  ])('waits: %s', async (_what, retry, expected) => {
    expect((await waits(retry)).first).toEqual(expected);
  });

  it('jitter shortens each wait by at most its part, and differs from attempt to attempt and from run to run', async () => {
    const retry = { maxAttempts: 30, backoff: 'fixed', delay: '10s', jitter: 0.5 };
    const { first } = await waits(retry);
    expect(Math.min(...first)).toBeGreaterThanOrEqual(5000);
    expect(Math.max(...first)).toBeLessThanOrEqual(10_000);
    expect(new Set(first).size).toBeGreaterThan(20);
    expect((await waits(retry)).first).not.toEqual(first);
  });

  it('jitter is derived from the seed of the execution, so its retry waits as long', async () => {
    const { first, again } = await waits({ maxAttempts: 5, jitter: 1 });
    expect(first).toHaveLength(4);
    expect(again).toEqual(first);
  });

  it('a `Retry-After` that is longer than the wait wins over jitter and `maxDelay`', async () => {
    const error = () =>
      new OrchestratorError('OVERLOADED', 'busy', { retryable: true, details: { retryAfterMs: 90_000 } });
    expect((await waits({ maxAttempts: 3, maxDelay: '1s', jitter: 1 }, error)).first).toEqual([90_000, 90_000]);
  });
});

describe('durations as text', () => {
  const never = () => new Promise(() => {});

  it("an agent's timeout", async () => {
    const { start, clock } = scene([code('a', 'never', { timeout: '2s' })], { scripts: { never } });
    const handle = await start();
    await clock.advance(5000);
    const result = await handle.result();
    expect([result.status, result.duration]).toEqual(['failed', 2000]);
    expect(result.error?.message).toBe('agent `a` took longer than 2000 ms');
  });

  it("an ensemble's timeout, and the timeout of a call", async () => {
    const timedOut = async (timeout: string | undefined, given?: string) => {
      const flow = [code('a', 'never')];
      const { start, clock } = scene({ flow, ...(timeout && { timeout }) }, { scripts: { never } });
      const handle = await start({}, given === undefined ? {} : { timeout: given });
      await clock.advance(3_600_000);
      const { status, duration } = await handle.result();
      return [status, duration];
    };
    expect(await timedOut('1m')).toEqual(['timed_out', 60_000]);
    expect(await timedOut('1m', '30s')).toEqual(['timed_out', 30_000]);
    expect(await timedOut(undefined, '1h')).toEqual(['timed_out', 3_600_000]);
  });

  it('the timeout of `api`, also from an expression', async () => {
    const timeouts: unknown[] = [];
    const http = {
      send: ({ timeoutMs }: { readonly timeoutMs?: number }) => {
        timeouts.push(timeoutMs);
        return Promise.resolve({ status: 200, headers: {}, body: new Uint8Array() });
      },
    };
    const call = (agent: string, timeout: unknown) => ({
      agent,
      operation: 'api',
      config: { url: 'https://api.example.com/x', timeout },
    });
    const { run } = scene([call('a', '5s'), call('b', 250), call('c', '${input.timeout}')], { http });
    expect((await run({ timeout: '1m' })).status).toBe('completed');
    expect(timeouts).toEqual([5000, 250, 60_000]);
    const wrong = await run({ timeout: 'soon' });
    expect(wrong.error?.message).toContain(
      'config.timeout: must be a duration such as `30s` or `5m`, or a whole number of milliseconds, above 0',
    );
  });

  it('the options `retention` and `grace` take text, and wrong text is a TypeError', async () => {
    const { orchestrator } = scene([]);
    expect(() => scene([], { retention: '1 week ago' })).toThrow(
      TypeError(
        "createOrchestrator: `retention` must be a duration such as `30s` or `5m`, or milliseconds, above 0, not '1 week ago'",
      ),
    );
    await expect(orchestrator.close({ grace: 'soon' })).rejects.toThrow(
      TypeError('close: `grace` must be a duration such as `30s` or `5m`, or milliseconds, not soon'),
    );
    await orchestrator.close({ grace: '1s' });
  });

  it('executions are kept for a `retention` of text', async () => {
    const { orchestrator, run, clock } = scene([], { retention: '2h' });
    const { id } = await run();
    await clock.advance(3 * 3_600_000);
    await run();
    await clock.advance(2 * 3_600_000);
    await expect(orchestrator.executions.get(id)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});
