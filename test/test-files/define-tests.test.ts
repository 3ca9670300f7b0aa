/** `defineTests`: test files in the runner that loads them. */

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, expect, it } from 'vitest';
import { defineTests } from '../../src/entries/node.ts';
import { ensureBuilt, makeFolder } from '../cli/cli-process.ts';
import { ensemble } from '../cli/in-process.ts';
import { fencedBlocks, ROOT } from '../docs/code-blocks.ts';

beforeAll(ensureBuilt, 60_000);

// These are tests of this run.
await defineTests(pathToFileURL(join(ROOT, 'examples/quickstart/')));

const FLOW = 'name: e\nflow: [ { agent: a, operation: code, config: { script: s } } ]\noutputs: { x: "${a.output}" }\n';
const TESTS =
  'ensemble: e\ntests:\n  - { name: good, expect: { output: { x: 1 } } }\n  - { name: bad, expect: { output: { x: 2 } } }\n';
const FILES = {
  'ensembles/e.yaml': FLOW,
  'ensembles/e.test.yaml': TESTS,
  'scripts/s.mjs': 'export default () => 1;\n',
};

async function registered(files: Readonly<Record<string, string>>) {
  const tests = new Map<string, () => Promise<void>>();
  await defineTests(makeFolder(files), { test: (name, run) => tests.set(name, run) });
  return tests;
}

it('registers each test under its file and name; the one that fails throws what differs', async () => {
  const tests = await registered(FILES);
  expect([...tests.keys()]).toEqual(['ensembles/e.test.yaml: good', 'ensembles/e.test.yaml: bad']);
  await tests.get('ensembles/e.test.yaml: good')?.();
  await expect(tests.get('ensembles/e.test.yaml: bad')?.()).rejects.toThrow('output.x\n  - expected 2\n  + was      1');
});

it('runs one test after the other, also for a runner that begins all at once', async () => {
  const script = `let running = 0;
    export default async () => {
      running += 1;
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (running > 1) throw new Error('two at once');
      running -= 1;
      return 1;
    };`;
  const texts = TESTS.replace('name: bad, expect: { output: { x: 2 } }', 'name: also good');
  const tests = await registered({ ...FILES, 'ensembles/e.test.yaml': texts, 'scripts/s.mjs': script });
  await Promise.all([...tests.values()].map((run) => run()));
});

it('a file or a definition with a problem is a test that fails with the frame', async () => {
  const broken = await registered({ ...FILES, 'ensembles/e.test.yaml': 'ensemble: f\ntests: [{ name: a }]\n' });
  await expect(broken.get('ensembles/e.test.yaml')?.()).rejects.toThrow('there is no ensemble `f`');
  const wrong = await registered({ ...FILES, 'ensembles/e.yaml': FLOW.replace('script: s', 'script: t') });
  await expect([...wrong.values()][0]?.()).rejects.toThrow('there is no script `t`');
  await expect(registered({ 'ensembles/e.yaml': FLOW })).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

it('finds node:test by itself', () => {
  const folder = makeFolder(FILES);
  const entry = pathToFileURL(join(ROOT, 'dist/node.js')).href;
  const program = `import { defineTests } from '${entry}';\nawait defineTests(new URL('.', import.meta.url));\n`;
  writeFileSync(join(folder, 'flows.test.mjs'), program);
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(VITEST|NODE_)/.test(name)));
  let printed = '';
  try {
    execFileSync(process.execPath, ['--test', '--test-reporter=tap', folder.endsWith('/') ? folder : `${folder}/`], {
      env,
      encoding: 'utf8',
    });
  } catch (error) {
    printed = (error as { stdout: string }).stdout;
  }
  expect(printed).toContain('ensembles/e.test.yaml: good');
  expect(printed).toMatch(/# pass 1\n# fail 1/);
});

it('the files of docs/test-files.md pass', async () => {
  const files = fencedBlocks('docs/test-files.md', readFileSync(join(ROOT, 'docs/test-files.md'), 'utf8'))
    .filter(({ language }) => language === 'yaml')
    .map(({ marks, code }) => [`ensembles/${marks[0]}`, code] as const);
  expect(files).toHaveLength(2);
  const { code, stdout } = await ensemble(['test', '--coverage'], { cwd: makeFolder(Object.fromEntries(files)) });
  expect(stdout).toContain('2 passed, 0 failed');
  expect(stdout).toContain('order: 3 of 3 steps ran');
  expect(code).toBe(0);
});
