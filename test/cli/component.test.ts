/** `ensemble component`: the same words work on the repository of a project, on its store, and on a running server. */

import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { git, hasGit, writeFiles } from '../components/repositories.ts';
import { type CliOptions, ensureBuilt, makeFolder } from './cli-process.ts';
import { ensemble } from './in-process.ts';
import { serveProject } from './served-project.ts';

beforeAll(ensureBuilt, 60_000);

const PROJECT = {
  'ensembles/welcome.yaml': `name: welcome
flow:
  - { agent: hello, operation: code, input: { name: Ada }, config: { script: echo, text: "prompt://greet@production" } }
outputs: { text: "\${hello.output}" }
`,
  'scripts/echo.mjs': 'export default ({ config }) => config.text;\n',
  'prompts/greet.md': 'Greet {{ name }}.\n',
};

/** Runs commands in a folder, each with the options of the place. */
function commands(cwd: string, place: readonly string[] = [], options: CliOptions = {}) {
  const run = (...args: string[]) => ensemble([...args, ...place], { cwd, ...options });
  return (line: string, ...more: string[]) => run('component', ...line.split(' '), ...more);
}

function newRepository() {
  const cwd = makeFolder({ ...PROJECT, '.gitignore': 'node_modules\n.ensemble\n' });
  git(cwd, 'init', '-q', '-b', 'main');
  return cwd;
}

const commit = (cwd: string) => {
  git(cwd, 'add', '.');
  git(cwd, 'commit', '-q', '-m', 'components');
};

/** What stays the same in every place: no instants, and not who did it. */
const shape = (text: string) => text.replace(/(?:\d+[smh] ago|now)\s+\S+/g, 'WHEN WHO').replace(/ {2,}/g, '  ');

/** Two versions, deployed one after the other and rolled back. `save` makes a change of the file known. */
async function lifeOf(component: ReturnType<typeof commands>, cwd: string, save: () => void) {
  const said: string[] = [];
  const note = async (line: string, ...more: string[]) => {
    const { code, stdout, stderr } = await component(line, ...more);
    said.push(`> ${line} (${code})\n${shape(stdout)}${shape(stderr)}`);
  };
  await note('add greet prompts/greet.md', '--metadata', '{"variables": ["name"]}');
  save();
  await note('tag greet v1.0.0', '-m', 'the first');
  writeFiles(cwd, { 'prompts/greet.md': 'Greet {{ name }} in one line.\n' });
  save();
  await note('tag greet v1.1.0');
  await note('deploy greet v1.0.0 --to production');
  await note('deploy greet v1.1.0 --to production', '-m', 'shorter');
  await note('status greet');
  await note('tags greet');
  await note('show greet@production');
  await note('diff greet v1.0.0 production');
  await note('rollback greet --to production');
  await note('show greet@production');
  await note('deploy greet --to production --split v1.0.0=75,v1.1.0=25', '--by', '${input.user}');
  await note('show greet@production --key ada');
  await note('show greet@production');
  await note('rollback greet --to production');
  await note('deploy greet v1.1.0 --to production --steps 5,100 --every 1h', '--guard', 'failureRate < 2%');
  await note('status greet');
  await note('undeploy greet --from production');
  await note('tag greet v1.1.0');
  await note('tag greet 1.2');
  await note('deploy greet v9.0.0 --to production');
  await note('show greet@production');
  await note('add greet prompts/greet.md');
  await note('status nobody');
  return said.join('');
}

