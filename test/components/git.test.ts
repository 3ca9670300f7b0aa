/** Components in a git repository: the command `git` reads what the library writes, and the other way round. */

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { gitComponents } from '../../src/entries/git.ts';
import { manualClock } from '../../src/entries/testing.ts';
import { createOrchestrator } from '../../src/index.ts';
import { commitFiles, git, hasGit, newRepository, writeFiles } from './repositories.ts';

const COMPONENTS = `# Who greets whom.
greet:
  kind: prompt
  file: prompts/greet.md
  metadata: { model: small, variables: [name] }
`;
const FILES = { 'components.yaml': COMPONENTS, 'prompts/greet.md': 'Greet {{ name }}.\n' };

function open(path: string) {
  const clock = manualClock();
  const warnings: string[] = [];
  const silent = () => undefined;
  const warn = (_fields: object, text?: string) => void warnings.push(text ?? '');
  const logger = { debug: silent, info: silent, error: silent, warn };
  const { components } = createOrchestrator({ components: gitComponents({ path }), clock, logger });
  return { components, clock, warnings };
}

/** A repository whose project has one component, committed. */
function newProject() {
  const folder = newRepository();
  commitFiles(folder, FILES);
  return folder;
}

const nextText = (folder: string, text: string) => commitFiles(folder, { 'prompts/greet.md': text });

