/** `loadProject()`: turns a folder into options of `createOrchestrator`. */

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { loadProject } from '../../src/entries/node.ts';
import { createOrchestrator, defineConfig, defineOperation, isOrchestratorError } from '../../src/index.ts';

function makeFolder(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'ensemble-project-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

/** Sets process variables until the test ends. */
function setEnv(variables: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
}

async function problemsOf(files: Readonly<Record<string, string>>): Promise<string[]> {
  const error = await loadProject(makeFolder(files)).then(
    () => undefined,
    (thrown) => thrown,
  );
  if (!isOrchestratorError(error, 'INVALID_DEFINITION')) throw new Error(`expected INVALID_DEFINITION, not ${error}`);
  return error.details.issues.map(({ source, path, message }) => `${source} ${path}: ${message}`);
}

const step = (script: string, input = '') =>
  `{ agent: ${script.replace('/', '-')}, operation: code, config: { script: ${script} }${input} }`;
const SIMPLE = {
  'ensembles/e.yaml': `name: e\nflow:\n  - ${step('one')}\noutputs: { x: "\${one.output}" }\n`,
  'scripts/one.mjs': 'export default () => 1;\n',
};

describe('a project folder', () => {
  it('runs: ensembles, shared agents, scripts by path, and a config', async () => {
    const folder = makeFolder({
      'ensembles/a.yaml': `name: a\nflow:\n  - ${step('pricing/total', ', input: { n: 2 }')}\n  - agent: shout\noutputs: { total: "\${pricing-total.output}", loud: "\${shout.output}" }\n`,
      'ensembles/b.yml': 'name: b\nflow: []\n',
      'ensembles/notes.txt': 'not YAML: [',
      'agents/shout.yaml': 'name: shout\noperation: code\nconfig: { script: shout, suffix: "!" }\n',
      'scripts/pricing/total.mjs':
        "import { double } from './_double.mjs';\nexport default ({ input }) => double(input.n);\n",
      'scripts/pricing/_double.mjs': 'export const double = (n) => n * 2;\n',
      'scripts/pricing/total.test.mjs': "throw new Error('a test is no script');\n",
      'scripts/shout.js': 'module.exports = ({ config }) => `HEY${config.suffix}`;\n',
      'package.json': '{}',
    });
    const orchestrator = createOrchestrator(await loadProject(folder));
    expect((await orchestrator.execute('a')).output).toEqual({ total: 4, loud: 'HEY!' });
    expect((await orchestrator.execute('b')).status).toBe('completed');
    expect((await orchestrator.executeAgent('shout')).output).toBe('HEY!');
  });

  it('is a path or a file: URL', async () => {
    const folder = makeFolder(SIMPLE);
    const orchestrator = createOrchestrator(await loadProject(pathToFileURL(`${folder}/`)));
    expect((await orchestrator.execute('e')).output).toEqual({ x: 1 });
  });

  it('accepts further options, which override the config, and are part of the check', async () => {
    const folder = makeFolder({
      'ensembles/e.yaml':
        'name: e\nflow:\n  - { agent: a, operation: shout, config: { text: "${env.A}" } }\n  - { agent: b, operation: code, config: { script: one } }\noutputs: { a: "${a.output}", b: "${b.output}" }\n',
      'scripts/one.mjs': 'export default () => 1;\n',
      '.env': 'A=file\n',
    });
    const shout = defineOperation<{ text: string }>({ name: 'shout', run: ({ config }) => config.text.toUpperCase() });
    const given = { operations: [shout], env: { A: 'given' }, scripts: { one: () => 2 } };
    const orchestrator = createOrchestrator(await loadProject(folder, given));
    expect((await orchestrator.execute('e')).output).toEqual({ a: 'GIVEN', b: 2 });
    await expect(loadProject(folder)).rejects.toThrow(
      'ensembles/e.yaml:3:28 flow[0].operation: there is no operation `shout`',
    );
  });

  it('joins ensembles, agents, scripts and operations of the config with those of the folders', async () => {
    const config = defineConfig({
      ensembles: ['name: coded\nflow:\n  - agent: shared'],
      agents: [{ name: 'shared', operation: 'code', config: { script: 'own' } }],
    });
    const folder = makeFolder({
      ...SIMPLE,
      'ensemble.config.mjs': `export default { ...${JSON.stringify(config)}, scripts: { own: () => 'own' } };\n`,
    });
    const orchestrator = createOrchestrator(await loadProject(folder));
    expect((await orchestrator.execute('coded')).agents).toMatchObject([{ name: 'shared', output: 'own' }]);
    expect((await orchestrator.execute('e')).status).toBe('completed');
  });
});

describe('the file of a shared agent', () => {
  it('reports the problems of its form, of its config and of its references together, and ensembles that use it have none', async () => {
    const problems = await problemsOf({
      'agents/look.yaml':
        'name: look\ntype: API\ntimout: 5\nretry: soon\nconfig: { ulr: "https://x.example" }\ninput: ${env.T_NONE}\n',
      'ensembles/e.yaml': 'name: e\nflow: [{ agent: look }]\noutputs: { x: "${look.output.body}" }\n',
    });
    expect(problems.map((problem) => problem.split(':')[0])).toEqual([
      'agents/look.yaml timout',
      'agents/look.yaml retry',
      'agents/look.yaml config.ulr',
      'agents/look.yaml input',
    ]);
  });
});

describe('variables of a project', () => {
  const read = async (files: Readonly<Record<string, string>>) => {
    const { env, secrets } = await loadProject(makeFolder({ ...SIMPLE, ...files }));
    return { env, secrets };
  };

  it('all variables of .env, and the variables of the process that the config lists; the process overrides .env', async () => {
    setEnv({ T_NAMED: 'process', T_BOTH: 'process', T_OTHER: 'process', T_FILE: 'process' });
    const found = await read({
      '.env': '# comment\nT_FILE=file\nT_BOTH="file"\nT_QUOTED=\'a # b\'\n',
      'ensemble.config.mjs': "export default { env: ['T_NAMED', 'T_BOTH', 'T_ABSENT'] };\n",
    });
    expect(found).toEqual({
      env: { T_FILE: 'file', T_BOTH: 'process', T_QUOTED: 'a # b', T_NAMED: 'process' },
      secrets: {},
    });
  });

  it('a variable that the config lists as secret is in `secrets`, from .env and from the process', async () => {
    setEnv({ T_TOKEN: 'from process' });
    const files = {
      '.env': 'T_KEY=from-file\nT_URL=https://x\n',
      'ensemble.config.mjs': "export default { secrets: ['T_KEY', 'T_TOKEN'] };\n",
    };
    expect(await read(files)).toEqual({
      env: { T_URL: 'https://x' },
      secrets: { T_KEY: 'from-file', T_TOKEN: 'from process' },
    });
    const folder = makeFolder({ ...SIMPLE, 'ensemble.config.mjs': "export default { secrets: ['T_LATE'] };\n" });
    const given = await loadProject(folder, { env: { T_LATE: 'given' } });
    expect([given.env, given.secrets]).toEqual([{}, { T_LATE: 'given' }]);
  });

  it('a variable without a value names the ways of a project', async () => {
    const [problem] = await problemsOf({
      'ensembles/e.yaml': 'name: e\nflow: []\noutputs: { x: "${env.T_URL}" }\n',
      '.env': 'T_URI=https://x\n',
    });
    expect(problem).toBe(
      "ensembles/e.yaml outputs.x: variable `T_URL` is not set: write it in `.env`, or set it for the process and name it with `env: ['T_URL']` in `ensemble.config.*` or `--env T_URL`",
    );
  });

  it('a variable that the config lists and that has no value needs only the value', async () => {
    const [problem] = await problemsOf({
      'ensembles/e.yaml': 'name: e\nflow: []\noutputs: { x: "${env.T_URL}" }\n',
      'ensemble.config.mjs': "export default { env: ['T_URL'] };\n",
    });
    expect(problem).toBe(
      'ensembles/e.yaml outputs.x: variable `T_URL` is not set: write it in `.env`, or set it for the process',
    );
  });

  it('none without .env and config', async () => {
    setEnv({ T_NAMED: 'process' });
    expect(await read({})).toEqual({ env: {}, secrets: {} });
  });
});

describe('calls of a project', () => {
  it('use nodeHttp, which refuses names that resolve to this machine', async () => {
    const server = createServer((_request, response) => response.end('reached')).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    const folder = makeFolder({
      'ensembles/e.yaml': `name: e\nflow:\n  - { agent: a, operation: api, config: { url: "http://127.0.0.1:${port}/" } }\n`,
    });
    const run = await createOrchestrator(await loadProject(folder)).execute('e');
    expect(run.status).toBe('failed');
    expect(run.error?.message).toContain('127.0.0.1');
  });
});

describe('all problems of a project are reported together, by file', () => {
  it('problems of definitions, scripts and agents together', async () => {
    expect(
      await problemsOf({
        'ensembles/a.yaml': 'name: a\nflow:\n  - agent: nobody\n',
        'ensembles/b.yaml': 'name: [\n',
        'agents/c.yaml': 'operation: code\n',
        'scripts/d.mjs': 'export const d = 1;\n',
        'scripts/e.mjs': 'export default 7;\n',
        'scripts/f.mjs': "throw new TypeError('at import');\n",
      }),
    ).toEqual([
      'scripts/d.mjs : has no default export; a script is `export default (context) => output` (begin the name of a file that is not a script with `_`)',
      'scripts/e.mjs : exports a value of type number by default; a script is `export default (context) => output` (begin the name of a file that is not a script with `_`)',
      "scripts/f.mjs : can't be imported: TypeError: at import (scripts/f.mjs:1)",
      expect.stringMatching(/^agents\/c\.yaml .*name/),
      expect.stringMatching(/^ensembles\/a\.yaml flow\[0\]\.agent: there is no agent `nobody`/),
      expect.stringMatching(/^ensembles\/b\.yaml /),
    ]);
  });

  it('two scripts, two agents, two configs of one name', async () => {
    expect(await problemsOf({ ...SIMPLE, 'scripts/one.js': 'module.exports = () => 2;' })).toEqual([
      'scripts/one.mjs : is script `one`, and so is scripts/one.js; rename one of them',
    ]);
    const agent = 'name: twin\noperation: code\nconfig: { script: one }\n';
    expect(await problemsOf({ ...SIMPLE, 'agents/a.yaml': agent, 'agents/b.yaml': agent })).toEqual([
      'agents/b.yaml name: agent `twin` is defined in agents/a.yaml too; rename one of them',
    ]);
    expect(await problemsOf({ ...SIMPLE, 'ensemble.config.js': '', 'ensemble.config.mjs': '' })).toEqual([
      'ensemble.config.js : exists in addition to ensemble.config.mjs; keep one of them',
    ]);
    expect(
      await problemsOf({ ...SIMPLE, 'ensemble.config.mjs': 'export default { scripts: { one: () => 1 } };' }),
    ).toEqual(['ensemble.config.mjs : script `one` is in the folder `scripts` too; keep one of them']);
  });

  it.each([
    [
      'nothing',
      'export const config = {};',
      'has no object as its default export; write `export default defineConfig({ ... })`',
    ],
    ['values for names', "export default { env: { A: 'b' } };", '`env` must be a list of the names of variables'],
    [
      'an unknown option',
      'export default { storge: 1 };',
      '`storge` is not an option of this version; did you mean `storage`?',
    ],
    [
      'a clock',
      'export default { clock: {} };',
      '`clock` is not an option of a project; pass it to createOrchestrator',
    ],
  ])('a config that exports %s', async (_what, text, message) => {
    const [problem, ...more] = await problemsOf({ ...SIMPLE, 'ensemble.config.mjs': text });
    expect(problem).toContain(`ensemble.config.mjs : ${message}`);
    expect(more).toEqual([]);
  });

  it('a folder that is missing, and one without ensembles', async () => {
    const folder = makeFolder({ 'scripts/one.mjs': 'export default () => 1;\n' });
    await expect(loadProject(folder)).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: `${folder} has no ensemble: expected .yaml files in its folder \`ensembles\``,
    });
    await expect(loadProject(join(folder, 'none'))).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: `there is no folder ${join(folder, 'none')}`,
    });
  });
});

it('follows links to scripts, but not links to folders', async () => {
  const elsewhere = makeFolder({
    'linked.mjs': "export default () => 'linked';\n",
    'more/more.mjs': 'export default () => 1;\n',
  });
  const folder = makeFolder({
    'ensembles/e.yaml': 'name: e\nflow: []\n',
    'scripts/own.mjs': 'export default () => 1;\n',
  });
  symlinkSync(join(elsewhere, 'linked.mjs'), join(folder, 'scripts/linked.mjs'));
  symlinkSync(join(elsewhere, 'more'), join(folder, 'scripts/more'), 'dir');
  expect(Object.keys((await loadProject(folder)).scripts ?? {})).toEqual(['linked', 'own']);
});