const EXPECTED = `> add greet prompts/greet.md (0)
✓ prompt greet is registered, with prompts/greet.md
  Create a version of it: ensemble component tag greet v1.0.0
> tag greet v1.0.0 (0)
✓ greet has version v1.0.0
  Deploy it: ensemble component deploy greet v1.0.0 --to production
> tag greet v1.1.0 (0)
✓ greet has version v1.1.0
  Deploy it: ensemble component deploy greet v1.1.0 --to production
> deploy greet v1.0.0 --to production (0)
✓ production has greet v1.0.0
> deploy greet v1.1.0 --to production (0)
✓ production has greet v1.1.0; before: v1.0.0
> status greet (0)
COMPONENT  KIND  ENVIRONMENT  VERSION  DEPLOYED  BY  PREVIOUS  MESSAGE
greet  prompt  production  v1.1.0  WHEN WHO  v1.0.0  shorter
greet  prompt  latest  v1.1.0
> tags greet (0)
VERSION  CREATED  BY  DEPLOYED TO  MESSAGE
v1.1.0  WHEN WHO  production
v1.0.0  WHEN WHO  the first
> show greet@production (0)
Greet {{ name }} in one line.
prompt greet v1.1.0  {"variables":["name"]}
> diff greet v1.0.0 production (0)
--- greet@v1.0.0/text
+++ greet@v1.1.0/text
@@ -1,1 +1,1 @@
-Greet {{ name }}.
+Greet {{ name }} in one line.
> rollback greet --to production (0)
✓ production has greet v1.0.0
> show greet@production (0)
Greet {{ name }}.
prompt greet v1.0.0  {"variables":["name"]}
> deploy greet --to production --split v1.0.0=75,v1.1.0=25 (0)
✓ production has greet v1.1.0=25, v1.0.0=75; before: v1.0.0
> show greet@production --key ada (0)
Greet {{ name }}.
prompt greet v1.0.0  {"variables":["name"]}
> show greet@production (1)
error: prompt://greet@production leads to several versions (v1.1.0=25, v1.0.0=75): pass the \`key\` that decides between them
> rollback greet --to production (0)
✓ production has greet v1.0.0
> deploy greet v1.1.0 --to production --steps 5,100 --every 1h (0)
✓ production has greet v1.1.0=5, v1.0.0=95 while failureRate < 2%; before: v1.0.0
> status greet (0)
COMPONENT  KIND  ENVIRONMENT  VERSION  DEPLOYED  BY  PREVIOUS  MESSAGE
greet  prompt  production  v1.1.0=5, v1.0.0=95 while failureRate < 2%  WHEN WHO  v1.0.0
greet  prompt  latest  v1.1.0
> undeploy greet --from production (0)
✓ production has no version of greet any more
> tag greet v1.1.0 (1)
error: component \`greet\` has version v1.1.0, and a version never changes; create a higher one
> tag greet 1.2 (1)
error: \`version\` must be a version such as \`v1.0.0\`
> deploy greet v9.0.0 --to production (1)
error: component \`greet\` has no version v9.0.0; create it: ensemble component tag greet v9.0.0; versions: v1.1.0, v1.0.0
> show greet@production (1)
error: prompt://greet@production leads to no version: deploy one: ensemble component deploy greet v1.1.0 --to production; versions: v1.1.0, v1.0.0; environments: none
> add greet prompts/greet.md (1)
error: there is already a component \`greet\`; update it: ensemble component add --replace
> status nobody (1)
error: there is no component \`nobody\`; register it: ensemble component add NAME FILE
`;