describe.skipIf(!hasGit)('components in a git repository', () => {
  it('versions and deployments are tags that `git` reads: text, message, who and when', async () => {
    const folder = newProject();
    const { components, clock } = open(folder);
    const content = 'Greet {{ name }}.\n';
    await components.createVersion('greet', { version: 'v1.0.0', content, message: 'the first', actor: 'grace' });
    await components.createVersion('greet', { version: 'v1.1.0', content: 'Hi {{ name }}.' });
    await components.deploy('greet', { to: 'production', version: 'v1.0.0', actor: 'grace' });
    await components.deploy('greet', { to: 'production', version: 'v1.1.0', actor: 'grace', message: 'shorter' });
    expect(git(folder, 'tag', '-l').split('\n').filter(Boolean)).toEqual([
      'components/greet/production',
      'components/greet/v1.0.0',
      'components/greet/v1.1.0',
    ]);
    expect(git(folder, 'show', 'components/greet/v1.1.0:prompts/greet.md')).toBe('Hi {{ name }}.');
    expect(git(folder, 'for-each-ref', '--format=%(taggername) %(subject)', 'refs/tags/components/greet/v1.0.0')).toBe(
      'grace the first\n',
    );
    expect(git(folder, 'cat-file', 'tag', 'components/greet/production')).toMatch(
      new RegExp(
        `\n\nshorter\n\nversion: v1\\.1\\.0\ndeployedAt: ${new Date(clock.now()).toISOString()}\nby: grace\nprevious: v1\\.0\\.0\n$`,
      ),
    );
    expect(git(folder, 'fsck', '--strict', '--no-dangling')).toBe('');
  });

  it('a version whose text `HEAD` has points at `HEAD`; another one leaves branch, index and files alone', async () => {
    const folder = newProject();
    const { components } = open(folder);
    await components.createVersion('greet', { version: 'v1.0.0', content: 'Greet {{ name }}.\n' });
    await components.createVersion('greet', { version: 'v1.1.0', content: 'Hi {{ name }}.' });
    const [head] = git(folder, 'rev-parse', 'HEAD').split('\n');
    expect(git(folder, 'rev-parse', 'components/greet/v1.0.0^{commit}', 'components/greet/v1.1.0~1')).toBe(
      `${head}\n${head}\n`,
    );
    expect(git(folder, 'status', '--porcelain')).toBe('');
    expect(git(folder, 'diff', '--stat', 'HEAD', 'components/greet/v1.1.0')).toContain('1 file changed');
  });

  it('tags of `git` are versions and deployments: light, annotated, and moved', async () => {
    const folder = newProject();
    git(folder, 'tag', 'components/greet/v1.0.0');
    nextText(folder, 'Hi {{ name }}.\n');
    git(folder, 'tag', '-a', '-m', 'shorter', 'components/greet/v1.1.0');
    git(folder, 'tag', 'components/greet/staging', 'components/greet/v1.1.0');
    git(folder, 'tag', '-a', '-m', 'go', 'components/greet/production', 'components/greet/v1.0.0');
    const { components, clock } = open(folder);
    expect(await components.versions('greet')).toMatchObject([
      { version: 'v1.1.0', message: 'shorter', by: 'ada' },
      { version: 'v1.0.0' },
    ]);
    expect(await components.deployments('greet')).toMatchObject([
      { environment: 'production', version: 'v1.0.0', message: 'go', by: 'ada' },
      { environment: 'staging', version: 'v1.1.0' },
    ]);
    expect(await components.resolve('prompt://greet@production')).toMatchObject({
      version: 'v1.0.0',
      content: 'Greet {{ name }}.\n',
      metadata: { model: 'small', variables: ['name'] },
    });
    git(folder, 'tag', '-f', '-a', '-m', 'on', 'components/greet/production', 'components/greet/v1.1.0');
    await clock.advance(500);
    expect((await components.resolve('prompt://greet@production')).version).toBe('v1.1.0');
    git(folder, 'tag', '-d', 'components/greet/production');
    await clock.advance(500);
    await expect(components.resolve('prompt://greet@production')).rejects.toMatchObject({ code: 'VERSION_NOT_FOUND' });
  });

  it('after `git gc` everything is read, moved, undeployed and added as before', async () => {
    const folder = newProject();
    const { components, clock } = open(folder);
    for (const n of [0, 1, 2])
      await components.createVersion('greet', { version: `v1.${n}.0`, content: `Hi ${n} {{ name }}` });
    await components.deploy('greet', { to: 'production', version: 'v1.0.0' });
    await components.deploy('greet', { to: 'canary', version: 'v1.2.0' });
    git(folder, 'gc', '-q', '--prune=now');
    expect(readFileSync(join(folder, '.git/packed-refs'), 'utf8')).toContain('refs/tags/components/greet/canary');
    const packed = open(folder).components;
    expect((await packed.resolve('prompt://greet@production')).content).toBe('Hi 0 {{ name }}');
    await packed.deploy('greet', { to: 'production', version: 'v1.1.0' });
    await packed.undeploy('greet', 'canary');
    await packed.createVersion('greet', { version: 'v2.0.0', content: 'Hello {{ name }}' });
    await clock.advance(500);
    expect((await components.resolve('prompt://greet@production')).version).toBe('v1.1.0');
    expect((await components.deployments('greet')).map(({ environment }) => environment)).toEqual(['production']);
    expect(git(folder, 'tag', '-l', 'components/greet/canary')).toBe('');
    expect(git(folder, 'fsck', '--strict', '--no-dangling')).toBe('');
  });

  it('a project in a subfolder, its worktree, and a bare clone have the same versions', async () => {
    const folder = newRepository();
    commitFiles(folder, { 'app/components.yaml': COMPONENTS, 'app/prompts/greet.md': 'Greet {{ name }}.\n' });
    const { components } = open(join(folder, 'app'));
    await components.createVersion('greet', { version: 'v1.0.0', content: 'Greet {{ name }}.\n' });
    await components.createVersion('greet', { version: 'v1.1.0', content: 'Hi {{ name }}.' });
    const tree = join(newRepository(), 'tree');
    git(folder, 'worktree', 'add', '-q', tree);
    const other = open(join(tree, 'app')).components;
    expect((await other.resolve('prompt://greet@latest')).content).toBe('Hi {{ name }}.');
    await other.deploy('greet', { to: 'production', version: 'v1.0.0' });
    expect((await components.resolve('prompt://greet@production')).version).toBe('v1.0.0');
  });

  it('registers in components.yaml of the checkout, with its comments', async () => {
    const folder = newProject();
    const { components } = open(folder);
    await components.register({ name: 'mail', kind: 'template', file: 'templates/mail.html' });
    expect(readFileSync(join(folder, 'components.yaml'), 'utf8')).toBe(
      `${COMPONENTS}mail:\n  kind: template\n  file: templates/mail.html\n`,
    );
    await expect(components.register({ name: 'greet', kind: 'prompt' })).rejects.toMatchObject({ code: 'CONFLICT' });
  });

  it('a component that left components.yaml keeps its versions', async () => {
    const folder = newProject();
    git(folder, 'tag', 'components/greet/v1.0.0');
    commitFiles(folder, { 'components.yaml': '{}\n' });
    const { components } = open(folder);
    expect((await components.resolve('prompt://greet@v1.0.0')).content).toBe('Greet {{ name }}.\n');
    expect((await components.list()).components).toEqual([]);
    const more = components.createVersion('greet', { version: 'v1.1.0', content: 'Hello' });
    await expect(more).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining('components.yaml of the checkout has no entry `greet`'),
    });
  });

  it.each([
    ['the folder', (folder: string) => renameSync(folder, `${folder}-away`)],
    ['its .git', (folder: string) => renameSync(join(folder, '.git'), join(folder, 'away'))],
    ['its refs', (folder: string) => renameSync(join(folder, '.git/refs'), join(folder, '.git/away'))],
    ['what a tag names', (folder: string) => writeFiles(folder, { '.git/refs/tags/components/greet/v1.0.0': '' })],
  ])('while %s is away, the last known version serves, with a warning', async (_title, takeAway) => {
    const folder = newProject();
    git(folder, 'tag', 'components/greet/v1.0.0');
    git(folder, 'pack-refs', '--all');
    const { components, clock, warnings } = open(folder);
    await components.resolve('prompt://greet@v1.0.0');
    takeAway(folder);
    await clock.advance(500);
    expect((await components.resolve('prompt://greet@v1.0.0')).content).toBe('Greet {{ name }}.\n');
    expect(warnings).toEqual(['a component can not be read; its last known versions are used']);
  });

  it('a tag of a version tag is that version, also where another version has its commit', async () => {
    const folder = newProject();
    for (const version of ['v1.0.0', 'v1.1.0', 'v1.2.0'])
      git(folder, 'tag', '-a', '-m', 'x', `components/greet/${version}`);
    git(folder, 'tag', '-a', '-m', 'deploy', 'components/greet/production', 'components/greet/v1.1.0');
    git(folder, 'tag', 'components/greet/staging', 'components/greet/v1.0.0');
    const { components } = open(folder);
    expect((await components.resolve('prompt://greet@production')).version).toBe('v1.1.0');
    expect((await components.resolve('prompt://greet@staging')).version).toBe('v1.0.0');
  });

  it.each([
    ['a sum of 99', 'split: {"v1.0.0":50,"v1.1.0":49}'],
    ['shares as text', 'split: {"v1.0.0":"50","v1.1.0":"50"}'],
    ['an unknown version', 'split: {"v1.0.0":50,"v9.0.0":50}'],
    ['no JSON', 'split: {v1.0.0'],
    [
      'a rollout without a guard',
      'split: {"v1.0.0":50,"v1.1.0":50}\nrollout: {"version":"v1.1.0","guard":"x","steps":[50,100],"step":0,"everyMs":1}',
    ],
    ['a rollout of a wrong form', 'split: {"v1.0.0":50,"v1.1.0":50}\nrollout: {"version":5,"steps":"x"}'],
  ])('a deployment whose message has %s leads to no version, and the others are as before', async (_title, lines) => {
    const folder = newProject();
    git(folder, 'tag', '-a', '-m', 'x', 'components/greet/v1.0.0');
    nextText(folder, 'Hi {{ name }}.\n');
    git(folder, 'tag', '-a', '-m', 'x', 'components/greet/v1.1.0');
    const message = `m\n\nversion: v1.0.0\n${lines}`;
    git(folder, 'tag', '-a', '-m', message, 'components/greet/production', 'components/greet/v1.0.0^{}');
    git(folder, 'tag', 'components/greet/staging', 'components/greet/v1.1.0');
    const { components } = open(folder);
    await expect(components.resolve('prompt://greet@production', { key: 'x' })).rejects.toMatchObject({
      code: 'VERSION_NOT_FOUND',
    });
    expect((await components.resolve('prompt://greet@staging')).version).toBe('v1.1.0');
  });

  it('a version that `git` tagged and whose text is wrong is not deployed', async () => {
    const folder = newProject();
    nextText(folder, 'hi {{ name');
    git(folder, 'tag', 'components/greet/v1.0.0');
    await expect(
      open(folder).components.deploy('greet', { to: 'production', version: 'v1.0.0' }),
    ).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining("greet v1.0.0 can't be deployed: `content` can't be read as a prompt"),
    });
  });

  it('a message with a line like the begin of a signature is kept, with what the deployment was before', async () => {
    const folder = newProject();
    const { components } = open(folder);
    for (const n of [0, 1]) await components.createVersion('greet', { version: `v1.${n}.0`, content: `Hi ${n}` });
    await components.deploy('greet', { to: 'production', version: 'v1.0.0' });
    const message =
      'as in\n-----BEGIN PGP SIGNATURE-----\nand\n- -----BEGIN SSH SIGNATURE-----\n-----END PGP SIGNATURE-----';
    await components.deploy('greet', { to: 'production', version: 'v1.1.0', message });
    const read = open(folder).components;
    expect(await read.deployments('greet')).toMatchObject([{ version: 'v1.1.0', message, previous: 'v1.0.0' }]);
    expect((await read.rollback('greet', { to: 'production' })).version).toBe('v1.0.0');
  });

  it.each(['.git/config', 'prompts/.GIT/x.md', '.git. /x', 'git~1/config'])(
    'the file %s, which is inside of `.git`, is refused when the component is registered',
    async (file) => {
      const { components } = open(newProject());
      await expect(components.register({ name: 'other', kind: 'prompt', file })).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        message: expect.stringContaining('not inside of `.git`'),
      });
    },
  );

  it('an object that is damaged is named by what to do, without the words of the package', async () => {
    const folder = newProject();
    git(folder, 'tag', 'components/greet/v1.0.0');
    const blob = git(folder, 'rev-parse', 'HEAD:prompts/greet.md').trim();
    const path = join(folder, '.git/objects', blob.slice(0, 2), blob.slice(2));
    rmSync(path, { force: true });
    writeFileSync(path, 'damaged');
    await expect(open(folder).components.resolve('prompt://greet@v1.0.0')).rejects.toMatchObject({
      code: 'INTERNAL',
      message: expect.stringMatching(/\.git can't be read or written \(\w+\); `git fsck` checks it$/),
    });
  });

  it('of ten writers that move one tag at once, one does, and the tag is whole', async () => {
    const folder = newProject();
    git(folder, 'tag', 'components/greet/v1.0.0');
    const moved = await Promise.allSettled(
      Array.from({ length: 10 }, (_, n) =>
        open(folder).components.deploy('greet', { to: 'production', version: 'v1.0.0', actor: `writer ${n}` }),
      ),
    );
    expect(moved.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(git(folder, 'fsck', '--strict', '--no-dangling')).toBe('');
  });
});

