/** Deployments of several versions: who gets which one, what is recorded, and what is refused. */

import { describe, expect, it } from 'vitest';
import { manualClock } from '../../src/entries/testing.ts';
import { createOrchestrator, defineOperation, memoryStorage, type NewDeployment } from '../../src/index.ts';

const show = defineOperation({ name: 'show', run: ({ config }) => config });
const GREETING = `
name: greeting
flow:
  - { agent: first, operation: show, config: { text: "prompt://greet@production" } }
  - { wait: go, timeout: 1h }
  - { agent: second, operation: show, config: { text: "prompt://greet@production" } }
outputs: { first: "\${first.output.text}", second: "\${second.output.text}" }
`;
const ONCE = `
name: once
flow:
  - { agent: first, operation: show, config: { text: "prompt://greet@production" } }
outputs: { text: "\${first.output.text}" }
`;

const SPLIT = { 'v1.2.0': 90, 'v1.3.0': 10 };

async function setUp(storage = memoryStorage()) {
  const clock = manualClock();
  const open = () =>
    createOrchestrator({ clock, storage, logger: false, operations: [show], ensembles: [GREETING, ONCE] });
  const orchestrator = open();
  const { components } = orchestrator;
  await components.register({ name: 'greet', kind: 'prompt' });
  for (const version of ['v1.1.0', 'v1.2.0', 'v1.3.0'])
    await components.createVersion('greet', { version, content: version });
  const deploy = (deployment: Omit<NewDeployment, 'to'>) =>
    components.deploy('greet', { to: 'production', ...deployment });
  return { clock, open, orchestrator, components, deploy };
}

