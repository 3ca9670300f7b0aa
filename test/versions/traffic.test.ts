/** `ensembles.traffic`: versions side by side, their guard, and a version that runs dry after each execution. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { chosenVersion } from '../../src/engine/ensemble/traffic.ts';
import type { Orchestrator } from '../../src/index.ts';
import { order, versions, world } from './world.ts';

const given = async (orchestrator: Orchestrator, input: unknown = {}, options = {}) =>
  (await orchestrator.execute('order', input, options)).output;

describe('traffic', () => {
  it('a version that is named stays, whatever is stored after it; `latest` follows the newest again', async () => {
    const { deploy } = world();
    const [one, other] = [deploy(), deploy()];
    await versions(one, order(1), order(2));
    expect(await one.ensembles.traffic('order')).toMatchObject({ version: 'v1' });
    expect([await given(one), await given(other)]).toEqual([{ n: 1 }, { n: 1 }]);
    // The newest definition is that of v2.
    expect(await one.ensembles.get('order')).toMatchObject({ label: 'v2' });
    await other.ensembles.traffic('order', { version: 'v2', message: 'go', actor: 'Ada' });
    expect([await given(one), await given(other)]).toEqual([{ n: 2 }, { n: 2 }]);
    expect(await one.ensembles.traffic('order')).toMatchObject({
      version: 'v2',
      previous: 'v1',
      by: 'Ada',
      message: 'go',
    });
    await one.ensembles.update('order', order(3), { label: 'v3' });
    expect(await given(other)).toEqual({ n: 2 });
    expect(await one.ensembles.traffic('order', { version: 'latest' })).toEqual({ version: 'latest' });
    expect([await given(one), await given(other)]).toEqual([{ n: 3 }, { n: 3 }]);
  });

  it('splits by the value of an expression: the same value gets the same version in every process, in the shares that are named', async () => {
    const { deploy } = world();
    const [one, other] = [deploy(), deploy()];
    const [v1, v2] = await versions(one, order(1), order(2));
    const split = { v1: 90, v2: 10 };
    expect(await one.ensembles.traffic('order', { split, by: '${input.userId}' })).toMatchObject({
      ...{ version: 'v1', split: { v2: 10, v1: 90 }, splitBy: '${input.userId}' },
    });
    let second = 0;
    for (let i = 0; i < 1_000; i++) {
      const record = await (i % 2 ? one : other).execute('order', { userId: `u${i}` });
      const { n } = record.output as { n: number };
      expect(record.version).toBe(n === 1 ? v1 : v2);
      expect(record.trigger.traffic).toEqual({ split });
      if (n === 2) second += 1;
      if (i < 50) expect(await given(i % 2 ? other : one, { userId: `u${i}` })).toEqual({ n });
    }
    expect(second).toBeGreaterThan(70);
    expect(second).toBeLessThan(135);
    // A larger share keeps those who had it.
    const had = await Promise.all(Array.from({ length: 100 }, (_, i) => given(one, { userId: `u${i}` })));
    await one.ensembles.traffic('order', { split: { v1: 50, v2: 50 }, by: '${input.userId}' });
    const have = await Promise.all(Array.from({ length: 100 }, (_, i) => given(one, { userId: `u${i}` })));
    for (const [i, before] of had.entries()) if ((before as { n: number }).n === 2) expect(have[i]).toEqual({ n: 2 });
    expect(have.filter((one) => (one as { n: number }).n === 2).length).toBeGreaterThan(30);
  });

  it('without an expression, or with a value that is null, the id of the execution decides', async () => {
    const { deploy } = world();
    const one = deploy();
    await versions(one, order(1), order(2));
    await one.ensembles.traffic('order', { split: { v1: 50, v2: 50 } });
    const seen = new Set<unknown>();
    for (let i = 0; i < 40; i++) {
      const { id, output } = await one.execute('order');
      seen.add(JSON.stringify(output));
      expect(chosenVersion({ split: { two: 50, one: 50 } } as never, 'order', id)).toBe(
        (output as { n: number }).n === 2 ? 'two' : 'one',
      );
    }
    expect(seen.size).toBe(2);
    await one.ensembles.traffic('order', { split: { v1: 50, v2: 50 }, by: '${input.userId}' });
    const { id, output } = await one.execute('order', { userId: null });
    expect(chosenVersion({ split: { two: 50, one: 50 } } as never, 'order', id)).toBe(
      (output as { n: number }).n === 2 ? 'two' : 'one',
    );
  });

  it('checks the input by the version that runs, and each child and each started execution takes part', async () => {
    const { deploy } = world();
    const one = deploy();
    const strict = order(2).replace('flow:', 'inputs: { coupon: { type: string, required: true } }\nflow:');
    await versions(one, order(1), strict);
    expect(await given(one)).toEqual({ n: 1 });
    await one.ensembles.create(
      'name: parent\nflow: [{ ensemble: order, input: { coupon: "${input.coupon}" }, name: got }]\noutputs: { got: "${got.output}" }',
    );
    await one.ensembles.traffic('order', { version: 'v2' });
    await expect(given(one)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    const parent = await one.execute('parent', { coupon: 'x' });
    expect(parent.output).toEqual({ got: { n: 2 } });
    await one.ensembles.traffic('order', { split: { v1: 1, v2: 99 }, by: '${input.coupon}' });
    const again = await one.execute('parent', { coupon: 'x' });
    const { executions } = await one.executions.list({ parentId: again.id });
    expect(executions[0]?.trigger).toMatchObject({ traffic: { split: { v1: 1, v2: 99 } } });
    const started = await one.start('order', { coupon: 'y' });
    expect((await started.result()).trigger.traffic).toEqual({ split: { v1: 1, v2: 99 } });
  });

  it('a guard of a split that stays leads back to the largest share as soon as it is broken', async () => {
    const events: unknown[] = [];
    const { deploy, settle } = world();
    const one = deploy();
    one.on('ensemble.rolledBack', ({ data }) => events.push(data));
    await versions(one, order(1), order(2, 'fail'));
    await one.ensembles.traffic('order', {
      split: { v1: 50, v2: 50 },
      by: '${input.userId}',
      guard: 'failureRate < 2%',
    });
    for (let i = 0; i < 12; i++) await one.execute('order', { userId: `u${i}` });
    await settle();
    const now = await one.ensembles.traffic('order');
    expect(now).toMatchObject({
      version: 'v1',
      by: 'guard',
      message: expect.stringMatching(/^v2 was rolled back: \d+ of \d+ executions failed/),
    });
    expect(now.split).toBeUndefined();
    for (let i = 0; i < 12; i++) expect(await given(one, { userId: `u${i}` })).toEqual({ n: 1 });
    expect(events).toMatchObject([{ ensemble: 'order', from: 'v2', to: 'v1', guard: 'failureRate < 2%' }]);
  });

  it('counts what the guard watches, also in a process that only works, and keeps the shares while it holds', async () => {
    const { deploy, settle } = world();
    const one = deploy();
    await versions(one, order(1), order(2));
    await one.ensembles.traffic('order', { split: { v1: 60, v2: 40 }, guard: 'failureRate < 50%' });
    for (let i = 0; i < 30; i++) await one.start('order', {});
    await settle();
    const { counts, split } = await one.ensembles.traffic('order');
    expect(split).toEqual({ v1: 60, v2: 40 });
    expect(counts?.v2?.failures).toBe(0);
    expect(counts?.v2?.runs).toBeGreaterThan(3);
    const { executions } = await one.executions.list({ limit: 100 });
    const v2 = (await one.ensembles.version('order', 'v2')).version;
    expect(counts?.v2?.runs).toBe(executions.filter(({ version }) => version === v2).length);
  });

  it('rolls a version out in steps, and back when it fails', async () => {
    const { deploy, settle } = world();
    const one = deploy();
    await versions(one, order(1), order(2), order(3, 'fail'));
    await one.ensembles.traffic('order', { version: 'v2', guard: 'failureRate < 2%', steps: [10, 100], every: '1m' });
    expect(await one.ensembles.traffic('order')).toMatchObject({
      ...{ version: 'v1', split: { v1: 90, v2: 10 }, rollout: { version: 'v2', steps: [10, 100], step: 0 } },
    });
    for (let i = 0; i < 60; i++) await given(one);
    await settle(61_000);
    await given(one);
    await settle();
    expect(await one.ensembles.traffic('order')).toMatchObject({ version: 'v2', previous: 'v1' });
    expect((await one.ensembles.traffic('order')).split).toBeUndefined();
    await one.ensembles.traffic('order', { version: 'v3', guard: 'failureRate < 2%', steps: [50, 100] });
    for (let i = 0; i < 20; i++) await given(one);
    await settle();
    expect(await one.ensembles.traffic('order')).toMatchObject({ version: 'v2', by: 'guard' });
    expect(await given(one)).toEqual({ n: 2 });
  });

  it('a rollback of the definition ends the traffic, and so do new executions of other versions', async () => {
    const { deploy } = world();
    const one = deploy();
    await versions(one, order(1), order(2), order(3));
    await one.ensembles.traffic('order', { split: { v2: 50, v3: 50 } });
    await one.ensembles.rollback('order', { to: 'v1' });
    for (let i = 0; i < 10; i++) expect(await given(one)).toEqual({ n: 1 });
    expect(await one.ensembles.traffic('order')).toEqual({ version: 'latest' });
  });

  it('an execution keeps its version in every process, and moves to another one', async () => {
    const { deploy, stop, settle } = world();
    const one = deploy();
    const waits = (n: number) => order(n, 'give', { more: '  - { wait: go }\n' });
    const [v1] = await versions(one, waits(1), waits(2));
    const { id } = await one.start('order');
    await settle();
    await one.ensembles.traffic('order', { version: 'v2' });
    await stop(one);
    const other = deploy();
    await other.ready();
    await other.executions.signal(id, 'go');
    await settle();
    expect(await other.executions.get(id)).toMatchObject({ status: 'completed', version: v1, output: { n: 1 } });
  });

  it('refuses an ensemble in code with the line that puts it into the store', async () => {
    const { deploy } = world(undefined, { ensembles: [order(1)] });
    await expect(deploy().ensembles.traffic('order', { version: 'latest' })).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining("await orchestrator.ensembles.create(definition, { label: 'v1' })"),
    });
  });

  it('refuses what can not be: what is wrong, and what was expected', async () => {
    const { deploy } = world();
    const one = deploy();
    await versions(one, order(1), order(2));
    const traffic = one.ensembles.traffic as (name: string, given: unknown) => Promise<unknown>;
    const refused = (given: unknown, message: RegExp, code = 'INVALID_REQUEST') =>
      expect(traffic('order', given)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    await refused({}, /needs `version`, `split` or `shadow`/);
    await refused(null, /needs `version`/);
    await refused({ split: { v1: 90, v2: 5 } }, /`split` must add up to 100, not 95/);
    await refused({ split: { v1: 90.5, v2: 9.5 } }, /a share must be a whole number/);
    await refused({ split: { v1: 100, v2: 0 } }, /a share must be above 0 and below 100/);
    await refused({ split: { v1: 100 } }, /must have 2 to 10 versions, not 1/);
    await refused({ split: { v1: 80, latest: 10, v2: 10 } }, /names version v2 twice/);
    await refused({ split: { v1: 90, v7: 10 } }, /has no version `v7`/, 'VERSION_NOT_FOUND');
    await refused({ version: 'v7' }, /has no version `v7`/, 'VERSION_NOT_FOUND');
    await refused({ shadow: 'v7' }, /has no version `v7`/, 'VERSION_NOT_FOUND');
    await refused({ split: { v1: 90, v2: 10 }, by: 'userId' }, /`by` must be an expression/);
    await refused({ version: 'v2', by: '${input.x}' }, /`by` decides about a split/);
    await refused({ split: { v1: 90, v2: 10 }, guard: 'errors < 2' }, /`guard` must be a limit/);
    await refused({ split: { v1: 90, v2: 10 }, guard: 'failureRate < 2%', steps: [1, 100] }, /leave `version`/);
    await refused({ version: 'v1', guard: 'failureRate < 2%' }, /executions run v1 already/);
    await refused({ version: 'v2', guard: 'failureRate < 2%', steps: [0.5, 100] }, /`steps` must be whole numbers/);
    await expect(traffic('order', { splits: {} })).rejects.toThrow(/`splits` is not an option/);
    await expect(traffic('ordr', { version: 'v1' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await one.ensembles.traffic('order')).toMatchObject({ version: 'v1' });
  });

  it('a process that lacks a script of the newest version starts the version that it has', async () => {
    const storage = memoryStorage({ shared: true });
    const one = world(storage).deploy();
    await versions(one, order(1), order(2, 'other'));
    const less = world(storage, { scripts: { give: () => 1 } }).deploy();
    expect(await given(less)).toEqual({ n: 1 });
    await expect(less.executions.move({ ensemble: 'order', to: 'latest' })).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
    });
  });

  it('refuses a version that this process can not run, and starts of it in one that lacks its script', async () => {
    const storage = memoryStorage({ shared: true });
    const { deploy } = world(storage);
    const one = deploy();
    await versions(one, order(1), order(2, 'other'));
    const less = world(storage, { scripts: { give: () => 1 } }).deploy();
    await expect(less.ensembles.traffic('order', { version: 'v2' })).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringMatching(/this process can't run version v2 of ensemble `order`: .*no script `other`/s),
    });
    await one.ensembles.traffic('order', { version: 'v2' });
    await expect(less.execute('order')).rejects.toMatchObject({ code: 'NOT_CONFIGURED' });
    expect(await given(one)).toEqual({ n: 'other' });
  });
});

describe('shadow', () => {
  it('runs the version dry after each execution, and lists where path and output differ', async () => {
    const ran: string[] = [];
    const { deploy, settle } = world(undefined, {
      scripts: {
        give: ({ input, execution }) => {
          ran.push(execution.agent);
          return (input as { n: number }).n;
        },
      },
    });
    const one = deploy();
    const more = '  - { agent: check, operation: code, config: { script: give }, input: { n: 5 } }\n';
    const [, v2] = await versions(
      one,
      order(1),
      order(1, 'give', { more }).replace("n: '${say.output}'", "n: '${say.output + 1}'"),
    );
    await one.ensembles.traffic('order', { version: 'v1', shadow: 'v2' });
    const real = await one.execute('order');
    expect(real.trigger.traffic).toEqual({ shadow: v2 });
    await settle();
    // Nothing ran again.
    expect(ran).toEqual(['say']);
    const { shadow, shadowed } = await one.ensembles.traffic('order');
    expect(shadow).toBe('v2');
    expect(shadowed).toMatchObject({
      ...{ runs: 1, different: 1, left: 0 },
      differences: [
        {
          executionId: real.id,
          path: { was: ['say'], shadow: ['say', 'check'] },
          output: [{ path: 'output.n', was: 1, shadow: 2 }],
          madeUp: ['check'],
        },
      ],
    });
    // No record of its own, and no number.
    expect((await one.executions.list({})).executions).toHaveLength(1);
    // One that is equal is only counted.
    await one.ensembles.traffic('order', { version: 'v1', shadow: 'v1' });
    await one.execute('order');
    await settle();
    expect((await one.ensembles.traffic('order')).shadowed).toEqual({
      runs: 1,
      different: 0,
      left: 0,
      differences: [],
    });
  });

  it('says that the version would fail, or would refuse the input; runs after failures, and not after retries', async () => {
    const { deploy, settle } = world();
    const one = deploy();
    const strict = order(2).replace('flow:', 'inputs: { coupon: { type: string, required: true } }\nflow:');
    await versions(
      one,
      order(1, 'fail'),
      order(1, 'give'),
      strict,
      order(2, 'fail').replace('outputs: { n', 'outputs: { m'),
    );
    await one.ensembles.traffic('order', { version: 'v1', shadow: 'v4' });
    await one.execute('order');
    await settle();
    expect((await one.ensembles.traffic('order')).shadowed).toMatchObject({ runs: 1, different: 0 });
    await one.ensembles.traffic('order', { version: 'v1', shadow: 'v3' });
    const { id } = await one.execute('order');
    await settle();
    await (await one.executions.retry(id)).result();
    await settle();
    expect((await one.ensembles.traffic('order')).shadowed).toMatchObject({
      runs: 1,
      differences: [{ status: { was: 'failed', shadow: expect.stringMatching(/^refused: .*coupon/) } }],
    });
    await one.ensembles.traffic('order', { version: 'v2', shadow: 'v1' });
    await one.execute('order');
    await settle();
    // What the step gave is known.
    expect((await one.ensembles.traffic('order')).shadowed).toMatchObject({ runs: 1, different: 0 });
  });

  it('runs after a child and after a wait, with the signal that came', async () => {
    const { deploy, settle } = world();
    const one = deploy();
    const waits = (more: string) => order(1, 'give', { more: `  - { wait: paid, name: paid }\n${more}` });
    await versions(
      one,
      waits(''),
      waits(
        '  - { if: "${paid.output.cents > 10}", then: [{ agent: big, operation: code, config: { script: give }, input: { n: 9 } }] }\n',
      ),
    );
    await one.ensembles.traffic('order', { version: 'v1', shadow: 'v2' });
    for (const cents of [5, 50]) {
      const { id } = await one.start('order');
      await settle();
      await one.executions.signal(id, 'paid', { cents });
      await settle();
    }
    const { shadowed } = await one.ensembles.traffic('order');
    expect(shadowed).toMatchObject({ runs: 2, different: 1 });
    expect(shadowed?.differences[0]?.path).toEqual({ was: ['say', 'paid'], shadow: ['say', 'paid', 'big'] });
  });

  it('does not hold the executions up: of more than 100 that wait for it, the others are left, and counted', async () => {
    const { deploy, settle } = world();
    const one = deploy();
    await versions(one, order(1), order(1).replace("'${say.output}'", "'${say.output + 1}'"));
    await one.ensembles.traffic('order', { version: 'v1', shadow: 'v2' });
    await Promise.all(Array.from({ length: 130 }, () => one.start('order').then((started) => started.result())));
    for (let i = 0; i < 20; i++) await settle();
    const { shadowed } = await one.ensembles.traffic('order');
    expect((shadowed?.runs ?? 0) + (shadowed?.left ?? 0)).toBe(130);
    expect(shadowed?.different).toBe(shadowed?.runs);
    expect(shadowed?.differences).toHaveLength(100);
  });
});
