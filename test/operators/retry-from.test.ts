/** `executions.retry` with `from` and `definition`: what runs again, and what keeps its result. */

import { describe, expect, it } from 'vitest';
import { staysBefore } from '../../src/orchestrator/operators/find-step.ts';
import { boom, ok, scene } from '../engine/scene.ts';

describe('retry with `from`', () => {
  it('runs a step and all after it again, also of an execution that completed, and says so', async () => {
    const { orchestrator, run, ran } = scene([ok('a'), ok('b'), ok('c')]);
    const first = await run();
    ran.length = 0;
    const handle = await orchestrator.executions.retry(first.id, { from: 'flow[1]', reason: 'b had a wrong price' });
    const again = await handle.result();
    expect([again.status, ran]).toEqual(['completed', ['b', 'c']]);
    expect(again).toMatchObject({
      retryOf: first.id,
      trigger: { retry: { from: 'flow[1]', reason: 'b had a wrong price' } },
    });
    expect((await orchestrator.executions.get(first.id)).retriedBy).toBe(again.id);
  });

  it('takes the name of a result, and keeps what other items and branches gave', async () => {
    const { orchestrator, run, ran } = scene([
      { foreach: ['x', 'y'], steps: [ok('each')] },
      { parallel: [ok('left'), ok('right')] },
      boom('last'),
    ]);
    const failed = await run();
    ran.length = 0;
    await (await orchestrator.executions.retry(failed.id, { from: 'right' })).result();
    expect(ran).toEqual(['right', 'last']);
    ran.length = 0;
    const { executions } = await orchestrator.executions.list({ retryOf: failed.id });
    const newest = executions[0]?.id as string;
    await (await orchestrator.executions.retry(newest, { from: 'flow[0].foreach[1].steps[0]' })).result();
    expect(ran.filter((name) => name === 'each')).toEqual(['each']);
    expect(ran).toContain('left');
  });

  it.each([
    ['flow[0]', 'flow[1]', true],
    ['flow[2]', 'flow[1]', false],
    ['flow[1]', 'flow[1]', false],
    ['flow[1].model[1]', 'flow[1]', false],
    ['flow[10]', 'flow[9]', false],
    ['flow[9]', 'flow[10]', true],
    ['flow[1].while[2].steps[0]', 'flow[1].while[3].steps[0]', true],
    ['flow[1].while[4].steps[0]', 'flow[1].while[3].steps[0]', false],
    ['flow[1].foreach[4].steps[0]', 'flow[1].foreach[3].steps[0]', true],
    ['flow[1].parallel[2]', 'flow[1].parallel[0]', true],
    ['flow[1].try[0]', 'flow[1].catch[0]', true],
    ['flow[1].finally[0]', 'flow[1].catch[0]', false],
    ['flow[1].then[0]', 'flow[1].then[1]', true],
    ['flow[1].foreach', 'flow[1].foreach[0].steps[0]', false],
  ])('%s stays when the flow runs again from %s: %s', (key, from, stays) => {
    expect(staysBefore(key, from)).toBe(stays);
  });

  it('a step that does not exist, a name of several steps, and a step of a loop without its round are refused', async () => {
    const { orchestrator, run, ran } = scene([
      ok('a', { name: 'one' }),
      { while: false, steps: [ok('looped')] },
      { if: true, then: [ok('b', { name: 'two' })], else: [ok('c', { name: 'two' })] },
      boom('d'),
    ]);
    const { id } = await run();
    ran.length = 0;
    const refused = async (from: string) =>
      orchestrator.executions.retry(id, { from }).then(
        () => 'started',
        (error) => `${error.code}: ${error.message}`,
      );
    expect(await refused('onee')).toBe('INVALID_REQUEST: `from`: there is no step `onee`; did you mean `one`?');
    expect(await refused('two')).toContain(
      'several steps have the name `two`; give the key of one: flow[2].then[0], flow[2].else[0]',
    );
    expect(await refused('looped')).toContain(
      'runs more than once; give the key of one run, such as `flow[1].while[0].steps[0]`',
    );
    expect((await orchestrator.executions.list()).executions).toHaveLength(1);
  });

  it('one that has not ended is refused, and a second call finds the retry of the first', async () => {
    const { orchestrator, start, clock } = scene([ok('a'), { sleep: '1h' }, ok('b')]);
    const { id } = await start();
    await clock.advance(1);
    await expect(orchestrator.executions.retry(id, { from: 'a' })).rejects.toMatchObject({ code: 'CONFLICT' });
    await clock.advance(3_600_000);
    const first = await orchestrator.executions.retry(id, { from: 'a' });
    expect((await orchestrator.executions.retry(id, { from: 'a' })).id).toBe(first.id);
    await clock.advance(3_600_000);
    await first.result();
    expect((await orchestrator.executions.retry(id, { from: 'a' })).id).toBe(first.id);
    expect((await orchestrator.executions.list()).executions).toHaveLength(2);
  });
});

describe('retry with `definition`', () => {
  const old = { name: 'order', flow: [ok('a'), boom('b')] };

  async function failedOnce() {
    const { orchestrator, ran } = scene([]);
    await orchestrator.ensembles.create(old as never);
    const failed = await orchestrator.execute('order', {});
    ran.length = 0;
    return { orchestrator, ran, failed };
  }

  it('`latest` runs the newest definition with the results of the steps that are the same', async () => {
    const { orchestrator, ran, failed } = await failedOnce();
    await orchestrator.ensembles.update('order', { ...old, flow: [ok('a'), ok('b'), ok('c')] } as never);
    const again = await (await orchestrator.executions.retry(failed.id, { definition: 'latest' })).result();
    expect([again.status, ran]).toEqual(['completed', ['b', 'c']]);
    expect(again.trigger.retry).toEqual({ definition: failed.version });
    expect(again.version).not.toBe(failed.version);
  });

  it('another step at the place of a result is refused, and `from` leaves that result out', async () => {
    const { orchestrator, ran, failed } = await failedOnce();
    await orchestrator.ensembles.update('order', { ...old, flow: [ok('other'), ok('b')] } as never);
    const retry = (options: object) => orchestrator.executions.retry(failed.id, { definition: 'latest', ...options });
    await expect(retry({})).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('has come to `a` at flow[0]'),
    });
    expect((await (await retry({ from: 'flow[0]' })).result()).status).toBe('completed');
    expect(ran).toEqual(['other', 'b']);
  });

  it('a version that is not there is refused', async () => {
    const { orchestrator, failed } = await failedOnce();
    await expect(orchestrator.executions.retry(failed.id, { definition: 'v9' })).rejects.toMatchObject({
      code: 'VERSION_NOT_FOUND',
    });
  });
});
