/** What an operation returns is declared once: what it really returns fits it, and so do its TypeScript type and its page. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/engine/base/json/json.ts';
import { compileJsonSchema } from '../../src/engine/json-schema/compile-json-schema.ts';
import { sqliteDatabase } from '../../src/entries/sqlite.ts';
import {
  createTestOrchestrator,
  fakeModel,
  memoryMail,
  memorySms,
  stubHttp,
  stubPdf,
} from '../../src/entries/testing.ts';
import { compileHost } from '../../src/orchestrator/create-orchestrator.ts';
import { ROOT } from '../architecture/source-graph.ts';

const options = () => ({
  http: stubHttp({
    'GET https://x.example/one': { status: 200, json: { a: 1 } },
    'GET https://x.example/list?page=1': { status: 200, json: [1, 2] },
    'HEAD https://x.example/one': { status: 200 },
    'POST https://crm.example/tools/find': { status: 200, json: { content: 'x' } },
  }),
  mail: { mail: memoryMail() },
  sms: { sms: memorySms() },
  pdf: stubPdf(),
  bindings: { sql: sqliteDatabase({ path: ':memory:' }) },
  mcpServers: { crm: { url: 'https://crm.example' } },
  models: { m: fakeModel(['text', '{"kind":"a"}']) },
});

const mail = { from: 's@x.example', subject: 's', body: 'b' };
const kv = (action: string, more: object = {}) => ['storage', { type: 'kv', action, key: 'k', ...more }] as const;
const object = (action: string, more: object = {}) =>
  ['storage', { type: 'objects', action, key: 'o', ...more }] as const;
/** In this order, in one flow. */
const STEPS: readonly (readonly [operation: string, config: object])[] = [
  ['api', { url: 'https://x.example/one' }],
  ['api', { url: 'https://x.example/one', method: 'HEAD' }],
  ['api', { url: 'https://x.example/list', query: { page: 1 }, paginate: { by: 'page', param: 'page', maxPages: 1 } }],
  kv('put', { value: { a: 1 } }),
  kv('get'),
  ['storage', { type: 'kv', action: 'list' }],
  kv('delete'),
  object('put', { value: '[{"a":1}]' }),
  object('get'),
  object('get', { format: 'json' }),
  ['storage', { type: 'objects', action: 'list' }],
  object('delete'),
  ['storage', { type: 'sql', action: 'execute', query: 'CREATE TABLE t (id INTEGER)' }],
  ['storage', { type: 'sql', query: 'SELECT 1 AS id' }],
  ['storage', { type: 'sql', action: 'export', query: 'SELECT 1 AS id' }],
  ['storage', { type: 'sql', action: 'execute', query: 'DELETE FROM t' }],
  ['email', { ...mail, to: 'a@x.example' }],
  ['email', { ...mail, batch: { recipients: [{ email: 'a@x.example' }] } }],
  ['sms', { to: '+15550100', body: 'b' }],
  ['pdf', { html: '<p>x</p>' }],
  ['think', { model: 'm', prompt: 'p' }],
  ['think', { model: 'm', prompt: 'p', schema: { type: 'object', properties: { kind: { enum: ['a'] } } } }],
  ['tools', { mcp: 'crm', tool: 'find' }],
];

function schemaOf(operation: string, config: object): JsonObject {
  const { output } = compileHost(options() as never).operations.get(operation) ?? {};
  return (
    typeof output === 'function' && !('~standard' in output) ? output(config as JsonObject) : output
  ) as JsonObject;
}

it('what each operation returns fits its schema, which allows no other fields', async () => {
  const orchestrator = createTestOrchestrator({
    ...options(),
    ensembles: [
      { name: 'e', flow: STEPS.map(([operation, config], i) => ({ agent: `a${i}`, operation, config })) } as never,
    ],
  });
  const { agents, error } = await orchestrator.execute('e');
  expect(error).toBeUndefined();
  for (const [i, [operation, config]] of STEPS.entries()) {
    const schema = schemaOf(operation, config);
    expect(schema, operation).toMatchObject({ type: 'object', additionalProperties: false });
    expect(
      compileJsonSchema(schema)(agents[i]?.output as never),
      `${operation} ${JSON.stringify(config)}`,
    ).toHaveProperty('value');
  }
});

/** The members of an interface, with a `?` after those that may be missing. */
function membersOf(path: string, name: string): string[] {
  const ast = ts.createSourceFile(path, readFileSync(join(ROOT, 'src', path), 'utf8'), ts.ScriptTarget.Latest);
  const found = ast.statements.find(
    (one): one is ts.InterfaceDeclaration => ts.isInterfaceDeclaration(one) && one.name.text === name,
  );
  return (found?.members ?? []).map((one) => `${(one.name as ts.Identifier).text}${one.questionToken ? '?' : ''}`);
}

const TYPED: readonly (readonly [
  page: string,
  operation: string,
  config: object,
  path: string,
  types: readonly string[],
])[] = [
  ['api', 'api', {}, 'operations/api/answer.ts', ['ApiOutput']],
  ['email', 'email', { to: 'x' }, 'operations/email/email-operation.ts', ['EmailOutput']],
  ['email', 'email', { batch: {} }, 'operations/email/batch.ts', ['BatchOutput']],
  ['sms', 'sms', {}, 'operations/sms/sms-operation.ts', ['SmsOutput']],
  ['pdf', 'pdf', {}, 'operations/pdf/pdf-operation.ts', ['PdfOutput']],
  ['think', 'think', { schema: {} }, 'operations/think/think-operation.ts', ['ThinkOutput']],
  ['tools', 'tools', {}, 'operations/tools/tools-operation.ts', ['ToolsOutput']],
];

describe.each(TYPED)('the output of %s', (page, operation, config, path, types) => {
  const { properties, required } = schemaOf(operation, config) as { properties: JsonObject; required: string[] };

  it('has the fields of its TypeScript type', () => {
    const typed = types.flatMap((name) => membersOf(path, name)).map((member) => member.replace('?', ''));
    expect(Object.keys(properties).sort()).toEqual(typed.sort());
  });

  it('has what its TypeScript type says is always there', () => {
    const always = types.flatMap((name) => membersOf(path, name)).filter((member) => !member.endsWith('?'));
    // With a `schema`, the answer of a model has an object.
    expect(required.filter((name) => name !== 'object').sort()).toEqual(always.sort());
  });

  it('is on its page', () => {
    const text = readFileSync(join(ROOT, `docs/operations/${page}.md`), 'utf8');
    for (const name of Object.keys(properties)) expect(text, name).toMatch(new RegExp(`[\`{ ,]${name}\\b`));
  });
});

it('every field that `storage` returns is on its page', () => {
  const text = readFileSync(join(ROOT, 'docs/operations/storage.md'), 'utf8');
  for (const [operation, config] of STEPS.filter(([name]) => name === 'storage'))
    for (const name of Object.keys(schemaOf(operation, config).properties as JsonObject))
      expect(text, `${name} of ${JSON.stringify(config)}`).toMatch(new RegExp(`[\`{ ,]${name}\\b`));
});
