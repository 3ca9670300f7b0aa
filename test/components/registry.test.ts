/** `orchestrator.components`: registering, versions, deployments, references, and what another process sees. */

import { describe, expect, it } from 'vitest';
import { manualClock } from '../../src/entries/testing.ts';
import { createOrchestrator, memoryStorage } from '../../src/index.ts';

const DAY = 86_400_000;

function setUp() {
  const clock = manualClock();
  const storage = memoryStorage({ shared: true });
  const open = () => createOrchestrator({ clock, storage, logger: false }).components;
  return { clock, storage, open, components: open() };
}

async function withGreet() {
  const world = setUp();
  const { components, clock } = world;
  await components.register({ name: 'greet', kind: 'prompt', file: 'prompts/greet.md', metadata: { model: 'small' } });
  for (const [i, version] of ['v1.0.0', 'v1.2.0', 'v1.10.0'].entries()) {
    await components.createVersion('greet', { version, content: `Hello ${i}`, actor: 'ada', message: `the ${i}th` });
    await clock.advance(1000);
  }
  return world;
}

describe('a component', () => {
  it('is registered once, changed with its tag, and listed by name', async () => {
    const { components } = setUp();
    const made = await components.register({ name: 'greet', kind: 'prompt', metadata: { owner: 'ops' } });
    expect(made).toMatchObject({
      name: 'greet',
      kind: 'prompt',
      metadata: { owner: 'ops' },
      createdAt: Date.UTC(2026, 0, 1),
    });
    await expect(components.register({ name: 'greet', kind: 'prompt' })).rejects.toMatchObject({ code: 'CONFLICT' });
    await expect(components.update('greet', {}, { ifMatch: 'x' })).rejects.toMatchObject({ code: 'CONFLICT' });
    const changed = await components.update('greet', { metadata: { owner: 'dev' } }, { ifMatch: made.tag });
    expect(changed).toMatchObject({ kind: 'prompt', metadata: { owner: 'dev' } });
    for (const name of ['b', 'a']) await components.register({ name, kind: 'config' });
    const first = await components.list({ limit: 2 });
    expect(first.components.map(({ name }) => name)).toEqual(['a', 'b']);
    const rest = await components.list({ limit: 2, cursor: String(first.nextCursor) });
    expect([rest.components.map(({ name }) => name), rest.nextCursor]).toEqual([['greet'], undefined]);
    await expect(components.get('nobody')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it.each<[unknown, string]>([
    [{ name: '../etc', kind: 'prompt' }, 'the name of a component must be a name'],
    [{ name: 'a', kind: 'image' }, '`kind` must be `prompt`, `template`, `config` or `query`'],
    [{ name: 'a', kind: 'prompt', file: '../../etc/passwd' }, '`file` must be a path inside the project'],
    [{ name: 'a', kind: 'prompt', file: '/etc/passwd' }, '`file` must be a path inside the project'],
    [{ name: 'a', kind: 'prompt', file: 'C:\\x' }, '`file` must be a path inside the project'],
    [{ name: 'a', kind: 'prompt', file: 'a\0b' }, '`file` must be a path inside the project'],
    [{ name: 'a', kind: 'prompt', metadata: { temprature: 1 } }, 'did you mean `temperature`'],
    [{ name: 'a', kind: 'prompt', metadata: { temperature: 'hot' } }, '`metadata.temperature`'],
    [{ name: 'a', kind: 'prompt', metadata: { variables: 'name' } }, '`metadata.variables`'],
  ])('refuses %j', async (given, message) => {
    const { components } = setUp();
    await expect(components.register(given as never)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining(message),
    });
  });
});

describe('a version', () => {
  it('never changes, and is listed by SemVer, the highest first', async () => {
    const { components } = await withGreet();
    const again = components.createVersion('greet', { version: 'v1.2.0', content: 'other' });
    await expect(again).rejects.toMatchObject({ code: 'CONFLICT', message: expect.stringContaining('never changes') });
    expect((await components.resolve('prompt://greet@v1.2.0')).content).toBe('Hello 1');
    expect((await components.versions('greet')).map(({ version, by, message }) => [version, by, message])).toEqual([
      ['v1.10.0', 'ada', 'the 2th'],
      ['v1.2.0', 'ada', 'the 1th'],
      ['v1.0.0', 'ada', 'the 0th'],
    ]);
  });

  it('keeps the metadata that its component had when it was created', async () => {
    const { components } = await withGreet();
    await components.update('greet', { metadata: { model: 'large' } });
    await components.createVersion('greet', { version: 'v2.0.0', content: 'New' });
    expect((await components.resolve('prompt://greet@v1.0.0')).metadata).toEqual({ model: 'small' });
    expect((await components.resolve('prompt://greet@v2.0.0')).metadata).toEqual({ model: 'large' });
  });

  it.each(['1.0.0', 'v1', 'v1.0', 'v01.0.0', 'v1.0.0-beta', 'v1.0.0/..', '', undefined])(
    'refuses the number %j',
    async (version) => {
      const { components } = await withGreet();
      const made = components.createVersion('greet', { version: version as string, content: 'x' });
      await expect(made).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        message: expect.stringContaining('such as `v1.0.0`'),
      });
    },
  );

  it('refuses a text that is missing, too large, or no YAML for a config', async () => {
    const { components } = await withGreet();
    await components.register({ name: 'limits', kind: 'config' });
    const refused = (name: string, content: unknown) =>
      expect(components.createVersion(name, { version: 'v3.0.0', content: content as string })).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        message: expect.stringContaining('`content`'),
      });
    await refused('greet', undefined);
    await refused('greet', ' \n');
    await refused('greet', 'x'.repeat(1024 * 1024 + 1));
    await refused('limits', 'a: [1');
    await components.createVersion('limits', { version: 'v1.0.0', content: 'max: 5' });
  });
});

