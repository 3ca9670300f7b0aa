/** What an editor offers, shows and reports in definition files, by the language server that most editors use. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { definitionSchema } from '../../src/cli/schema/definition-schema.ts';
import { defineOperation } from '../../src/index.ts';
import { compileHost } from '../../src/orchestrator/create-orchestrator.ts';
import { ROOT, readBlocks } from '../docs/code-blocks.ts';
import { type LanguageServer, startLanguageServer } from './language-server.ts';

const FIRST_LINE = '# yaml-language-server: $schema=../ensemble.schema.json\n';

let folder: string;
let server: LanguageServer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'ensemble-editor-'));
  const rate = defineOperation({
    name: 'rate',
    config: z.object({ model: z.enum(['small', 'large']), limit: z.number().optional().describe('How many.') }),
    run: () => null,
  });
  const names = { agents: ['fetch-user'], scripts: ['greet', 'pricing/total'], ensembles: ['hello'] };
  const schema = definitionSchema(compileHost({ operations: [rate] }).operations, names);
  writeFileSync(join(folder, 'ensemble.schema.json'), JSON.stringify(schema));
  server = await startLanguageServer(folder);
}, 60_000);

afterAll(() => {
  server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const labels = async (text: string) => (await server.complete(FIRST_LINE + text)).map(({ label }) => label);
/** A definition with one step; `|>` is the cursor. */
const withStep = (...lines: string[]) => `name: a\nflow:\n  - ${lines.join('\n    ')}\n`;

