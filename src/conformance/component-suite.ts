/** The conformance suite of the component source port: the rules that every `ComponentSource` must follow. */

import type { ComponentContent, ComponentVersion, Deployment } from '../engine/component/component.ts';
import type { ComponentSource, Registration, StoredComponent } from '../engine/component/component-source.port.ts';
import type { MaybePromise } from '../engine/operation/operation.port.ts';
import { type DeclareCase, declareCases, declareOnPart } from './declare-cases.ts';
import type { SuiteRunner } from './http-suite.ts';
import { same } from './storage-suite/context.ts';

/** The holder of the source under test. */
export interface ComponentSourceHolder {
  readonly components: ComponentSource;
  close?(): MaybePromise<void>;
}

export interface ComponentSuiteOptions {
  readonly name: string;
  /** Opens a new, empty source. The suite calls it once per test, and closes it after the test. */
  readonly create: () => MaybePromise<ComponentSourceHolder>;
  /** Opens another handle on the data of the source that `create` opened last: another process. */
  readonly reopen: () => MaybePromise<ComponentSourceHolder>;
  /** Whether the source keeps when a component was registered and changed. Default: true. */
  readonly keepsTimes?: boolean | undefined;
  readonly test: SuiteRunner;
}

/**
 * Declares the suite's tests: one for each rule of the `ComponentSource` port.
 *
 * @param options - see {@link ComponentSuiteOptions}
 */
export function componentSuite(options: ComponentSuiteOptions): void {
  const it = declareOnPart(declareCases(options), ({ components }) => components);
  options.test.describe(`${options.name} as a ComponentSource`, () => {
    registrationCases(it, options.keepsTimes ?? true);
    versionCases(it);
    deploymentCases(it);
    raceCases(it);
  });
}

/** Seconds, because a source may keep no smaller part of an instant. */
const T0 = Date.UTC(2026, 0, 1);
const GREET: Registration = {
  name: 'greet',
  kind: 'prompt',
  file: 'prompts/greet.md',
  metadata: {
    description: 'Greets „a person“.',
    model: 'small',
    temperature: 0.5,
    variables: ['name'],
    tags: ['a', 'b'],
  },
};
const V1: ComponentVersion = {
  version: 'v1.0.0',
  createdAt: T0 + 1000,
  message: 'the first\n\nwith a line',
  by: 'ada',
};
const V2: ComponentVersion = { version: 'v1.10.0', createdAt: T0 + 2000 };
const TEXT: ComponentContent = { kind: 'prompt', content: 'Hello {{ name }} żółw 👋\n\n', metadata: GREET.metadata };

const deployed = (fields: Partial<Deployment> = {}): Deployment => ({
  environment: 'production',
  version: 'v1.0.0',
  deployedAt: T0 + 3000,
  ...fields,
});

async function withVersions(source: ComponentSource): Promise<void> {
  await source.register(GREET, undefined, T0);
  await source.addVersion('greet', V1, TEXT);
  await source.addVersion('greet', V2, { ...TEXT, content: 'Hi {{ name }}' });
}

const byVersion = (component: StoredComponent | undefined) =>
  [...(component?.versions ?? [])].sort((a, b) => a.createdAt - b.createdAt);

