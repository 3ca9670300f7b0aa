/** The OpenAPI document: it is valid, has every route, and says what the routes take and answer. */

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import openapiTS, { astToString } from 'openapi-typescript';
import { describe, expect, it } from 'vitest';
import { toNodeListener } from '../../src/entries/node.ts';
import { API_ROUTES } from '../../src/http-handlers/api/routes.ts';
import { createHandler, createOrchestrator } from '../../src/index.ts';
import { markdownFiles, ROOT } from '../docs/code-blocks.ts';
import { OPEN_API } from '../http-api/check-response.ts';
import { serve } from '../http-api/hosts.ts';
import { renderPage } from './render-page.ts';

type Greet = (
  baseUrl: string,
  token: string,
) => Promise<{ readonly id: string; readonly tags: readonly string[]; readonly problem: string }>;
type Operation = Readonly<Record<string, unknown>> & { readonly operationId: string };
const document = OPEN_API as { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> };
const all = Object.values(document.paths).flatMap((path) => Object.values(path));

const ENSEMBLE = {
  name: 'greet',
  inputs: { who: { type: 'string', required: true } },
  flow: [{ wait: 'go', timeout: '1h' }],
  outputs: { text: 'Hello ${input.who}' },
};

describe('the document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const { valid, errors } = await new Validator().validate(JSON.parse(JSON.stringify(OPEN_API)));
    expect([valid, errors]).toEqual([true, undefined]);
  });

  it('names the parts of paths as the pages of the documentation do', () => {
    const written = markdownFiles().flatMap((file) => {
      const text = readFileSync(join(ROOT, file), 'utf8');
      return [...text.matchAll(/\/api\/v1\/[a-z/]*(?:\{[a-z]+\}|:[a-z]+)[a-z/{}:]*/g)].map(
        ([path]) => `${file}: ${path}`,
      );
    });
    expect(written.length).toBeGreaterThan(50);
    expect(written.filter((one) => document.paths[one.slice(one.indexOf(': ') + 2)] === undefined)).toEqual([]);
  });

  it('has every route once, and no other; the ids differ', () => {
    expect(all).toHaveLength(API_ROUTES.length);
    expect(new Set(all.map(({ operationId }) => operationId)).size).toBe(all.length);
  });

  it('shows the forms that check the bodies', () => {
    const { post } = document.paths['/api/v1/tokens'] ?? {};
    expect(post?.requestBody).toMatchObject({
      required: true,
      content: {
        'application/json': {
          schema: {
            required: ['name', 'scopes'],
            additionalProperties: false,
            properties: { plan: { anyOf: [{ enum: ['free', 'pro', 'enterprise'] }, { type: 'object' }] } },
          },
        },
      },
    });
    const { post: execute } = document.paths['/api/v1/execute/ensemble/{name}'] ?? {};
    expect(execute?.requestBody).toMatchObject({
      content: {
        'application/json': {
          schema: { properties: { input: { type: 'object', additionalProperties: true }, async: { type: 'boolean' } } },
        },
      },
    });
  });

  it('is served without a token, uncounted, with the paths of a mounted handler and the header of the brand', async () => {
    const orchestrator = createOrchestrator({ brand: 'acme', logger: false });
    const handler = createHandler(orchestrator, { basePath: '/service' });
    const response = await handler.fetch(new Request('http://localhost/service/api/v1/openapi.json'));
    const served = await response.json();
    expect([response.status, response.headers.get('x-ratelimit-limit')]).toEqual([200, null]);
    expect(served.servers).toEqual([{ url: '/service' }]);
    expect(served.components.securitySchemes.apiKey.name).toBe('X-ACME-API-KEY');
    expect(served.paths).toEqual(JSON.parse(JSON.stringify(document.paths)));
  });
});

/** What a user of the client writes. The test runs it, and checks its types. */
const CLIENT = `import createClient from 'openapi-fetch';
import type { paths } from './api.ts';

export async function greet(baseUrl: string, token: string): Promise<{ id: string; tags: string[]; problem: string }> {
  const client = createClient<paths>({ baseUrl, headers: { authorization: \`Bearer \${token}\` } });
  const started = await client.POST('/api/v1/execute/ensemble/{name}', {
    params: { path: { name: 'greet' } },
    body: { input: { who: 'Ada' }, async: true, tags: ['order=7'] },
  });
  if (!started.data) throw new Error(started.error.error.message);
  const found = await client.GET('/api/v1/executions', { params: { query: { tag: 'order=7' } } });
  const [first] = found.data?.executions ?? [];
  const id: string = first?.id ?? '';
  await client.POST('/api/v1/executions/{id}/signals/{signal}', {
    params: { path: { id, signal: 'go' } },
    body: { by: 'clerk' },
  });
  const unknown = await client.GET('/api/v1/jobs/{id}', { params: { path: { id: 'job_1' } } });
  return { id, tags: first?.tags ?? [], problem: unknown.error?.error.code ?? '' };
}
`;
const MISTAKES = `import createClient from 'openapi-fetch';
import type { paths } from './api.ts';

const client = createClient<paths>({ baseUrl: '' });
// @ts-expect-error there is no such path
void client.GET('/api/v1/execution');
// @ts-expect-error a token needs scopes
void client.POST('/api/v1/tokens', { body: { name: 'a' } });
// @ts-expect-error there is no such scope
void client.POST('/api/v1/tokens', { body: { name: 'a', scopes: ['read'] } });
`;

it('a client whose types are made from the document runs against a live server, and its mistakes are type errors', async () => {
  const folder = join(import.meta.dirname, '.generated');
  mkdirSync(folder, { recursive: true });
  const types = astToString(await openapiTS(JSON.stringify(OPEN_API)));
  for (const [name, text] of Object.entries({ 'api.ts': types, 'client.ts': CLIENT, 'mistakes.ts': MISTAKES }))
    writeFileSync(join(folder, name), text);
  const files = ['client.ts', 'mistakes.ts'].map((name) => join(folder, name));
  const flags = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022', '--module', 'nodenext'];
  const tsc = join(import.meta.dirname, '../../node_modules/typescript/bin/tsc');
  const checked = spawnSync(process.execPath, [tsc, ...flags, '--allowImportingTsExtensions', ...files]);
  expect(checked.stdout.toString()).toBe('');

  const orchestrator = createOrchestrator({ ensembles: [ENSEMBLE], logger: false });
  const { token } = await orchestrator.tokens.create({ name: 'client', scopes: ['admin'], plan: 'enterprise' });
  const { greet } = (await import(join(folder, 'client.ts'))) as { greet: Greet };
  const { id, tags, problem } = await greet(await serve(toNodeListener(createHandler(orchestrator))), token);
  expect([tags, problem]).toEqual([['order=7'], 'NOT_FOUND']);
  await expect.poll(async () => (await orchestrator.executions.get(id)).output).toEqual({ text: 'Hello Ada' });
  await orchestrator.close({ grace: 0 });
});

it('the page of the docs is made from the document; after a change: npx vitest run test/openapi -u', async () => {
  const page = join(import.meta.dirname, '../../docs/reference/http-operations.md');
  await expect(renderPage(OPEN_API)).toMatchFileSnapshot(page);
});