describe('completion', () => {
  it('offers the keys of a definition in their current spelling', async () => {
    const keys = [
      'description',
      'trigger',
      'agents',
      'inputs',
      'outputs',
      'notifications',
      'state',
      'timeout',
      'concurrency',
      'rate',
      'startWithin',
      'priority',
      'debounce',
      'batch',
      'fair',
      'perProcess',
      'execution',
    ];
    expect(await labels('name: a\nflow: []\n|>')).toEqual(keys);
  });

  it('offers the verbs of a step, with what each does', async () => {
    const offered = await server.complete(`${FIRST_LINE}${withStep('|>')}`);
    const verbs = [
      'agent',
      'if',
      'foreach',
      'parallel',
      'switch',
      'while',
      'try',
      'sleep',
      'until',
      'wait',
      'ensemble',
    ];
    expect(offered.map(({ label }) => label)).toEqual(verbs);
    expect(offered[0]?.documentation).toBe('Runs an agent.');
    expect(await labels(withStep('name: x', '|>'))).toEqual(verbs);
  });

  it('offers the keys of the form that the verb decides', async () => {
    const keys = ['as', 'breakWhen', 'collect', 'concurrency', 'condition', 'continueOnError', 'name', 'steps'];
    expect((await labels(withStep('foreach: [1]', '|>'))).sort()).toEqual(keys);
    expect((await labels(withStep('if: x', 'then:', '  - try: []', '    |>'))).sort()).toEqual(['catch', 'finally']);
    expect(await labels(withStep('agent: x', '|>'))).not.toContain('when');
  });

  it('offers the keys and values of `config` by operation', async () => {
    const inConfig = (operation: string, ...lines: string[]) =>
      labels(withStep('agent: x', `operation: ${operation}`, 'config:', ...lines.map((line) => `  ${line}`)));
    expect(await labels(withStep('agent: x', 'operation: |>'))).toEqual([
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
    expect(await inConfig('api', '|>')).toEqual([
      'url',
      'method',
      'query',
      'headers',
      'body',
      'form',
      'multipart',
      'binary',
      'timeout',
      'auth',
      'expect',
      'paginate',
      'response',
    ]);
    expect(await inConfig('api', 'url: x', 'method: |>')).toEqual([
      'GET',
      'POST',
      'PUT',
      'PATCH',
      'DELETE',
      'HEAD',
      'OPTIONS',
    ]);
    expect(await inConfig('api', 'auth:', '  type: bearer', '  |>')).toEqual(['token']);
    const paging = await inConfig('api', 'paginate:', '  by: cursor', '  |>');
    expect(paging).toEqual(['cursor', 'param', 'items', 'maxPages']);
    expect(await inConfig('storage', 'action: |>')).toEqual([
      ...['get', 'put', 'delete', 'list', 'query', 'execute', 'export'],
    ]);
    expect(await inConfig('code', '|>')).toEqual(['script']);
    expect(await inConfig('rate', '|>')).toEqual(['model', 'limit']);
    expect(await inConfig('mine', '|>')).toEqual([]);
    expect(await labels('name: a\nflow: []\nagents:\n  - name: x\n    operation: code\n    config:\n      |>')).toEqual(
      ['script'],
    );
  });

  it("offers the project's agents, scripts and ensembles", async () => {
    expect(await labels(withStep('agent: |>'))).toEqual(['fetch-user']);
    expect(await labels(withStep('ensemble: |>'))).toEqual(['hello']);
    expect(await labels(withStep('agent: x', 'operation: code', 'config: { script: gr|> }'))).toContain('greet');
    expect(await labels(withStep('agent: x', 'routes:', '  - default: true', '    member: |>'))).toEqual([
      'fetch-user',
    ]);
  });

  it('offers the keywords of a JSON Schema where `inputs` is one, and the keys of a field otherwise', async () => {
    expect(await labels('name: a\nflow: []\ninputs:\n  type: object\n  |>')).toContain('required');
    const field = ['type', 'required', 'default', 'enum', 'description'];
    expect(await labels('name: a\nflow: []\ninputs:\n  x:\n    |>')).toEqual(field);
  });
});

describe('hover', () => {
  const hover = async (text: string) => (await server.hover(FIRST_LINE + text)).replace(/\n+Source: [\s\S]*$/, '');

  it('shows what the documentation says about a key', async () => {
    const retry = (key: string) => withStep('agent: x', `retry: { ${key}: 3 }`);
    expect(await hover(withStep('fore|>ach: "${input.list}"', 'steps: []'))).toBe(
      'The items, at most 100,000. Value: one `${...}` that gives a list, or a list; required.',
    );
    expect(await hover(withStep('foreach: [1]', 'a|>s: x'))).toBe(
      'Names the item inside the block. Value: a name. Default: `item`.',
    );
    expect(await hover(retry('maxAt|>tempts'))).toContain('the first included');
    expect(await hover(withStep('wait: x', 'time|>out: 5m'))).toContain('The longest wait');
    expect(await hover(withStep('agent: x', 'operation: api', 'config: { url: x, time|>out: 5 }'))).toContain(
      'whole exchange',
    );
    expect(await hover(withStep('agent: x', 'operation: rate', 'config: { lim|>it: 5 }'))).toContain('How many.');
    expect(await hover('name: a\nflow: []\nmem|>bers: []\n')).toBe('Means the same as `agents`.');
  });
});

describe('diagnostics', () => {
  const problems = async (text: string) =>
    (await server.diagnose(FIRST_LINE + text)).map(({ line, marked, message }) => `${line} ${marked}: ${message}`);

  it.each<[step: readonly string[], problem: string]>([
    [['agnt: x'], '4 agnt: Property agnt is not allowed.'],
    [
      ['name: x'],
      '4 name: x: a step needs one of `agent`, `if`, `foreach`, `parallel`, `switch`, `while`, `try`, `sleep`, `until`, `wait`, `ensemble` to say what it does',
    ],
    [['foreach: "${input.list}"', 'stpes: []'], '5 stpes: Property stpes is not allowed.'],
    [['foreach: "${input.list}"'], '4 f: Missing property "steps".'],
    [['foreach: "${input.list}"', 'steps: [{ agent: b }]', 'agent: y'], '6 agent: Property agent is not allowed.'],
    [['if: x', 'then:', '  - parallel:', '      - { agnet: b }'], '7 agnet: Property agnet is not allowed.'],
    [['agent: a', 'retry: { attempts: 3 }'], '5 attempts: Property attempts is not allowed.'],
    [['agent: a b'], '4 a b: must be a name (a letter, then up to 63 letters, digits, `_` or `-`)'],
    [['agent: a', 'when: x', 'condition: x'], '5 when: means the same as `condition`; keep one of them'],
    [['agent: a', 'operation: api', 'config: { ulr: x }'], '6 ulr: Property ulr is not allowed.'],
    [['agent: a', 'operation: api', 'config: { method: GET }'], '6 config: Missing property "url".'],
    [
      ['agent: a', 'operation: api', 'config: { url: x, method: FETCH }'],
      '6 FETCH: must be one of GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS',
    ],
    [['agent: a', 'operation: api', 'config: { url: x, auth: { type: bearer } }'], '6 auth: Missing property "token".'],
    [
      ['agent: a', 'operation: rate', 'config: { model: huge }'],
      '6 huge: Value is not accepted. Valid values: "small", "large".',
    ],
    [['sleep: 5 minutes'], '4 5 minutes: must be a duration such as `24h`, or milliseconds'],
    [['try: [{ agent: b }]'], '4 t: a `try` step needs `catch` or `finally`'],
  ])('reports one problem for one mistake: %j', async (lines, problem) => {
    expect(await problems(withStep(...lines))).toEqual([problem]);
  });

  it('reports one problem of a trigger and of the top level', async () => {
    const top = 'name: a\nflow: []\n';
    expect(await problems(`${top}trigger:\n  - { type: webhook, path: /a }\n`)).toEqual([
      '5 {: a webhook needs `auth`, or `public: true`',
    ]);
    expect(await problems(`${top}trigger:\n  - { type: schedule, crn: x }\n`)).toEqual([
      '5 crn: Property crn is not allowed.',
    ]);
    expect(await problems(`${top}outptus: {}\n`)).toEqual(['4 outptus: Property outptus is not allowed.']);
    expect(await problems(`${top}output: {}\noutputs: {}\n`)).toEqual([
      '4 output: means the same as `outputs`; keep one of them',
    ]);
    expect(await problems(`${top}inputs: { a: { type: text } }\n`)).toHaveLength(1);
  });

  it('accepts old spellings, names that the schema does not have, operations that it does not know, and expressions', async () => {
    expect(await problems('name: a\nflow:\n  - member: other\n    when: x\nmembers: []\noutput: {}\n')).toEqual([]);
    expect(await problems(withStep('agent: x', 'operation: mine', 'config: { anything: 1 }'))).toEqual([]);
    expect(await problems(withStep('agent: x', 'operation: code', 'config: { script: new }'))).toEqual([]);
    const config =
      'config: { url: "${env.URL}", timeout: "${input.t}", auth: "${input.auth}", query: { a: "${input.a}" }, multipart: { a: "${input.a}" }, paginate: "${input.p}" }';
    expect(await problems(withStep('agent: x', 'operation: api', config))).toEqual([]);
  });

  it('reports nothing in the ensembles of the documentation and the examples', async () => {
    const blocks = readBlocks().filter(
      ({ language, marks, code }) => language === 'yaml' && /^flow:/m.test(code) && !marks.includes('broken'),
    );
    const files = readdirSync(join(ROOT, 'examples'), { recursive: true, encoding: 'utf8' })
      .filter((path) => /(^|\/)ensembles\/[^/]+\.ya?ml$/.test(path) && !/node_modules|\.test\.ya?ml$/.test(path))
      .map((path) => ({ at: path, code: readFileSync(join(ROOT, 'examples', path), 'utf8') }));
    expect(Math.min(blocks.length, files.length)).toBeGreaterThan(0);
    const found = await Promise.all(
      [...blocks, ...files].map(async ({ at, code }) => ({ at, problems: await problems(code) })),
    );
    expect(found.filter((one) => one.problems.length > 0)).toEqual([]);
  });

  it('checks a file with a shared agent by the part of the schema for agents', async () => {
    const first = '# yaml-language-server: $schema=../ensemble.schema.json#/definitions/agent\n';
    const agent = 'name: fetch-user\noperation: api\nconfig: { url: https://users.example/1 }\n';
    expect(await server.diagnose(first + agent)).toEqual([]);
    expect(await server.diagnose(`${first}${agent}flow: []\n`)).toMatchObject([{ line: 5, marked: 'flow' }]);
  });
});

describe('network', () => {
  it('is never used', () => {
    expect(server.network()).toEqual([]);
  });

  it('is watched: a schema on the web is an attempt', async () => {
    await server.diagnose('# yaml-language-server: $schema=https://schemas.example/ensemble.json\nname: a\n');
    expect(server.network().length).toBeGreaterThan(0);
  });
});