function registrationCases(it: DeclareCase<ComponentSource>, keepsTimes: boolean): void {
  const times = (createdAt: number, updatedAt: number) => (keepsTimes ? { createdAt, updatedAt } : {});

  it('register: a component is stored once, and another handle reads it', async (source, reopen) => {
    const made = await source.register(GREET, undefined, T0);
    const { tag = '', ...shown } = made ?? {};
    same(tag !== '', true, 'has a tag');
    same(shown, { ...GREET, ...times(T0, T0), versions: [], deployments: [] }, 'what is registered');
    same(await source.register(GREET, undefined, T0 + 5000), undefined, 'a second registration');
    const next = await reopen();
    same(await next.read('greet'), made, 'what another handle reads');
    same(await next.read('other'), undefined, 'an unknown component');
  });

  it('register: a change replaces file and metadata, keeps the rest, and needs the tag that was read', async (source) => {
    await withVersions(source);
    const before = await source.read('greet');
    const change: Registration = { name: 'greet', kind: 'prompt', metadata: { owner: 'ops' } };
    same(await source.register(change, 'another tag', T0 + 5000), undefined, 'with another tag');
    same(await source.read('greet'), before, 'after a refused change');
    const made = await source.register(change, before?.tag, T0 + 5000);
    const { tag: _tag, versions: _versions, deployments: _deployments, ...shown } = made ?? {};
    same(shown, { ...change, ...times(T0, T0 + 5000) }, 'changed');
    same(made?.tag === before?.tag, false, 'the tag is the same');
    same(byVersion(made), [V1, V2], 'its versions');
    same((await source.content('greet', 'v1.0.0'))?.metadata, GREET.metadata, 'a version keeps its metadata');
  });

  it('list: components in the order of their names, page by page', async (source) => {
    for (const name of ['c', 'a', 'b']) await source.register({ name, kind: 'query', metadata: {} }, undefined, T0);
    const names = async (page: { limit: number; after?: string }) => (await source.list(page)).map(({ name }) => name);
    same(await names({ limit: 2 }), ['a', 'b'], 'the first page');
    same(await names({ limit: 2, after: 'b' }), ['c'], 'the second page');
  });
}

function versionCases(it: DeclareCase<ComponentSource>): void {
  it('addVersion: a version and its text are read as they were stored, also by another handle', async (source, reopen) => {
    await withVersions(source);
    const next = await reopen();
    same(byVersion(await next.read('greet')), [V1, V2], 'the versions');
    same(await next.content('greet', 'v1.0.0'), TEXT, 'the text');
    same((await next.content('greet', 'v1.10.0'))?.content, 'Hi {{ name }}', 'the other text');
    same(await next.content('greet', 'v1.0.1'), undefined, 'the text of an unknown version');
    same(await next.content('other', 'v1.0.0'), undefined, 'the text of an unknown component');
  });

  it('addVersion: a version never changes, and needs its component', async (source) => {
    await withVersions(source);
    same(await source.addVersion('greet', V1, { ...TEXT, content: 'other' }), false, 'the same version again');
    same((await source.content('greet', 'v1.0.0'))?.content, TEXT.content, 'its text');
    same(await source.addVersion('other', V1, TEXT), false, 'of an unknown component');
  });

  it('addVersion: a text of 1 MiB', async (source) => {
    await source.register(GREET, undefined, T0);
    const content = 'ä'.repeat(524_288);
    same(await source.addVersion('greet', V1, { ...TEXT, content }), true, 'is stored');
    same((await source.content('greet', 'v1.0.0'))?.content === content, true, 'is read');
  });
}

