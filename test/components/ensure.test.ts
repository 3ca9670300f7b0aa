/** `components.ensure()`: the same call at each start of each process. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { gitComponents } from '../../src/entries/git.ts';
import { fakeModel, manualClock } from '../../src/entries/testing.ts';
import { createOrchestrator, memoryStorage, type OrchestratorOptions } from '../../src/index.ts';
import { fencedBlocks, ROOT } from '../docs/code-blocks.ts';
import { hasGit, newRepository } from './repositories.ts';

const greet = { name: 'greet', kind: 'prompt', content: 'Hello {{ who }}', to: 'production' } as const;

function setUp() {
  const options = { clock: manualClock(), storage: memoryStorage({ shared: true }), logger: false } as const;
  const open = () => createOrchestrator(options).components;
  return { open, components: open() };
}

describe('components.ensure', () => {
  it('registers, creates a version and deploys it once; the same call changes nothing', async () => {
    const { components, open } = setUp();
    const metadata = { model: 'small', tags: ['a'] };
    const given = [{ ...greet, metadata, to: ['production', 'staging'], actor: 'app' }];
    const made = { name: 'greet', version: 'v1.0.0', created: true, deployedTo: ['production', 'staging'] };
    expect(await components.ensure(given)).toEqual([made]);
    const state = async () => [
      await components.get('greet'),
      await components.versions('greet'),
      await components.deployments('greet'),
    ];
    const before = await state();
    expect(before).toMatchObject([{ metadata }, [{ by: 'app' }], [{ by: 'app' }, { by: 'app' }]]);
    const again = { ...made, created: false, deployedTo: [] };
    expect([await components.ensure(given), await open().ensure(given)]).toEqual([[again], [again]]);
    expect(await state()).toEqual(before);
  });

  it('a new text, and new metadata, are a new version, which is not deployed; the text of an older version is that version', async () => {
    const { components } = setUp();
    await components.ensure([greet]);
    const result = async (change: object) => {
      const [{ version, created, deployedTo } = {}] = await components.ensure([{ ...greet, ...change }]);
      return [version, created, deployedTo];
    };
    expect(await result({ content: 'Bye {{ who }}' })).toEqual(['v1.0.1', true, []]);
    expect(await result({ metadata: { model: 'large' } })).toEqual(['v1.0.2', true, []]);
    expect(await result({ content: 'Good day', version: 'v2.0.0' })).toEqual(['v2.0.0', true, []]);
    // Of two releases that run side by side, neither makes versions at each start.
    expect(await result({})).toEqual(['v1.0.0', false, []]);
    expect(await result({ content: 'Bye {{ who }}' })).toEqual(['v1.0.1', false, []]);
    expect(await result({ to: 'canary', content: 'Good day', version: 'v2.0.0' })).toEqual([
      'v2.0.0',
      false,
      ['canary'],
    ]);
    const deployed = (await components.deployments('greet')).map(({ environment, version }) => [environment, version]);
    expect(deployed).toEqual([
      ['canary', 'v2.0.0'],
      ['production', 'v1.0.0'],
    ]);
  });

  it('what somebody deployed or rolled back since then stays', async () => {
    const { components } = setUp();
    await components.ensure([greet]);
    await components.createVersion('greet', { version: 'v1.1.0', content: 'Hi' });
    await components.deploy('greet', { to: 'production', version: 'v1.1.0' });
    await components.ensure([greet]);
    expect((await components.deployments('greet'))[0]?.version).toBe('v1.1.0');
  });

  it('ten processes that start at once make one version and one deployment', async () => {
    const { open } = setUp();
    const results = await Promise.all(Array.from({ length: 10 }, () => open().ensure([greet])));
    expect(results.flat().filter(({ created }) => created)).toHaveLength(1);
    expect(results.flat().map(({ version }) => version)).toEqual(Array(10).fill('v1.0.0'));
    expect(await open().deployments('greet')).toMatchObject([{ version: 'v1.0.0' }]);
  });

  it.each<[unknown, string]>([
    [greet, 'takes a list of components'],
    [[{ ...greet, text: 'x' }], '`text` is not an option of this version'],
    [[greet, greet], 'has component `greet` twice'],
    [[{ ...greet, content: '' }], '`content` must be the text of the prompt'],
    [[{ ...greet, content: '{{ who' }], "`content` can't be read as a prompt"],
    [[{ ...greet, kind: 'config' }], 'component `greet` is a prompt, and not a config'],
    [[{ ...greet, version: 'v1.0.0', content: 'Bye' }], 'has v1.0.0 with another text or metadata'],
    [[{ ...greet, to: 'v1.0.0', content: 'Bye' }], 'environment'],
  ])('refuses %j', async (given, problem) => {
    const { components } = setUp();
    await components.ensure([greet]);
    const refused = Promise.resolve().then(() => components.ensure(given as never));
    await expect(refused).rejects.toThrow(problem);
  });

  it.runIf(hasGit)('works in a git repository', async () => {
    const folder = newRepository();
    const open = () => createOrchestrator({ components: gitComponents({ path: folder }), logger: false }).components;
    expect(await open().ensure([greet])).toMatchObject([
      { version: 'v1.0.0', created: true, deployedTo: ['production'] },
    ]);
    expect(await open().ensure([greet])).toMatchObject([{ version: 'v1.0.0', created: false, deployedTo: [] }]);
  });
});

it('the samples of docs/components.md with `ensure` run a second time on the same storage', async () => {
  const page = fencedBlocks('docs/components.md', readFileSync(join(ROOT, 'docs/components.md'), 'utf8'));
  const samples = page.filter(({ code }) => code.includes('components.ensure('));
  expect(samples.length).toBeGreaterThan(1);
  for (const { code } of samples) {
    const storage = memoryStorage({ shared: true });
    const create = (options: OrchestratorOptions) => createOrchestrator({ ...options, storage, logger: false });
    const body = ts.transpile(code.replaceAll(/^import .*$/gm, ''), { target: ts.ScriptTarget.ESNext });
    const AsyncFunction = (async () => {}).constructor as new (
      ...names: string[]
    ) => (...given: unknown[]) => Promise<void>;
    const run = new AsyncFunction('createOrchestrator', 'fakeModel', 'console', body);
    for (let time = 0; time < 2; time += 1) await run(create, fakeModel, { log() {} });
  }
});