describe.skipIf(!hasGit)('the lock of a tag', () => {
  const LOCK = '.git/refs/tags/components/greet/production.lock';
  const now = () => Date.now();
  const gone = () => spawnSync(process.execPath, ['-e', '0']).pid;

  it.each<[string, () => object]>([
    ['a process of this machine that was killed', () => ({ process: gone(), host: hostname(), at: now() })],
    ['another machine, a minute ago', () => ({ process: 1, host: 'elsewhere', at: now() - 61_000 })],
    ['a process that had the same number', () => ({ process: process.pid, host: hostname(), at: now() - 86_400_000 })],
  ])('of %s is taken over', async (_title, lock) => {
    const folder = newProject();
    git(folder, 'tag', 'components/greet/v1.0.0');
    writeFiles(folder, { [LOCK]: JSON.stringify(lock()) });
    const { components } = open(folder);
    await components.deploy('greet', { to: 'production', version: 'v1.0.0' });
    expect(readdirSync(join(folder, '.git/refs/tags/components/greet')).sort()).toEqual(['production', 'v1.0.0']);
    expect(git(folder, 'fsck', '--strict', '--no-dangling')).toBe('');
  });

  it.each<[string, () => object]>([
    ['a process that lives', () => ({ process: process.ppid, host: hostname(), at: now() })],
    ['another machine, a second ago', () => ({ process: 1, host: 'elsewhere', at: now() - 1_000 })],
  ])('of %s is waited for', async (_title, lock) => {
    const folder = newProject();
    git(folder, 'tag', 'components/greet/v1.0.0');
    writeFiles(folder, { [LOCK]: JSON.stringify(lock()) });
    const deployed = open(folder).components.deploy('greet', { to: 'production', version: 'v1.0.0' });
    await expect(deployed).rejects.toMatchObject({ code: 'CONFLICT', retryable: true });
  });
});

