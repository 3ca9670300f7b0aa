/** `sleep` and `until`: instants on the manual clock, their outputs, and what ends them early. */

import { describe, expect, it } from 'vitest';
import { code, deferred, echo, ok, scene, turns, when } from './scene.ts';

const NOW = Date.UTC(2026, 0, 1);

describe('sleep', () => {
  it.each([
    ['90s', 90_000],
    ['1h30m', 5_400_000],
    ['7d', 604_800_000],
    [0, 0],
    [250, 250],
    ['${250}', 250],
    ["${'2m'}", 120_000],
    ['${input.ms * 2}', 2000],
    [{ until: NOW + 5000 }, 5000],
    [{ until: '2026-01-01T00:00:07Z' }, 7000],
    [{ until: '${now() + 1234}' }, 1234],
    [{ until: NOW - 5000 }, 0],
    ['60d', 5_184_000_000],
  ])('%j takes exactly %i ms, and its output is the instant', async (sleep, ms) => {
    const { run } = scene({
      flow: [{ sleep, name: 'nap' }, ok('a')],
      outputs: { nap: '${nap.output}', ok: '${nap.success}' },
    });
    const result = await run({ ms: 1000 });
    expect(result).toMatchObject({ status: 'completed', duration: ms, output: { nap: NOW + ms, ok: true } });
  });

  it('`until` as a step', async () => {
    const { run } = scene([{ until: '${now() + 60000}' }, ok('a')]);
    expect((await run()).duration).toBe(60_000);
  });

  it.each([
    [-1, 'a duration'],
    ['soon', 'a duration'],
    [null, 'a duration'],
    [{ a: 1 }, 'a duration'],
    [true, 'a duration'],
    [400_000_000_000, 'at most ten years'],
  ])('an expression with the value %j fails it, and a condition on its name handles that', async (value, message) => {
    const flow = [{ sleep: '${input.value}', name: 'nap' }, echo('a', '${nap.error.message}', when('nap.failed'))];
    const { run } = scene({ flow, outputs: { why: '${a.output}' } });
    const result = await run({ value });
    expect(result.status).toBe('completed');
    expect((result.output as { why: string }).why).toContain(message);
    const bare = scene([{ sleep: '${input.value}' }]);
    expect(await bare.run({ value })).toMatchObject({ status: 'failed', error: { code: 'EXPRESSION_ERROR' } });
  });

  it.each(['tomorrow', '2026-13-01', '', null, { a: 1 }, true, 8.64e15, '9999-01-01'])(
    'an expression with the value %j for `until` fails it with EXPRESSION_ERROR, and the message says where',
    async (value) => {
      const flow = [{ until: '${input.value}', name: 'nap' }];
      const { error } = await scene(flow).run({ value });
      expect(error).toMatchObject({ code: 'EXPRESSION_ERROR', agent: 'nap' });
      expect(error?.message).toMatch(
        /^`until` at flow\[0\] needs an instant \(Unix ms or ISO text\) of at most ten years/,
      );
    },
  );

  it('an invalid value in the definition is refused at load', () => {
    for (const sleep of ['soon', '90', -5, '', { until: 'tomorrow' }, null])
      expect(() => scene([{ sleep }]), JSON.stringify(sleep)).toThrow();
  });

  it('a condition skips it; its name reads as skipped', async () => {
    const { run } = scene({
      flow: [{ sleep: '1d', name: 'nap', ...when('false') }, ok('a')],
      outputs: { ran: '${nap.executed}' },
    });
    expect(await run()).toMatchObject({ duration: 0, output: { ran: false } });
  });

  it('the run is suspended meanwhile, and resumes at the instant', async () => {
    const { start, clock, orchestrator, ran } = scene([ok('a'), { sleep: '30d' }, ok('b')]);
    const handle = await start();
    await turns();
    expect((await orchestrator.executions.get(handle.id)).status).toBe('waiting');
    await clock.advance(30 * 86_400_000 - 1);
    expect(ran).toEqual(['a']);
    await clock.advance(1);
    expect(await handle.result()).toMatchObject({ status: 'completed', duration: 30 * 86_400_000 });
  });

  it('a run with only sleeps left is suspended; a run with an active step is not', async () => {
    const gate = deferred();
    const { start, orchestrator, clock } = scene(
      [
        {
          parallel: [{ sleep: '1h' }, { foreach: [1, 2], concurrency: 2, steps: [{ sleep: '2h' }] }, code('a', 'gate')],
        },
        ok('b'),
      ],
      { scripts: { gate: () => gate.promise } },
    );
    const handle = await start();
    const status = async () => (await orchestrator.executions.get(handle.id)).status;
    await turns();
    expect(await status()).toBe('running');
    gate.resolve(1);
    await turns();
    expect(await status()).toBe('waiting');
    await clock.advance(7_200_000);
    expect(await handle.result()).toMatchObject({ status: 'completed', duration: 7_200_000 });
  });

  it('a cancellation and a deadline end it at once', async () => {
    const flow = [{ sleep: '10d' }, ok('b')];
    const { start, ran } = scene(flow);
    const handle = await start();
    await turns();
    handle.cancel();
    expect(await handle.result()).toMatchObject({ status: 'cancelled', duration: 0 });
    expect(ran).toEqual([]);
    expect(await scene({ timeout: 60_000, flow }).run()).toMatchObject({ status: 'timed_out', duration: 60_000 });
  });

  it('now() after it is its instant, and a deadline between two sleeps applies', async () => {
    const { run } = scene({ flow: [{ sleep: 70_000 }, echo('a', '${now()}')], outputs: { a: '${a.output}' } });
    expect((await run()).output).toEqual({ a: NOW + 70_000 });
  });
});
