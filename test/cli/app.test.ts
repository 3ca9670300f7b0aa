/** `ensemble validate` and `run` for an app that has its options in code. */

import { beforeAll, describe, expect, it } from 'vitest';
import { ensemble, ensureBuilt, makeFolder } from './cli-process.ts';

beforeAll(ensureBuilt, 60_000);

const PAY = `name: pay
flow:
  - { agent: charge, operation: code, config: { script: charge } }
  - { agent: receipt, operation: email, config: { from: a@b.example, to: c@d.example, subject: "\${env.SHOP}", body: paid } }
outputs: { paid: "\${charge.output}" }
`;
const IN_CODE = "'name: other\\nflow:\\n  - { agent: charge, operation: code, config: { script: charge } }'";
const OPTIONS = `{ scripts: { charge: () => 'ch_1' }, mail: { smtp: memoryMail() }, env: { SHOP: 'Acme' }`;
const IMPORT = "import { createOrchestrator, memoryMail } from 'ensemble-orchestrator';\n";

describe('--app', () => {
  it.each([
    [
      'options',
      `export const options = ${OPTIONS}, ensembles: [${IN_CODE}] };`,
      '✓ 1 file, no problems; 1 ensemble in code\n',
    ],
    ['options by default', `export default ${OPTIONS} };`, '✓ 1 file, no problems\n'],
    [
      'an orchestrator that reads the files by itself',
      `import { readFileSync } from 'node:fs';
export const orchestrator = createOrchestrator(${OPTIONS}, ensembles: [readFileSync('ensembles/pay.yaml', 'utf8')] });`,
      '✓ 1 file, no problems\n',
    ],
  ])('of a module with %s checks and runs the files of the folder with them', async (_, code, said) => {
    const cwd = makeFolder({ 'ensembles/pay.yaml': PAY, 'app.mjs': IMPORT + code });
    expect(await ensemble(['validate', '--app', './app.mjs'], { cwd })).toMatchObject({ code: 0, stdout: said });
    const ran = await ensemble(['run', 'pay', '--app', 'app.mjs'], { cwd });
    expect([ran.code, JSON.parse(ran.stdout)]).toEqual([0, { paid: 'ch_1' }]);
    const file = await ensemble(['run', './ensembles/pay.yaml', '--app', 'app.mjs'], { cwd });
    expect([file.code, JSON.parse(file.stdout)]).toEqual([0, { paid: 'ch_1' }]);
  });

  it('a folder without files: what is in code is checked and run', async () => {
    const cwd = makeFolder({ 'app.mjs': `${IMPORT}export const options = ${OPTIONS}, ensembles: [${IN_CODE}] };` });
    const checked = await ensemble(['validate', '--app', 'app.mjs'], { cwd });
    expect(checked).toMatchObject({ code: 0, stdout: '✓ 0 files, no problems; 1 ensemble in code\n' });
    expect((await ensemble(['run', 'other', '--app', 'app.mjs'], { cwd })).code).toBe(0);
  });

  it('a file outside of projects is checked and run with the app too', async () => {
    const cwd = makeFolder({
      'pay.yaml': PAY,
      'app.mjs': `${IMPORT}export default ${OPTIONS.replace('charge', 'chrge')} };`,
    });
    const { code, stderr } = await ensemble(['validate', 'pay.yaml', '--app', 'app.mjs'], { cwd });
    expect([code, stderr]).toEqual([1, expect.stringContaining('did you mean `chrge`?')]);
    const right = makeFolder({ 'pay.yaml': PAY, 'app.mjs': `${IMPORT}export default ${OPTIONS} };` });
    expect((await ensemble(['validate', 'pay.yaml', '--app', 'app.mjs'], { cwd: right })).code).toBe(0);
    expect((await ensemble(['run', 'pay.yaml', '--app', 'app.mjs'], { cwd: right })).code).toBe(0);
  });

  it('finds what a file asks of the app that it does not have', async () => {
    const cwd = makeFolder({
      'ensembles/pay.yaml': PAY,
      'app.mjs': `${IMPORT}export default ${OPTIONS.replace('charge', 'chrge')} };`,
    });
    const { code, stderr } = await ensemble(['validate', '--app', 'app.mjs'], { cwd });
    expect(code).toBe(1);
    expect(stderr).toContain('there is no script `charge`');
    expect(stderr).toContain('did you mean `chrge`?');
    expect(stderr).not.toContain('--app');
  });

  it.each([
    ['export const x = 1;', 'exports nothing that can be used: export the options of createOrchestrator'],
    ['throw new Error("no database");', "can't be imported: no database (app.mjs:1)"],
  ])('of a module that can not be used says why: %s', async (code, problem) => {
    const cwd = makeFolder({ 'ensembles/pay.yaml': PAY, 'app.mjs': code });
    for (const args of [['validate'], ['run', 'pay']]) {
      const { code, stderr } = await ensemble([...args, '--app', './app.mjs'], { cwd });
      expect([code, stderr]).toEqual([1, expect.stringContaining(`--app: ./app.mjs ${problem}`)]);
    }
  });
});

describe('a folder without a config', () => {
  it.each([
    [['validate'], 'ensemble validate --app ./app.mjs'],
    [['run', 'pay'], 'ensemble run pay --app ./app.mjs'],
  ])('`ensemble %j` says that the options may be in code, and how to name them', async (args, line) => {
    const { code, stderr } = await ensemble(args, { cwd: makeFolder({ 'ensembles/pay.yaml': PAY }) });
    expect(code).toBe(1);
    expect(stderr).toContain(
      'this folder has no `ensemble.config` and no scripts. If its scripts, senders and variables are in the code of an app',
    );
    expect(stderr).toContain(line);
  });

  it('with a config, nothing is said about an app', async () => {
    const cwd = makeFolder({ 'ensembles/pay.yaml': PAY, 'ensemble.config.mjs': 'export default {};' });
    expect((await ensemble(['validate'], { cwd })).stderr).not.toContain('--app');
  });
});
