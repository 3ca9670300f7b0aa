/** Servers that repeat in an error what they received: no secret of it is in the record, the events, the log or an answer over HTTP. */

import { afterEach, beforeEach, expect, it } from 'vitest';
import { mcpClient } from '../../src/entries/mcp.ts';
import { createHandler, createOrchestrator, type OrchestratorEvent } from '../../src/index.ts';
import { type LocalServer, localHttp, reply, startServer } from './tool-server.ts';

let server: LocalServer;
let tokens: LocalServer;
beforeEach(async () => {
  server = await startServer();
  tokens = await startServer();
});
afterEach(() => Promise.all([server.close(), tokens.close()]));

const JSON_TYPE = { 'content-type': 'application/json' };
const QUERY = '?key=planted%2Fquery-value&v=1';

function tool(agent: string, mcp: string, transport: 'http' | 'mcp') {
  return { agent, operation: 'tools', config: { mcp, tool: 'x', transport }, input: {}, continueOnError: true };
}

function api(agent: string, config: object) {
  return { agent, operation: 'api', config: { url: `${server.url}/`, ...config }, continueOnError: true };
}

function model(agent: string, provider: string, stream: boolean) {
  const config = { provider, model: 'm', prompt: 'hello', stream };
  return { agent, operation: 'think', config, continueOnError: true };
}

function agents() {
  return [
    api('header', { headers: { 'X-Key': 'planted-header-value' } }),
    api('bearer', { auth: { type: 'bearer', token: 'planted-bearer-token' } }),
    api('basic', { auth: { type: 'basic', username: 'user', password: 'planted-password' } }),
    api('secret', { url: `${server.url}/?k=\${env.KEY}` }),
    ...(['http', 'mcp'] as const).flatMap((transport) =>
      ['bearer', 'short', 'oauth', 'signed', 'query'].map((name) => tool(`${transport}_${name}`, name, transport)),
    ),
    ...[false, true].flatMap((stream) => ['key', 'query'].map((name) => model(`${name}_${stream}`, name, stream))),
  ];
}

function options(flow: readonly object[]) {
  const { url } = server;
  const auth = { type: 'oauth', clientId: 'id', clientSecret: 'planted-client-secret' } as const;
  return {
    ensembles: [{ name: 'e', flow } as never],
    http: localHttp(),
    mcp: mcpClient(),
    secrets: { KEY: 'planted-secret' },
    mcpServers: {
      bearer: { url, auth: { type: 'bearer', token: 'planted-server-token' } },
      short: { url, auth: { type: 'bearer', token: 'plante' } },
      oauth: { url, auth: { ...auth, tokenUrl: `${tokens.url}/token${QUERY}` } },
      signed: { url, secret: 'planted-signing-secret' },
      query: { url: `${url}/${QUERY}` },
    },
    models: {
      key: { url, apiKey: 'planted-model-key', headers: { 'X-Key': 'planted-model-header' } },
      query: { url: `${url}/${QUERY}` },
    },
  } as const;
}

it.each([
  [400, 'JSON', JSON_TYPE],
  [401, 'text', { 'content-type': 'text/plain' }],
  [404, 'JSON', JSON_TYPE],
  [500, 'text', {}],
])('status %i with %s', async (status, _, headers) => {
  server.answer = (request, response) => {
    const { authorization = '' } = request.headers;
    const password = Buffer.from(authorization.replace('Basic ', ''), 'base64').toString();
    const sent = `${decodeURIComponent(request.target)} ${Object.values(request.headers)} ${request.target} ${password}`;
    const body = headers === JSON_TYPE ? JSON.stringify({ error: { message: sent } }) : sent;
    reply(status, body, headers)(request, response);
  };
  tokens.answer = (request, response) => {
    if (status !== 400)
      return { access_token: 'planted-access-token', refresh_token: 'planted-refresh', expires_in: 0 };
    const { authorization: error } = request.headers;
    return reply(
      400,
      JSON.stringify({ error, error_description: `${error}${request.target}` }),
      JSON_TYPE,
    )(request, response);
  };
  const seen: unknown[] = [];
  const line = (...parts: unknown[]) => void seen.push(...parts);
  const flow = agents();
  const orchestrator = createOrchestrator({
    ...options(flow),
    logger: { debug: line, info: line, warn: line, error: line },
  });
  orchestrator.on('*', (event: OrchestratorEvent) => seen.push(event));
  const run = await orchestrator.execute('e');
  expect(run.agents).toHaveLength(flow.length);
  expect(run.agents.map(({ error }) => error?.code)).toEqual(flow.map(() => 'AGENT_FAILED'));
  seen.push(run, await orchestrator.executions.get(run.id), await orchestrator.executions.history(run.id));
  const { token } = await orchestrator.tokens.create({ name: 'reader', scopes: ['read:executions'] });
  const { fetch } = createHandler(orchestrator);
  for (const path of ['', '/events', '/history']) {
    const url = `http://host.example/api/v1/executions/${run.id}${path}`;
    seen.push(await (await fetch(new Request(url, { headers: { authorization: `Bearer ${token}` } }))).text());
  }
  await orchestrator.close();

  const errors: unknown[] = [];
  const written = JSON.stringify(seen, (_key, value: unknown) => {
    if (!(value instanceof Error)) return value;
    errors.push(value);
    return { ...value, message: value.message, stack: value.stack, cause: value.cause };
  });
  expect(errors.length).toBeGreaterThan(0);
  for (const found of written.match(/.{0,80}(?:plante|sha256=[0-9a-f]).{0,40}/g) ?? []) expect(found).toBe('');
  expect(written).toContain('***');
});
