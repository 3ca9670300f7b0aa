/** `ensemble validate`: problems with their place and source lines. */

import { beforeAll, describe, expect, it } from 'vitest';
import { ensemble as ensembleProcess, ensureBuilt, makeFolder } from './cli-process.ts';
import { ensemble } from './in-process.ts';

beforeAll(ensureBuilt, 60_000);

const GOOD = 'name: good\nflow:\n  - { agent: a, operation: code, config: { script: one } }\n';
const ONE = 'export default () => 1;\n';

describe('ensemble validate', () => {
  it('prints the number of valid files on stdout, and ends with 0', async () => {
    const cwd = makeFolder({ 'ensembles/good.yaml': GOOD, 'scripts/one.mjs': ONE });
    expect(await ensemble(['validate'], { cwd })).toEqual({ code: 0, stdout: '✓ 2 files, no problems\n', stderr: '' });
  });

  it('prints every problem of every file with its place and source lines on stderr, and ends with 1', async () => {
    const cwd = makeFolder({
      'ensembles/a.yaml': 'name: a\nflow:\n  - agent: x\n    operation: code\n    config: { script: onne }\n',
      'ensembles/b.yaml': 'name: b\nflwo: []\nflow: []\noutputs:\n  y: ${nobody.output}\n',
      'scripts/one.mjs': ONE,
    });
    const { code, stdout, stderr } = await ensemble(['validate'], { cwd });
    expect(code).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toContain('ensembles/a.yaml:5:23 flow[0].config.script: there is no script `onne`');
    expect(stderr).toContain(
      '   5 |     config: { script: onne }\n     |                       ^^^^\nhelp: did you mean `one`?\n',
    );
    expect(stderr).toContain('ensembles/b.yaml:2:1 flwo: ');
    expect(stderr).toContain('help: did you mean `flow`?');
    expect(stderr).toMatch(/ensembles\/b\.yaml:5:\d+ outputs\.y: /);
    expect(stderr.endsWith('✗ 3 problems in 2 of 3 files\n')).toBe(true);
  });

  it('--json prints { files: [{ file, issues }] }, also with valid files', async () => {
    const cwd = makeFolder({ 'ensembles/a.yaml': 'name: a\nflwo: []\nflow: []\n', 'scripts/one.mjs': ONE });
    const { code, stdout, stderr } = await ensemble(['validate', '--json'], { cwd });
    expect(code).toBe(1);
    expect(stderr).toBe('');
    const { files } = JSON.parse(stdout);
    expect(files).toMatchObject([
      { file: 'scripts/one.mjs', issues: [] },
      {
        file: 'ensembles/a.yaml',
        issues: [{ path: 'flwo', line: 2, column: 1, suggestion: 'flow', source: 'ensembles/a.yaml' }],
      },
    ]);
  });

  it('--types prints the type of each input, step and output, and how to declare what may be anything', async () => {
    const cwd = makeFolder({
      'ensembles/order.yaml': [
        'name: order',
        'inputs: { id: { type: string, required: true }, lines: { type: array } }',
        'flow:',
        '  - { agent: customer, operation: api, config: { url: "https://shop.example/${input.id}" } }',
        '  - { agent: price, operation: code, config: { script: price } }',
        '  - { agent: tax, operation: code, config: { script: tax } }',
        'outputs: { name: "${customer.output.body.name}", state: "${tax.output.state}" }',
        '',
      ].join('\n'),
      'scripts/price.mjs': ONE,
      'scripts/tax.mjs': [
        "import * as z from 'zod';",
        "import { defineScript } from 'ensemble-orchestrator';",
        "export default defineScript({ output: z.object({ state: z.enum(['due', 'none']), rates: z.array(z.number()) }), run: () => null });",
      ].join('\n'),
    });
    const { code, stdout } = await ensemble(['validate', '--types'], { cwd });
    expect(code).toBe(0);
    expect(stdout).toBe(
      [
        'ensembles/order.yaml: order',
        '  input            { id: string, lines?: any[] | null }',
        '  customer.output  { status: 200..299, headers: { [name]: string }, body: any }',
        '  price.output     any',
        "  tax.output       { state: 'due' | 'none', rates: number[] }",
        '  outputs.name     any',
        "  outputs.state    'due' | 'none'",
        '  not known 2:9 `input.lines[]` may be anything: write `inputs` as a JSON Schema, with `type: object` and `properties`',
        '  not known 4:5 `customer.output.body` may be anything: declare it with `response` in `config`',
        '  not known 5:5 `price.output` may be anything: declare it with `defineScript({ output, run })`, or with `output` of the agent',
        '',
        '✓ 3 files, no problems',
        '',
      ].join('\n'),
    );
    const json = JSON.parse((await ensemble(['validate', '--types', '--json'], { cwd })).stdout);
    const { types } = json.files.find(({ file }: { file: string }) => file === 'ensembles/order.yaml');
    expect(types).toMatchObject({ ensemble: 'order', outputs: [{ name: 'name', type: 'any' }, { name: 'state' }] });
    expect(types.unknown[1]).toMatchObject({ path: 'flow[0]', line: 4, source: 'ensembles/order.yaml' });
  });

  it('a project knows the types of its child ensembles, and what uses a broken agent has no further problem', async () => {
    const cwd = makeFolder({
      'ensembles/a.yaml':
        'name: a\nflow:\n  - { ensemble: b, input: { n: "one" } }\noutputs: { x: "${b.output.totl}" }\n',
      'ensembles/b.yaml':
        'name: b\ninputs: { n: { type: number } }\nflow: [ { agent: broken } ]\noutputs: { total: "${input.n}", more: "${broken.output.any}" }\n',
      'agents/broken.yaml': 'name: broken\noperation: api\nconfg: {}\n',
    });
    const { stderr } = await ensemble(['validate'], { cwd });
    expect(stderr).toContain("flow[0].input.n: input `n` of ensemble `b` is a number, and this is 'one'");
    expect(stderr).toContain('outputs.x: there is no `totl` in `b.output`, which has `total` and `more`');
    expect(stderr).toContain('agents/broken.yaml:3:1 confg');
    expect(stderr.endsWith('✗ 3 problems in 2 of 3 files\n')).toBe(true);
  });

  it('accepts references that only a host can check in a file outside a project: scripts, variables, operations', async () => {
    const cwd = makeFolder({
      'loose.yaml': [
        'name: loose',
        'flow:',
        '  - { agent: a, operation: code, config: { script: anything }, input: "${env.ANY}" }',
        '  - { agent: b, operation: own-operation, config: {} }',
        '  - { agent: c, operation: think, config: { provider: any, model: any, prompt: hi } }',
        '',
      ].join('\n'),
    });
    expect(await ensemble(['validate', 'loose.yaml'], { cwd })).toEqual({
      code: 0,
      stdout: '✓ 1 file, no problems\n',
      stderr: '',
    });
  });

  it('finds all other problems of a file outside a project', async () => {
    const cwd = makeFolder({
      'loose.yaml':
        'name: loose\nflow:\n  - { agent: a, operation: coed, config: { script: s } }\noutputs: { x: "${b.output}" }\n',
    });
    const { code, stderr } = await ensemble(['validate', 'loose.yaml'], { cwd });
    expect(code).toBe(1);
    expect(stderr).toContain('there is no operation `coed`');
    expect(stderr).toContain('help: did you mean `code`?');
    expect(stderr).toContain('loose.yaml:4:');
    expect(stderr.endsWith('✗ 2 problems in 1 file\n')).toBe(true);
  });

  it('checks a file of a project against that project, without the problems of other files', async () => {
    const cwd = makeFolder({
      'shop/ensembles/a.yaml': 'name: a\nflow:\n  - { agent: x, operation: code, config: { script: onne } }\n',
      'shop/ensembles/b.yaml': 'name: b\nnonsense: 1\n',
      'shop/scripts/one.mjs': ONE,
    });
    const { code, stderr } = await ensemble(['validate', 'shop/ensembles/a.yaml'], { cwd });
    expect(code).toBe(1);
    expect(stderr).toContain('shop/ensembles/a.yaml:3:');
    expect(stderr).not.toContain('nonsense');
    expect(stderr.endsWith('✗ 1 problem in 1 file\n')).toBe(true);
  });

  it('--dir checks files from elsewhere against a project', async () => {
    const cwd = makeFolder({
      'shop/ensembles/good.yaml': GOOD,
      'shop/scripts/one.mjs': ONE,
      'new.yaml': GOOD.replace('one', 'two'),
    });
    const { code, stderr } = await ensemble(['validate', 'new.yaml', '--dir', 'shop'], { cwd });
    expect(code).toBe(1);
    expect(stderr).toContain('new.yaml:3:52 flow[0].config.script: there is no script `two` (registered: one)');
  });

  it('accepts several paths: files, a folder of files and a project', async () => {
    const cwd = makeFolder({
      'p/ensembles/good.yaml': GOOD,
      'p/scripts/one.mjs': ONE,
      'd/x.yaml': 'name: x\nflow: []\n',
      'y.yml': 'name: y\nflow: []\n',
    });
    const { code, stdout } = await ensemble(['validate', 'p', 'd', 'y.yml'], { cwd });
    expect([code, stdout]).toEqual([0, '✓ 4 files, no problems\n']);
  });

  it('reports a broken script once, at its own line, and not in an ensemble', async () => {
    const cwd = makeFolder({
      'ensembles/good.yaml': GOOD,
      'ensembles/again.yaml': GOOD.replace('good', 'again'),
      'scripts/one.mjs': 'export default () => {\n  return 1 +;\n};\n',
    });
    // The test runner has another parser.
    const { code, stderr } = await ensembleProcess(['validate'], { cwd });
    expect(code).toBe(1);
    expect(stderr).toBe(
      "scripts/one.mjs: can't be imported: SyntaxError: Unexpected token ';'; to see where, run: node scripts/one.mjs\n\n✗ 1 problem in 1 of 3 files\n",
    );
  });

  it('accepts .ts scripts and a .ts config, by the runtime or by jiti', async () => {
    const cwd = makeFolder({
      'ensembles/good.yaml': GOOD,
      'scripts/one.ts': 'enum Unit { Cent = 1 }\nexport default (): number => Unit.Cent;\n',
      'ensemble.config.ts': "export default { env: [] as string[], ensembles: ['name: e\\nflow: []'] };\n",
    });
    expect((await ensemble(['validate'], { cwd })).code).toBe(0);
  });

  it('reports a broken shared agent in its own file, and not in an ensemble', async () => {
    const cwd = makeFolder({
      'ensembles/a.yaml': 'name: a\nflow:\n  - agent: mailer\n  - agent: caller\n',
      'agents/mailer.yaml': 'name: mailer\noperation: code\nconfig:\n  script: send\n',
      'agents/caller.yaml': 'name: caller\noperation: api\nconfgi: { url: https://example.com }\n',
    });
    const { stderr } = await ensemble(['validate'], { cwd });
    expect(stderr).toContain('agents/mailer.yaml:4:11 config.script: there is no script `send` (none is registered)');
    expect(stderr).toContain('agents/caller.yaml:3:1 confgi: ');
    expect(stderr.endsWith('✗ 2 problems in 2 of 3 files\n')).toBe(true);
  });

  it('prints warnings with their place and ends with 0; --json has them in addition to the issues', async () => {
    const cwd = makeFolder({
      'ensembles/a.yaml':
        'name: a\nflow:\n  - { sleep: "${late.output}" }\n  - { agent: late, operation: code, config: { script: one } }\n',
      'scripts/one.mjs': ONE,
      'ensemble.config.mjs':
        "export default { ensembles: [{ name: 'b', flow: [], notifications: [{ type: 'webhook', events: ['execution.failed'], url: 'https://a.example', secret: 'open' }] }] };\n",
    });
    const { code, stdout, stderr } = await ensemble(['validate'], { cwd });
    expect([code, stdout]).toEqual([0, '✓ 3 files, no problems\n']);
    expect(stderr).toContain('warning: ensembles/a.yaml:3:17 flow[0].sleep: `late` has not run yet');
    expect(stderr).toContain(
      'warning: ensemble.config.mjs notifications[0].secret: ensemble `b`: notifications[0].secret: is stored with the definition',
    );
    const json = await ensemble(['validate', '--json'], { cwd });
    expect([json.code, json.stderr]).toEqual([0, '']);
    const found = JSON.parse(json.stdout).files as { file: string; issues: object[]; warnings: object[] }[];
    expect(found.every(({ issues }) => issues.length === 0)).toBe(true);
    expect(found.find(({ file }) => file === 'ensembles/a.yaml')?.warnings).toMatchObject([
      { path: 'flow[0].sleep', line: 3, column: 17, source: 'ensembles/a.yaml' },
    ]);
  });

  it('finds problems between files: two ensembles of one name, two triggers on one path', async () => {
    const twins = makeFolder({
      'ensembles/a.yaml': 'name: same\nflow: []\n',
      'ensembles/b.yaml': 'name: same\nflow: []\n',
    });
    expect((await ensemble(['validate'], { cwd: twins })).stderr).toContain(
      'ensembles/b.yaml:1:7 name: ensemble `same` is defined in ensembles/a.yaml too; rename one of them',
    );
    const trigger = (name: string) =>
      `name: ${name}\nflow: []\ntrigger: [{ type: webhook, path: /webhooks/in, public: true }]\n`;
    const rivals = makeFolder({ 'ensembles/a.yaml': trigger('a'), 'ensembles/b.yaml': trigger('b') });
    const { code, stderr } = await ensemble(['validate'], { cwd: rivals });
    expect(code).toBe(1);
    expect(stderr).toContain('POST /webhooks/in');
  });

  it('knows the ensembles of other files by name, also of a file with problems', async () => {
    const cwd = makeFolder({
      'ensembles/parent.yaml': 'name: parent\nflow:\n  - ensemble: kid\n  - ensemble: kidd\n  - ensemble: broken\n',
      'ensembles/kid.yaml': 'name: kid\nflow: []\n',
      'ensembles/broken.yaml': 'name: broken\nflow: [{ agnet: x }]\n',
    });
    const { stderr } = await ensemble(['validate'], { cwd });
    expect(stderr).toContain('ensembles/parent.yaml:4:15 flow[1].ensemble: there is no ensemble `kidd`');
    expect(stderr).toContain('help: did you mean `kid`?');
    expect(stderr.endsWith('✗ 2 problems in 2 of 3 files\n')).toBe(true);
  });

  it('needs no values for the variables that the config names, and warns of missing ones', async () => {
    const cwd = makeFolder({
      'ensembles/a.yaml': 'name: a\nflow:\n  - { agent: x, operation: api, config: { url: "${env.SHOP_URL}/x" } }\n',
      'ensemble.config.mjs': "export default { env: ['SHOP_URL'] };\n",
    });
    const { code, stdout, stderr } = await ensemble(['validate'], { cwd });
    expect([code, stdout]).toEqual([0, '✓ 2 files, no problems\n']);
    expect(stderr).toBe(
      'warning: ensemble.config.mjs names the variable `SHOP_URL`, which is not set here; `run` and `serve` need it\n',
    );
  });

  it('needs no values where a form is asked for; with a value, the form is checked, and graph and webhook list do the same', async () => {
    const names = ['BEARER', 'BASIC', 'STANDARD', 'ISSUER', 'URL', 'SECRET', 'TO', 'FROM'];
    const files = {
      'ensembles/a.yaml': `name: a
trigger:
  - { type: webhook, path: /webhooks/b, auth: { type: bearer, secret: "\${env.BEARER}" } }
  - { type: webhook, path: /webhooks/c, auth: { type: basic, secret: "\${env.BASIC}" } }
  - { type: webhook, path: /webhooks/d, auth: { type: signature, scheme: standard, secret: "\${env.STANDARD}" } }
  - { type: webhook, path: /webhooks/e, auth: { type: oauth, issuer: "\${env.ISSUER}", audience: us } }
notifications:
  - { type: webhook, url: "\${env.URL}/in", secret: "\${env.SECRET}", standard: true, events: [execution.completed] }
  - { type: email, to: ["\${env.TO}"], from: "\${env.FROM}", events: [execution.completed] }
flow: []
`,
      'ensemble.config.mjs': `import { memoryMail } from 'ensemble-orchestrator';
export default { env: ${JSON.stringify(names)}, mail: { desk: memoryMail() } };
`,
    };
    const cwd = makeFolder(files);
    const { code, stdout, stderr } = await ensemble(['validate'], { cwd });
    expect([code, stdout]).toEqual([0, '✓ 2 files, no problems\n']);
    expect(stderr.match(/^warning: /gm)).toHaveLength(names.length);
    expect((await ensemble(['graph', 'a'], { cwd })).code).toBe(0);
    expect((await ensemble(['webhook', 'list'], { cwd })).stdout.match(/\/webhooks\//g)).toHaveLength(4);
    const wrong = makeFolder({ ...files, '.env': names.map((name) => `${name}=a value\n`).join('') });
    const refused = await ensemble(['validate'], { cwd: wrong });
    expect([refused.code, refused.stderr.match(/^✗ .*$/gm)]).toEqual([1, ['✗ 8 problems in 1 of 2 files']]);
  });

  it('reports what is wrong in components.yaml', async () => {
    const cwd = makeFolder({
      'ensembles/a.yaml': 'name: a\nflow: []\n',
      'components.yaml': 'hi: { kind: promt, file: prompts/hi.md }\n',
    });
    const { code, stderr } = await ensemble(['validate'], { cwd });
    expect([code, stderr]).toEqual([1, expect.stringContaining('components.yaml')]);
    expect(stderr).toContain('`hi`: `kind` must be `prompt`, `template`, `config` or `query`');
  });

  it('uses colours only on terminals', async () => {
    const cwd = makeFolder({ 'ensembles/a.yaml': 'name: a\nflwo: []\nflow: []\n' });
    expect((await ensemble(['validate'], { cwd })).stderr).not.toContain('\u001b');
    const forced = await ensemble(['validate'], { cwd, env: { FORCE_COLOR: '1' } });
    expect(forced.stderr).toContain('\u001b[1mensembles/a.yaml:2:1\u001b[22m flwo: \u001b[31m');
    expect(forced.stderr).toContain('\u001b[31m ^^^^\u001b[39m');
  });

  it.each([
    [['validate'], 'there is no project here'],
    [['validate', 'nothing.yaml'], 'there is no file or folder nothing.yaml'],
    [['validate', 'empty'], 'empty is not a project: it has no folder `ensembles`, and no .yaml files'],
    [['validate', '--dir', 'empty'], 'empty is not a project'],
  ])('%j is explained without a stack trace', async (args, message) => {
    const cwd = makeFolder({ 'empty/file.txt': '' });
    const { code, stdout, stderr } = await ensemble(args, { cwd });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(`error: ${message}`);
    expect(stderr).not.toContain('    at ');
  });
});
