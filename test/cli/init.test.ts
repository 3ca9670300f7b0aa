/** `ensemble init`: a project that validates, runs and has a test. */

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt, makeFolder, ROOT } from './cli-process.ts';
import { ensemble } from './in-process.ts';
import { serveProject } from './served-project.ts';

beforeAll(ensureBuilt, 60_000);

const FILES = [
  'package.json',
  'ensembles/hello.yaml',
  'scripts/greet.mjs',
  'inputs/hello.json',
  'test/hello.test.mjs',
  'ensemble.schema.json',
  'README.md',
  '.env.example',
  '.gitignore',
];

describe('ensemble init', () => {
  it('prints the files that it wrote and the next commands', async () => {
    const cwd = makeFolder({});
    const { code, stdout, stderr } = await ensemble(['init', 'My Shop'], { cwd });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toBe(
      `${FILES.map((file) => `  My Shop/${file}\n`).join('')}\nNext:\n  cd My Shop\n  npm install\n  npm start\n  npm test\n`,
    );
    const manifest = JSON.parse(readFileSync(join(cwd, 'My Shop/package.json'), 'utf8'));
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    expect(manifest).toMatchObject({ name: 'my-shop', dependencies: { 'ensemble-orchestrator': `^${version}` } });
  });

  it('writes a project that validates, runs, and whose tests pass', async () => {
    const cwd = makeFolder({});
    symlinkSync(join(ROOT, 'node_modules/vitest'), join(cwd, 'node_modules/vitest'), 'dir');
    expect((await ensemble(['init'], { cwd })).code).toBe(0);
    expect(await ensemble(['validate'], { cwd })).toEqual({ code: 0, stdout: '✓ 2 files, no problems\n', stderr: '' });
    const { scripts } = JSON.parse(readFileSync(join(cwd, 'package.json'), 'utf8'));
    const run = await ensemble(scripts.start.split(' ').slice(1), { cwd });
    expect([run.code, JSON.parse(run.stdout)]).toEqual([0, { greeting: 'Bonjour, Ada!', notified: false }]);
    const { VITEST: _vitest, ...env } = process.env;
    const tested = execFileSync(
      process.execPath,
      [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--reporter=json'],
      { cwd, env, encoding: 'utf8' },
    );
    expect(JSON.parse(tested)).toMatchObject({ success: true, numPassedTests: 3, numFailedTests: 0 });
  }, 60_000);

  it('writes the schema that its script `schema` would write, named by the first line of the definition', async () => {
    const cwd = makeFolder({});
    await ensemble(['init'], { cwd });
    const written = readFileSync(join(cwd, 'ensemble.schema.json'), 'utf8');
    const { scripts } = JSON.parse(readFileSync(join(cwd, 'package.json'), 'utf8'));
    expect(scripts.schema).toBe('ensemble schema --dir . > ensemble.schema.json');
    expect((await ensemble(['schema', '--dir', '.'], { cwd })).stdout).toBe(written);
    const definition = readFileSync(join(cwd, 'ensembles/hello.yaml'), 'utf8');
    expect(definition.startsWith('# yaml-language-server: $schema=../ensemble.schema.json\n')).toBe(true);
  });

  it('writes a project that can be served by its script, and with the variables of its example', async () => {
    const cwd = makeFolder({});
    await ensemble(['init'], { cwd });
    writeFileSync(join(cwd, '.env'), readFileSync(join(cwd, '.env.example')));
    const { scripts } = JSON.parse(readFileSync(join(cwd, 'package.json'), 'utf8'));
    expect(scripts.serve).toBe('ensemble serve');
    const served = await serveProject(cwd);
    const run = await served.api('/execute/ensemble/hello', { input: { name: 'Ada' } });
    expect(await run.json()).toMatchObject({ output: { greeting: 'Hello, Ada!' } });
  });

  it('is the project that docs/getting-started.md explains', async () => {
    const cwd = makeFolder({});
    await ensemble(['init'], { cwd });
    const page = readFileSync(join(ROOT, 'docs/getting-started.md'), 'utf8');
    expect(page).toContain(`\`\`\`yaml\n${readFileSync(join(cwd, 'ensembles/hello.yaml'), 'utf8')}\`\`\`\n`);
  });

  it('writes nothing when one of its files exists', async () => {
    const cwd = makeFolder({ 'README.md': 'mine', 'scripts/greet.mjs': '// mine' });
    const { code, stdout, stderr } = await ensemble(['init'], { cwd });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(
      'error: scripts/greet.mjs, README.md already exist in .; nothing was written. Name an empty folder: npx ensemble-orchestrator init my-project',
    );
    expect(readdirSync(cwd).sort()).toEqual(['README.md', 'node_modules', 'scripts']);
    expect(readFileSync(join(cwd, 'README.md'), 'utf8')).toBe('mine');
    expect(existsSync(join(cwd, 'package.json'))).toBe(false);
  });
});