describe.skipIf(!hasGit)('a repository that can not be used is refused with what is wrong', () => {
  const resolve = (folder: string, reference = 'prompt://greet@v1.0.0') => open(folder).components.resolve(reference);

  it.each([
    [
      'a link',
      (folder: string) => symlinkSync('/etc/passwd', join(folder, 'prompts/link.md')),
      'prompts/link.md',
      'is not a file',
    ],
    ['no such file', () => {}, 'prompts/none.md', 'there is no file `prompts/none.md`'],
    [
      'bytes',
      (folder: string) => writeFileSync(join(folder, 'bytes'), Buffer.from([0xff, 0])),
      'bytes',
      'not text in UTF-8',
    ],
    [
      'a huge file',
      (folder: string) => writeFiles(folder, { huge: 'x'.repeat(1_048_577) }),
      'huge',
      'more than 1048576',
    ],
    [
      'larger than what is read of any file',
      (folder: string) => writeFiles(folder, { larger: 'x'.repeat(4_194_305) }),
      'larger',
      'has 4194305 bytes, and at most 4194304 are read',
    ],
    ['a path out of the project', () => {}, '../x.md', '`greet`: `file` must be a path inside the project'],
  ])('a version whose file is %s', async (_title, prepare, file, message) => {
    const folder = newRepository();
    writeFiles(folder, { ...FILES, 'components.yaml': `greet: { kind: prompt, file: ${file} }\n` });
    prepare(folder);
    commitFiles(folder, {});
    git(folder, 'tag', 'components/greet/v1.0.0');
    await expect(resolve(folder)).rejects.toThrow(message);
  });

  it.each([
    ['- greet', 'must have the names of components'],
    ['greet: { kind: promt }', 'components.yaml: `greet`: `kind` must be'],
    ['greet: { kind: prompt, metadata: { modle: x } }', 'did you mean `model`?'],
    ['greet: { kind: prompt', "components.yaml can't be read"],
    ['greet: prompt', '`greet`: must have `kind` and `file`'],
    [
      `a: &a [x, x]\n${'b: &b [*a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b]\nd: [*c, *c, *c, *c, *c, *c]'}`,
      "components.yaml can't be read",
    ],
  ])('components.yaml that is %s', async (text, message) => {
    const folder = newRepository();
    writeFiles(folder, { 'components.yaml': text });
    await expect(open(folder).components.get('greet')).rejects.toThrow(message);
  });

  it('a folder that is in no repository, one that is not there, one with another form of refs, and one that borrows', async () => {
    await expect(resolve('/nowhere')).rejects.toThrow('there is no folder /nowhere');
    await expect(resolve('/')).rejects.toThrow('/ is not in a git repository; run `git init` there');
    const folder = newRepository();
    git(folder, 'config', 'extensions.refstorage', 'reftable');
    await expect(resolve(folder)).rejects.toThrow('refstorage = reftable');
    const project = newProject();
    git(folder, 'clone', '-q', '--shared', project, 'borrows');
    await expect(resolve(join(folder, 'borrows'))).rejects.toThrow('borrows objects from another repository');
  });

  it('a tag that a killed command `git` holds', async () => {
    const folder = newProject();
    git(folder, 'tag', 'components/greet/v1.0.0');
    writeFiles(folder, { '.git/refs/tags/components/greet/production.lock': '' });
    await expect(open(folder).components.deploy('greet', { to: 'production', version: 'v1.0.0' })).rejects.toThrow(
      /production\.lock exists: another process uses the repository, or one was killed; then remove the file$/,
    );
  });

  it.each([
    'prompt://greet@HEAD~1',
    'prompt://greet@{u}',
    'prompt://greet@-rf',
    'prompt://greet@v1.0.0/../..',
    'prompt://../x@v1.0.0',
    'prompt://greet@a@b',
    'prompt://greet@',
  ])('the reference %s', async (reference) => {
    await expect(resolve(newProject(), reference)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });
});