describe('a deployment', () => {
  it('says what an environment has, since when, by whom and what it had before', async () => {
    const { components, clock } = await withGreet();
    await components.deploy('greet', { to: 'production', version: 'v1.0.0', actor: 'ada' });
    await clock.advance(1000);
    await components.deploy('greet', { to: 'staging', version: 'v1.10.0' });
    await components.deploy('greet', { to: 'production', version: 'v1.2.0', actor: 'bob', message: 'go' });
    const at = clock.now();
    expect(await components.deployments('greet')).toEqual([
      { environment: 'production', version: 'v1.2.0', deployedAt: at, by: 'bob', message: 'go', previous: 'v1.0.0' },
      { environment: 'staging', version: 'v1.10.0', deployedAt: at },
    ]);
    // The same again, as a pipeline does: what was before stays known.
    await components.deploy('greet', { to: 'production', version: 'v1.2.0' });
    expect((await components.rollback('greet', { to: 'production', actor: 'eve' })).version).toBe('v1.0.0');
    expect((await components.resolve('prompt://greet@production')).version).toBe('v1.0.0');
    expect(await components.undeploy('greet', 'production')).toEqual({ environment: 'production', undeployed: true });
    await expect(components.rollback('greet', { to: 'production' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(components.undeploy('greet', 'production')).rejects.toMatchObject({
      message: expect.stringContaining('environments with one: `staging`'),
    });
    await expect(components.rollback('greet', { to: 'staging' })).rejects.toMatchObject({ code: 'CONFLICT' });
  });

  it('a rollback goes back along the history, and never to a version that was rolled back', async () => {
    const { components, open } = await withGreet();
    const deploy = (version: string) => components.deploy('greet', { to: 'production', version });
    for (const version of ['v1.0.0', 'v1.2.0', 'v1.10.0']) await deploy(version);
    const [deployed] = await components.deployments('greet');
    expect([deployed?.previous, deployed?.earlier]).toEqual(['v1.2.0', ['v1.0.0']]);
    // Two people see the bad version, and both roll it back.
    const both = await Promise.allSettled(
      [components, open()].map((one) => one.rollback('greet', { to: 'production', from: 'v1.10.0' })),
    );
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await expect(components.rollback('greet', { to: 'production', from: 'v1.10.0' })).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('has not v1.10.0: it has v1.2.0 now'),
    });
    expect((await components.resolve('prompt://greet@production')).version).toBe('v1.2.0');
    expect((await components.rollback('greet', { to: 'production' })).version).toBe('v1.0.0');
    await expect(components.rollback('greet', { to: 'production' })).rejects.toMatchObject({ code: 'CONFLICT' });
    await deploy('v1.10.0');
    expect((await components.rollback('greet', { to: 'production' })).version).toBe('v1.0.0');
  });

  it('needs a version that exists, and an environment that does not look like one', async () => {
    const { components } = await withGreet();
    await expect(components.deploy('greet', { to: 'production', version: 'v9.0.0' })).rejects.toMatchObject({
      code: 'VERSION_NOT_FOUND',
      message: expect.stringContaining('versions: v1.10.0, v1.2.0, v1.0.0'),
    });
    for (const to of ['v1.0.0', '1.0', 'v1', 'a b', '../x', '-rf', 'x@{u}', 'a..b', 'x.lock', ''])
      await expect(components.deploy('greet', { to, version: 'v1.0.0' }), to).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
      });
    expect(await components.deployments('greet')).toEqual([]);
  });

  it('of two writers at once, one wins and the other is told what came first', async () => {
    const { open } = await withGreet();
    const results = await Promise.allSettled(
      ['v1.0.0', 'v1.2.0', 'v1.10.0'].map((version) =>
        open().deploy('greet', { to: 'production', version, actor: `for ${version}` }),
      ),
    );
    const won = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.version] : []));
    const lost = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.message] : []));
    expect([won.length, lost.length]).toEqual([1, 2]);
    for (const message of lost) expect(message).toContain(`it has ${won[0]} now, by for ${won[0]}`);
  });
});