function deploymentCases(it: DeclareCase<ComponentSource>): void {
  it('move: an environment gets a version, another one, and none', async (source, reopen) => {
    await withVersions(source);
    const first = deployed({ by: 'ada', message: 'go' });
    const second = deployed({ version: 'v1.10.0', deployedAt: T0 + 4000, previous: 'v1.0.0' });
    const move = (expected: Deployment | undefined, deployment: Deployment | undefined) =>
      source.move('greet', { environment: 'production', expected, deployment });
    same(await move(undefined, first), true, 'the first');
    same((await source.read('greet'))?.deployments, [first], 'after the first');
    same(await move(first, second), true, 'the second');
    const next = await reopen();
    same((await next.read('greet'))?.deployments, [second], 'after the second');
    same(
      await next.move('greet', {
        environment: 'latest',
        expected: undefined,
        deployment: deployed({ environment: 'latest' }),
      }),
      true,
      'latest',
    );
    same(
      await next.move('greet', { environment: 'production', expected: second, deployment: undefined }),
      true,
      'none',
    );
    same(
      (await next.read('greet'))?.deployments.map(({ environment }) => environment),
      ['latest'],
      'what is left',
    );
  });

  it('move: a deployment of several versions keeps their shares, its expression and its rollout', async (source, reopen) => {
    await withVersions(source);
    const deployment = deployed({
      ...{ split: { 'v1.0.0': 99.5, 'v1.10.0': 0.5 }, splitBy: '${input.user}', previous: 'v1.0.0', message: 'a: b' },
      rollout: { version: 'v1.10.0', guard: 'failureRate < 2%', steps: [0.5, 100], step: 0, everyMs: 60_000 },
    });
    const change = { environment: 'production', expected: undefined, deployment };
    same(await source.move('greet', change), true, 'the split');
    const next = await reopen();
    same((await next.read('greet'))?.deployments, [deployment], 'what another handle reads');
    const whole = deployed({ version: 'v1.10.0', deployedAt: T0 + 4000, previous: 'v1.0.0' });
    same(
      await next.move('greet', { environment: 'production', expected: deployment, deployment: whole }),
      true,
      'one version',
    );
    same((await next.read('greet'))?.deployments, [whole], 'after it');
  });

  it('move: refused when the deployment is not what the caller has read, and for an unknown version', async (source) => {
    await withVersions(source);
    const move = (expected: Deployment | undefined, deployment: Deployment) =>
      source.move('greet', { environment: 'production', expected, deployment });
    same(await move(undefined, deployed({ version: 'v9.0.0' })), false, 'an unknown version');
    same(await move(deployed(), deployed({ version: 'v1.10.0' })), false, 'expected one, and there is none');
    same(await move(undefined, deployed()), true, 'the first');
    same(await move(undefined, deployed({ version: 'v1.10.0' })), false, 'expected none, and there is one');
    same(
      await source.move('other', { environment: 'production', expected: undefined, deployment: deployed() }),
      false,
      'an unknown component',
    );
    same((await source.read('greet'))?.deployments, [deployed()], 'what is deployed');
  });

  it('move: environments of every allowed form', async (source) => {
    await withVersions(source);
    const names = ['eu-west.1', 'Production', 'production', 'a', 'blue_2', 'latest'];
    for (const environment of names)
      same(
        await source.move('greet', { environment, expected: undefined, deployment: deployed({ environment }) }),
        true,
        environment,
      );
    const found = (await source.read('greet'))?.deployments.map(({ environment }) => environment);
    same([...(found ?? [])].sort(), [...names].sort(), 'the environments');
  });
}

function raceCases(it: DeclareCase<ComponentSource>): void {
  const many = (count: number, make: (n: number) => MaybePromise<unknown>) =>
    Promise.all(Array.from({ length: count }, async (_, n) => make(n)));

  it('of many changes at once of one environment, one is made', async (source) => {
    await withVersions(source);
    const made = await many(10, (n) =>
      source.move('greet', {
        environment: 'production',
        expected: undefined,
        deployment: deployed({ by: `writer ${n}` }),
      }),
    );
    same(made.filter(Boolean).length, 1, 'changes that were made');
  });

  it('many versions, and deployments of many environments at once, are all stored', async (source) => {
    await withVersions(source);
    const added = await many(10, (n) =>
      source.addVersion('greet', { version: `v2.${n}.0`, createdAt: T0 + 5000 }, { ...TEXT, content: `text ${n}` }),
    );
    same(added, Array(10).fill(true), 'versions');
    const moved = await many(10, (n) => {
      const deployment = deployed({ environment: `e${n}`, version: `v2.${n}.0` });
      return source.move('greet', { environment: `e${n}`, expected: undefined, deployment });
    });
    same(moved, Array(10).fill(true), 'deployments');
    for (let n = 0; n < 10; n++) same((await source.content('greet', `v2.${n}.0`))?.content, `text ${n}`, 'a text');
    const { versions = [], deployments = [] } = (await source.read('greet')) ?? {};
    same([versions.length, deployments.length], [12, 10], 'stored');
  });

  it('of many versions with one number at once, one is stored, with its own text', async (source) => {
    await withVersions(source);
    const added = await many(10, (n) =>
      source.addVersion(
        'greet',
        { version: 'v3.0.0', createdAt: T0 + 5000, by: `writer ${n}` },
        { ...TEXT, content: `text ${n}` },
      ),
    );
    same(added.filter(Boolean).length, 1, 'versions that were stored');
    const { by } = (await source.read('greet'))?.versions.find(({ version }) => version === 'v3.0.0') ?? {};
    same((await source.content('greet', 'v3.0.0'))?.content, `text ${by?.split(' ')[1]}`, 'its text');
  });
}