describe('ensemble component', () => {
  it.skipIf(!hasGit)(
    'has the life of a component in the repository of a project',
    async () => {
      const cwd = newRepository();
      expect(await lifeOf(commands(cwd), cwd, () => commit(cwd))).toBe(EXPECTED);
      expect(readFileSync(join(cwd, 'components.yaml'), 'utf8')).toBe(
        'greet:\n  kind: prompt\n  file: prompts/greet.md\n  metadata:\n    variables:\n      - name\n',
      );
    },
    180_000,
  );

  it('has the same life in a store, and on a running server', async () => {
    const folder = makeFolder(PROJECT);
    const store = ['--storage', `sqlite:${join(folder, 'data.sqlite')}`];
    expect(await lifeOf(commands(folder, store), folder, () => {})).toBe(EXPECTED);
    const cwd = makeFolder(PROJECT);
    const { url, token } = await serveProject(cwd);
    expect(await lifeOf(commands(cwd, ['--url', url, '--token', token]), cwd, () => {})).toBe(EXPECTED);
    // Some fifty processes, one after the other.
  }, 180_000);

  it.skipIf(!hasGit)('what is deployed in the repository is what `run` and a running server use', async () => {
    const cwd = newRepository();
    const component = commands(cwd);
    await component('add greet prompts/greet.md');
    commit(cwd);
    for (const line of ['tag greet v1.0.0', 'deploy greet v1.0.0 --to production']) await component(line);
    expect((await ensemble(['run', 'welcome'], { cwd })).stdout).toContain('Greet Ada.');
    const { api } = await serveProject(cwd);
    const text = async () => (await (await api('/execute/ensemble/welcome', { input: {} })).json()).output.text;
    expect(await text()).toBe('Greet Ada.\n');
    writeFiles(cwd, { 'prompts/greet.md': 'Hi {{ name }}.\n' });
    commit(cwd);
    git(cwd, 'tag', '-a', '-m', 'short', 'components/greet/v1.1.0');
    git(cwd, 'tag', '-f', '-a', '-m', 'deploy', 'components/greet/production', 'components/greet/v1.1.0^{}');
    await expect.poll(text, { timeout: 10_000 }).toBe('Hi Ada.\n');
  });

  it('compare asks the models of the project with two versions, for each input', async () => {
    const cwd = makeFolder({
      ...PROJECT,
      'ensemble.config.mjs': `const echo = {
  async generate({ model, messages: [{ text }] }) {
    if (text.includes('nobody')) throw new Error('there is nobody');
    return { text: model + ': ' + text, toolCalls: [], finishReason: 'stop', model, usage: { inputTokens: 2, outputTokens: 1 } };
  },
};
export default { models: { echo } };
`,
      'cases.jsonl': '{"name":"Ada"}\n\n{"name":"nobody"}\n',
      'wrong.jsonl': '{"name":"Ada"}\n{name}\n',
    });
    // The project has a store of its own, in which the components are.
    const component = commands(cwd, ['--storage', `sqlite:${join(cwd, 'data.sqlite')}`]);
    await component('add greet prompts/greet.md', '--metadata', '{"model": "small", "variables": ["name"]}');
    await component('tag greet v1.0.0');
    writeFiles(cwd, { 'prompts/greet.md': 'Hi {{ name }}!\n' });
    await component('add greet prompts/greet.md --replace', '--metadata', '{"model": "large"}');
    await component('tag greet v1.1.0');
    const { code, stdout, stderr } = await component('compare greet v1.0.0 latest --inputs cases.jsonl');
    expect([code, shape(stdout)]).toEqual([
      1,
      [
        'INPUT  v1.0.0  v1.1.0',
        '{"name":"Ada"}  small: Greet Ada.  large: Hi Ada!',
        '{"name":"nobody"}  failed: model provider `echo` failed; the log has its error  failed: model provider `echo` failed; the log has its error\n',
      ].join('\n'),
    ]);
    expect(stderr).toContain('there is nobody');
    expect(stderr).toMatch(/\nv1\.0\.0: 1 failure of 2, 3 tokens, .* on average\nv1\.1\.0: 1 failure of 2, 3 tokens, /);
    const json = await component('compare greet v1.0.0 v1.1.0 --inputs cases.jsonl --model x --json');
    expect(JSON.parse(json.stdout).cases[0]).toMatchObject({
      ...{ input: { name: 'Ada' }, 'v1.0.0': { output: 'x: Greet Ada.\n', tokens: 3 } },
      ...{ 'v1.1.0': { output: 'x: Hi Ada!\n' } },
    });
    const same = await component('compare greet v1.0.0 v1.0.0 --inputs cases.jsonl');
    expect([same.code, same.stderr]).toEqual([2, expect.stringContaining('name two versions')]);
    const wrong = await component('compare greet v1.0.0 v1.1.0 --inputs wrong.jsonl');
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('line 2 of wrong.jsonl is not JSON')]);
  });

  it.skipIf(!hasGit)(
    'validate reports a variable that an agent lacks, and warns of a version that is not there yet',
    async () => {
      const cwd = newRepository();
      const component = commands(cwd);
      await component('add greet prompts/greet.md', '--metadata', '{"variables": ["name", "city"]}');
      commit(cwd);
      const warned = await ensemble(['validate'], { cwd });
      expect([warned.code, warned.stderr]).toEqual([
        0,
        expect.stringContaining('prompt://greet@production leads to no version'),
      ]);
      for (const line of ['tag greet v1.0.0', 'deploy greet v1.0.0 --to production']) await component(line);
      const { code, stderr } = await ensemble(['validate'], { cwd });
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining('prompt://greet@v1.0.0 needs `city` in the input of agent `hello`, which has `name`'),
      ]);
      expect(stderr).toContain('ensembles/welcome.yaml');
    },
  );

  it('what is deployed in the store of the project is what `run` uses; `show` gives a text as it is', async () => {
    const cwd = makeFolder(PROJECT);
    const component = commands(cwd);
    writeFiles(cwd, { 'prompts/greet.md': 'a\tb\r\n{{ name }}' });
    for (const line of ['add greet prompts/greet.md', 'tag greet v1.0.0', 'deploy greet v1.0.0 --to production'])
      expect((await component(line)).code).toBe(0);
    expect((await component('show greet@production')).stdout).toBe('a\tb\r\n{{ name }}');
    const { code, stdout, stderr } = await ensemble(['run', 'welcome', '--json'], { cwd });
    expect([code, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toMatchObject({ output: { text: 'a\tb\r\nAda' } });
  });

  it.skipIf(!hasGit)(
    'a file that is not committed, not in the project, or not a file is refused with the next step',
    async () => {
      const cwd = newRepository();
      symlinkSync('/etc/hosts', join(cwd, 'prompts/link.md'));
      const component = commands(cwd);
      const refused = async (line: string, message: string) =>
        expect(await component(line)).toMatchObject({
          stderr: expect.stringContaining(message),
          code: expect.any(Number),
        });
      await refused('add greet ../greet.md', 'there is no file ../greet.md');
      await refused('add greet prompts/link.md', 'prompts/link.md is not in the project');
      await refused('add greet prompts/none.md', 'there is no file prompts/none.md');
      await refused('add greet scripts/echo.mjs', '--kind is missing; it is one of prompt, template, config, query');
      await refused('add ../greet prompts/greet.md', 'the name of a component must be a name');
      await component('add greet prompts/greet.md');
      await refused('tag greet v1.0.0', 'prompts/greet.md is not in HEAD: commit it first: git add . && git commit');
      commit(cwd);
      writeFiles(cwd, { 'prompts/greet.md': 'Other.\n' });
      await refused('tag greet v1.0.0', 'prompts/greet.md differs from HEAD: commit it first: git add . && git commit');
      await refused(
        'show greet',
        'name the component and its version or environment, such as greet@production, not greet',
      );
      expect((await component('tags greet')).stderr).toBe(
        'greet has no version; create one with: ensemble component tag greet v1.0.0\n',
      );
    },
  );
});