describe('a reference', () => {
  it('to `latest` is the highest version, until an older one is deployed as latest, until there is a newer one', async () => {
    const { components, clock } = await withGreet();
    const latest = async () => [
      (await components.resolve('prompt://greet@latest')).version,
      (await components.get('greet')).latest,
    ];
    expect(await latest()).toEqual(['v1.10.0', 'v1.10.0']);
    await components.deploy('greet', { to: 'latest', version: 'v1.0.0' });
    expect(await latest()).toEqual(['v1.0.0', 'v1.0.0']);
    await clock.advance(1000);
    await components.createVersion('greet', { version: 'v1.11.0', content: 'x' });
    expect(await latest()).toEqual(['v1.11.0', 'v1.11.0']);
  });

  it('that leads to no version says which versions and environments there are', async () => {
    const { components } = await withGreet();
    await components.deploy('greet', { to: 'production', version: 'v1.0.0' });
    const refused = (reference: string, message: string, code = 'VERSION_NOT_FOUND') =>
      expect(components.resolve(reference), reference).rejects.toMatchObject({
        code,
        message: expect.stringContaining(message),
      });
    await refused('prompt://greet@canary', 'environments: production (v1.0.0)');
    await refused('prompt://greet@v1.0.1', 'versions: v1.10.0, v1.2.0, v1.0.0');
    await refused('prompt://nobody@latest', 'there is no component `nobody`');
    await refused('template://greet@latest', 'it is a prompt; write `prompt://greet@latest`');
    for (const odd of [
      'prompt://greet',
      'prompt://greet@',
      'prompt://greet@v1.0.0/..',
      'prompt://greet@a@b',
      'prompt://greet@-rf',
      'prompt://greet@HEAD~1',
      'prompt://greet@{u}',
      'prompt://../x@latest',
      'file://greet@latest',
    ])
      await refused(odd, 'must', 'INVALID_REQUEST');
  });

  it('counts at once in the process that deploys, and within a second in every other one', async () => {
    const { components, open, clock } = await withGreet();
    const other = open();
    await components.deploy('greet', { to: 'production', version: 'v1.0.0' });
    const seen = async (from = other) => (await from.resolve('prompt://greet@production')).version;
    expect(await seen()).toBe('v1.0.0');
    await components.deploy('greet', { to: 'production', version: 'v1.2.0' });
    expect(await seen(components)).toBe('v1.2.0');
    await clock.advance(1000);
    expect(await seen()).toBe('v1.2.0');
  });

  it('is read from the source at most twice a second, and its text once', async () => {
    const { storage, clock } = await withGreet();
    const reads: string[] = [];
    const read: typeof storage.documents.read = (kind, ...rest) => {
      reads.push(kind);
      return storage.documents.read(kind, ...rest);
    };
    const { components } = createOrchestrator({
      clock,
      logger: false,
      storage: { ...storage, documents: { ...storage.documents, read } },
    });
    for (let ms = 0; ms < 10_000; ms += 100) {
      await components.resolve('prompt://greet@latest');
      await clock.advance(100);
    }
    expect(reads.filter((kind) => kind === 'component').length).toBeLessThanOrEqual(21);
    expect(reads.filter((kind) => kind === 'component-text')).toHaveLength(1);
  });

  it('whose source is away has its last known version, with a warning, and never another one', async () => {
    const { storage, clock } = await withGreet();
    let isAway = false;
    const read: typeof storage.documents.read = (...asked) => {
      if (isAway) throw new Error('the disk is gone');
      return storage.documents.read(...asked);
    };
    const lines: string[] = [];
    const warn = (_about: unknown, message?: string) => void lines.push(String(message));
    const { components } = createOrchestrator({
      clock,
      logger: { debug() {}, info() {}, error() {}, warn },
      storage: { ...storage, documents: { ...storage.documents, read } },
    });
    await components.deploy('greet', { to: 'production', version: 'v1.0.0' });
    expect((await components.resolve('prompt://greet@production')).version).toBe('v1.0.0');
    isAway = true;
    await clock.advance(DAY);
    expect((await components.resolve('prompt://greet@production')).version).toBe('v1.0.0');
    expect(lines).toEqual(['a component can not be read; its last known versions are used']);
    await expect(components.resolve('prompt://greet@v1.2.0'), 'a text that was never read').rejects.toThrow(
      'the disk is gone',
    );
    await expect(components.resolve('prompt://other@latest')).rejects.toThrow('the disk is gone');
  });
});
