/** The command itself: help, version, wrong usage (on stderr, exit code 2), and the JSON Schema. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { CLI, ensemble, ensureBuilt, makeFolder, ROOT } from './cli-process.ts';

beforeAll(ensureBuilt, 60_000);

describe('usage', () => {
  it.each([
    [['rnu'], "error: unknown command 'rnu'\n(Did you mean run?)", 'ensemble'],
    [['run'], "error: missing required argument 'ensemble'", 'ensemble run'],
    [['run', 'e', '--jsno'], "error: unknown option '--jsno'\n(Did you mean --json?)", 'ensemble run'],
    [['run', 'a', 'b'], 'error: too many arguments', 'ensemble run'],
    [['run', 'e', '--input'], "error: option '--input <json>' argument missing", 'ensemble run'],
    [['token', 'create'], "error: required option '--name <name>' not specified", 'ensemble token create'],
    [['execution', 'shwo'], "error: unknown command 'shwo'\n(Did you mean show?)", 'ensemble execution'],
    [['nonsense'], "error: unknown command 'nonsense'", 'ensemble'],
  ])('%j is wrong usage: exit code 2, a suggestion, and the command of its help', async (args, message, command) => {
    const { code, stdout, stderr } = await ensemble(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
    expect(stderr).toContain(`Help: ${command} --help`);
    expect(stderr).not.toContain('    at ');
  });

  it('without a command prints its help on stderr, with exit code 2', async () => {
    const { code, stdout, stderr } = await ensemble([]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('Usage: ensemble');
  });

  it.each([[['--help']], [['help']], [['run', '--help']], [['help', 'validate']]])(
    '%j prints help with examples on stdout',
    async (args) => {
      const { code, stdout, stderr } = await ensemble(args);
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toMatch(/Usage: ensemble.*Examples:\n {2}(npx )?ensemble/s);
    },
  );

  it('--version prints the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    expect(await ensemble(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  it('the built file can be started by itself', () => {
    expect(readFileSync(CLI, 'utf8').startsWith('#!/usr/bin/env node\n')).toBe(true);
  });
});

describe('what the modules of a project print', () => {
  const cwd = () =>
    makeFolder({
      'ensembles/e.yaml': 'name: e\nflow: [{ agent: a, operation: code, config: { script: a } }]\n',
      'ensemble.config.mjs': "console.log('from the config');\nexport default {};\n",
      'scripts/a.mjs': "console.log('from a script');\nexport default () => 1;\n",
    });

  it.each([
    ['schema --dir .', /^\{\n.*\}\n$/s],
    ['token new', /^sk-service-\w{42}\n$/],
    ['token create --name ci --scope admin', /^sk-service-\w{42}\n$/],
    ['validate --json', /^\{\n.*\}\n$/s],
    ['run e --json', /^\{\n.*\}\n$/s],
    ['graph e', /^flowchart TD\n/],
  ])('is on stderr, and not part of the result of %j', async (command, result) => {
    const { code, stdout, stderr } = await ensemble(command.split(' '), { cwd: cwd() });
    expect([code, stdout]).toEqual([0, expect.stringMatching(result)]);
    expect(stderr).toContain('from the config\nfrom a script\n');
  });
});

describe('ensemble schema', () => {
  it('prints the JSON Schema of definitions', async () => {
    const { code, stdout } = await ensemble(['schema']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      $schema: 'http://json-schema.org/draft-07/schema#',
      properties: { name: { type: 'string' }, flow: { type: 'array' } },
    });
  });

  it('refers to no other document', async () => {
    const { stdout } = await ensemble(['schema']);
    const refs = [...stdout.matchAll(/"\$ref": "([^"]*)"/g)].map(([, target]) => target);
    expect(refs.length).toBeGreaterThan(0);
    expect(refs.filter((target) => !target?.startsWith('#/definitions/'))).toEqual([]);
  });

  it('--dir adds the operations and names of a project, also of ensembles with problems', async () => {
    const cwd = makeFolder({
      'ensembles/order.yaml': 'name: order\nflow: [{ agent: fetch-user }]\n',
      'ensembles/broken.yaml': 'name: broken\nflow: 5\n',
      'agents/fetch-user.yaml': 'name: fetch-user\noperation: code\nconfig: { script: pricing/total }\n',
      'scripts/pricing/total.mjs': 'export default () => 1;\n',
      'ensemble.config.mjs': `import { defineOperation } from 'ensemble-orchestrator';
export default {
  operations: [defineOperation({ name: 'rate', run: () => null })],
  agents: [{ name: 'shared', operation: 'rate' }],
  scripts: { other: () => 2 },
};\n`,
    });
    const { code, stdout, stderr } = await ensemble(['schema', '--dir', '.'], { cwd });
    expect([code, stderr]).toEqual([0, '']);
    const { definitions } = JSON.parse(stdout);
    const offered = (form: string, key: string) =>
      definitions[form].properties[key].anyOf.find((one: { enum?: unknown }) => one.enum).enum;
    expect(offered('agentStep', 'agent')).toEqual(['fetch-user', 'shared']);
    expect(offered('config-code', 'script')).toEqual(['other', 'pricing/total']);
    expect(offered('ensembleStep', 'ensemble')).toEqual(['broken', 'order']);
    expect(offered('agent', 'operation')).toEqual([
      'api',
      'code',
      'email',
      'sms',
      'pdf',
      'storage',
      'think',
      'tools',
      'rate',
    ]);
  });

  it('--dir names a folder that does not exist', async () => {
    const { code, stderr } = await ensemble(['schema', '--dir', 'nowhere'], { cwd: makeFolder({}) });
    expect([code, stderr]).toEqual([1, expect.stringContaining('there is no folder')]);
  });
});

describe('openapi', () => {
  it('prints the document of the API, with the brand of a project and the path of a mount', async () => {
    const cwd = makeFolder({
      'ensemble.config.mjs': "export default { brand: 'acme' };\n",
      'ensembles/a.yaml': 'name: a\nflow: []\n',
    });
    const { code, stdout, stderr } = await ensemble(['openapi', '--dir', '.', '--base-path', '/orders'], { cwd });
    expect([code, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toMatchObject({
      openapi: '3.1.0',
      servers: [{ url: '/orders' }],
      components: { securitySchemes: { apiKey: { name: 'X-ACME-API-KEY' } } },
    });
    const wrong = await ensemble(['openapi', '--base-path', 'orders'], { cwd });
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('begins with a slash')]);
  });
});