describe('a deployment of several versions', () => {
  it('gives 10,000 keys the shares of the versions within 3 sigma, in every process the same', async () => {
    const { components, deploy, open } = await setUp();
    await deploy({ split: SPLIT, by: '${input.userId}' });
    const other = open().components;
    let count = 0;
    for (let n = 0; n < 10_000; n++) {
      const { version } = await components.resolve('prompt://greet@production', { key: `user ${n}` });
      if (version === 'v1.3.0') count += 1;
      if (n % 100 === 0)
        expect((await other.resolve('prompt://greet@production', { key: `user ${n}` })).version).toBe(version);
    }
    expect(Math.abs(count - 1000)).toBeLessThan(3 * Math.sqrt(10_000 * 0.1 * 0.9));
  });

  it('a key that has the new version keeps it while its share grows', async () => {
    const { components, deploy } = await setUp();
    const keys = Array.from({ length: 300 }, (_, n) => `user ${n}`);
    const withNew = async () => {
      const found = await Promise.all(keys.map((key) => components.resolve('prompt://greet@production', { key })));
      return new Set(keys.filter((_, i) => found[i]?.version === 'v1.3.0'));
    };
    let before = new Set<string>();
    for (const share of [5, 20, 60, 99]) {
      await deploy({ split: { 'v1.2.0': 100 - share, 'v1.3.0': share } });
      const now = await withNew();
      expect([...before].filter((key) => !now.has(key))).toEqual([]);
      expect(now.size).toBeGreaterThan(before.size);
      before = now;
    }
  });

  it('the expression reads the input, and the same value gets the same version; null means the execution', async () => {
    const { orchestrator, deploy } = await setUp();
    await deploy({ split: { 'v1.2.0': 50, 'v1.3.0': 50 }, by: '${input.userId}' });
    const texts = async (input: object) => {
      const runs = await Promise.all(Array.from({ length: 20 }, () => orchestrator.execute('once', input)));
      return new Set(runs.map(({ output }) => (output as { readonly text: string }).text));
    };
    for (const userId of ['ada', 'grace', 7]) expect((await texts({ userId })).size).toBe(1);
    expect((await texts({})).size).toBe(2);
  });

  it('an execution keeps its version while the shares change, and its record has both', async () => {
    const { orchestrator, deploy } = await setUp();
    await deploy({ split: SPLIT, by: '${input.userId}' });
    const { id, result } = await orchestrator.start('greeting', { userId: 'user 3' });
    await expect.poll(async () => (await orchestrator.executions.get(id)).status).toBe('waiting');
    const [used] = (await orchestrator.executions.get(id)).components ?? [];
    expect(used).toEqual({ kind: 'prompt', name: 'greet', ref: 'production', version: used?.version, split: SPLIT });
    const isNew = used?.version === 'v1.3.0';
    await deploy({ version: isNew ? 'v1.2.0' : 'v1.3.0' });
    await orchestrator.executions.signal(id, 'go');
    const { output, components } = await result();
    expect(output).toEqual({ first: used?.version, second: used?.version });
    expect(components).toEqual([used]);
  });

  it('is rolled back to the version before, also after its shares have changed, and never to one that not all had', async () => {
    const { components, deploy } = await setUp();
    await deploy({ version: 'v1.1.0' });
    await deploy({ version: 'v1.2.0' });
    await deploy({ split: SPLIT });
    const half = await deploy({ split: { 'v1.2.0': 50, 'v1.3.0': 50 }, message: 'more' });
    expect(half).toMatchObject({ version: 'v1.2.0', previous: 'v1.2.0', message: 'more' });
    const rollback = () => components.rollback('greet', { to: 'production' });
    const back = await rollback();
    // v1.3.0 never had all executions.
    expect([back.version, back.split, back.previous]).toEqual(['v1.2.0', undefined, 'v1.1.0']);
    await deploy({ split: SPLIT });
    expect(await deploy({ version: 'v1.3.0' })).toMatchObject({ version: 'v1.3.0', previous: 'v1.2.0' });
    expect(await rollback()).toMatchObject({ version: 'v1.2.0', previous: 'v1.1.0' });
  });

  it('a change expects the shares that it has read', async () => {
    const { components, deploy } = await setUp();
    await deploy({ version: 'v1.2.0' });
    await components.deploy('greet', { to: 'production', split: SPLIT }, { ifMatch: 'v1.2.0' });
    await expect(
      components.deploy('greet', { to: 'production', version: 'v1.3.0' }, { ifMatch: 'v1.2.0' }),
    ).rejects.toMatchObject({ code: 'CONFLICT' });
  });

  it.each<[string, Omit<NewDeployment, 'to'> & { to?: string }, string]>([
    ['no version and no split', {}, '`version` must be a version'],
    ['a version and a split', { version: 'v1.2.0', split: SPLIT }, 'leave `version`'],
    ['one version', { split: { 'v1.2.0': 100 } }, '`split` must have 2 to 10 versions, not 1'],
    [
      'a share that is text',
      { split: { 'v1.2.0': '90', 'v1.3.0': '10' } as never },
      'gives v1.2.0 "90", which is not a number',
    ],
    ['a sum of 99', { split: { 'v1.2.0': 90, 'v1.3.0': 9 } }, '`split` must add up to 100, not 99'],
    ['a share of 0', { split: { 'v1.2.0': 100, 'v1.3.0': 0 } }, 'a share must be above 0 and below 100'],
    ['a version that is none', { split: { 'v1.2.0': 90, latest: 10 } }, '`split` has `latest`, which is not a version'],
    ['a list', { split: [90, 10] as never }, '`split` must be the share of each version in percent'],
    ['a split of latest', { to: 'latest', split: SPLIT }, '`latest` is one version'],
    ['an expression without a split', { version: 'v1.2.0', by: '${input.userId}' }, '`by` decides about a split'],
    ['an expression that is none', { split: SPLIT, by: 'userId' }, '`by` must be an expression that reads the input'],
    ['an expression that reads more', { split: SPLIT, by: '${state.x}' }, "`by` can't be read: `state` can't be read"],
    ['steps without a guard', { version: 'v1.2.0', steps: [1, 100] }, '`steps` and `every` belong to a rollout'],
  ])('%s is refused', async (_title, deployment, message) => {
    const { deploy, components } = await setUp();
    await expect(deploy(deployment)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining(message),
    });
    expect(await components.deployments('greet')).toEqual([]);
  });

  it('a version that does not exist is refused, and so is a look at a split without a key', async () => {
    const { deploy, components } = await setUp();
    await expect(deploy({ split: { 'v1.2.0': 90, 'v9.0.0': 10 } })).rejects.toMatchObject({
      code: 'VERSION_NOT_FOUND',
    });
    await deploy({ split: SPLIT });
    for (const key of [0, '', false])
      await expect(components.resolve('prompt://greet@production', { key: key as never })).rejects.toThrow(
        '`key` must be text',
      );
    await expect(components.resolve('prompt://greet@production')).rejects.toThrow(
      'prompt://greet@production leads to several versions (v1.3.0=10, v1.2.0=90): pass the `key` that decides between them',
    );
  });
});
