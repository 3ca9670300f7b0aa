/** What `createOrchestrator` says about the options `mcpServers` and `mcp`. */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, test } from 'vitest';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import { loadProject } from '../../src/entries/node.ts';
import { createOrchestrator, type OrchestratorOptions } from '../../src/index.ts';

const url = 'https://tools.example/v1';
const tokenUrl = 'https://login.example/token';
const mcp = {
  connect: () => ({ listTools: async () => [], callTool: async () => ({ content: null, isError: false }) }),
};

const create = (server: unknown, more: object = {}) =>
  createOrchestrator({ mcpServers: { crm: server }, ...more } as unknown as OrchestratorOptions);

it.each<[string, object]>([
  ['a public server', { url }],
  ['a bearer token', { url, auth: { type: 'bearer', token: 't' } }],
  ['OAuth', { url, auth: { type: 'oauth', clientId: 'c', clientSecret: 's', tokenUrl } }],
  ['everything', { url: 'http://localhost:3000', timeout: 5000, secret: 's', transport: 'mcp' }],
  ['a duration in words', { url, timeout: '1m', transport: 'http' }],
])('%s is accepted', (_what, server) => {
  expect(() => create(server, { mcp })).not.toThrow();
});

it.each<[string, unknown, RegExp]>([
  ['no object', 'https://tools.example', /`mcpServers\.crm` must be \{ url, auth\?, timeout\?, secret\? \}/],
  ['no url', {}, /`mcpServers\.crm`: `url` must be an absolute http or https URL/],
  ['a relative url', { url: '/tools' }, /`url` must be an absolute/],
  ['another scheme', { url: 'file:///etc/passwd' }, /`url` must be an absolute http or https URL/],
  ['user info', { url: 'https://user:planted@tools.example' }, /`url` holds a user name or password; use `auth`/],
  ['a misspelled key', { url, timeuot: 5 }, /`timeuot` is not an option of this version; did you mean `timeout`\?/],
  [
    'a command',
    { command: 'npx', args: ['server'] },
    /subprocess \(stdio\) are not supported; run the server over HTTP/,
  ],
  ['stdio', { type: 'stdio', url }, /subprocess \(stdio\) are not supported/],
  ['stdio as transport', { url, transport: 'stdio' }, /subprocess \(stdio\) are not supported/],
  ['another transport', { url, transport: 'sse' }, /`transport` must be 'http' or 'mcp'/],
  [
    'mcp without a client',
    { url, transport: 'mcp' },
    /needs the option `mcp`, a client from 'ensemble-orchestrator\/mcp'/,
  ],
  ['a timeout of 0', { url, timeout: 0 }, /`timeout` must be a duration/],
  ['a timeout in other words', { url, timeout: 'soon' }, /`timeout` must be a duration/],
  ['an empty secret', { url, secret: '' }, /`secret` must be text, not empty/],
  [
    'auth that is no object',
    { url, auth: 'planted' },
    /`auth` must be \{ type: 'bearer', token \} or \{ type: 'oauth'/,
  ],
  ['auth of no type', { url, auth: { token: 'planted' } }, /`auth` must be \{ type: 'bearer'/],
  ['an unknown type', { url, auth: { type: 'toString' } }, /`auth` must be \{ type: 'bearer'/],
  ['an empty token', { url, auth: { type: 'bearer', token: '' } }, /`auth`: `token` must be text, not empty/],
  ['a token that is not set', { url, auth: { type: 'bearer', token: undefined } }, /`token` must be text, not empty/],
  ['a line break in a token', { url, auth: { type: 'bearer', token: 'planted\r\nX: y' } }, /`token` has a character/],
  [
    'a key of the other type',
    { url, auth: { type: 'bearer', token: 'planted', clientId: 'c' } },
    /`clientId` is not an option/,
  ],
  ['no client secret', { url, auth: { type: 'oauth', clientId: 'c', tokenUrl } }, /`clientSecret` must be text/],
  [
    'no token url',
    { url, auth: { type: 'oauth', clientId: 'c', clientSecret: 'planted' } },
    /`tokenUrl` must be an absolute/,
  ],
  [
    'user info in a token url',
    { url, auth: { type: 'oauth', clientId: 'c', clientSecret: 'planted', tokenUrl: 'https://a:planted@b.example' } },
    /`tokenUrl` holds a user name/,
  ],
])('%s is refused, without a secret in the message', (what, server, message) => {
  let thrown: unknown;
  try {
    create(server);
  } catch (error) {
    thrown = error;
  }
  const hasCode = /stdio|mcp without a client|a command/.test(what);
  expect(thrown).toBeInstanceOf(hasCode ? OrchestratorError : TypeError);
  if (hasCode) expect(thrown).toMatchObject({ code: 'NOT_CONFIGURED' });
  expect((thrown as Error).message).toMatch(message);
  expect((thrown as Error).message).not.toContain('planted');
});

test('`mcpServers` and `mcp` themselves are checked', () => {
  expect(() => createOrchestrator({ mcpServers: [] as never })).toThrow(
    '`mcpServers` must be an object with names as keys',
  );
  expect(() => createOrchestrator({ mcp: {} as never })).toThrow(
    /`mcp` must be an McpClient of `ensemble-orchestrator.mcp`/,
  );
  expect(() => createOrchestrator({ mcpServer: {} } as never)).toThrow('did you mean `mcpServers`?');
});

test('the config of a project has tool servers, and loadProject adds others', async () => {
  const project = async (config: string) => {
    const directory = await mkdtemp(join(folder, 'project-'));
    await mkdir(join(directory, 'ensembles'));
    const step = (name: string) => `  - { agent: ${name}, operation: tools, config: { mcp: ${name}, tool: x } }\n`;
    await writeFile(join(directory, 'ensembles/ask.yaml'), `name: ask\nflow:\n${step('crm')}${step('erp')}`);
    await writeFile(join(directory, 'ensemble.config.mjs'), `export default ${config};\n`);
    return directory;
  };
  const folder = await mkdtemp(join(tmpdir(), 'tools-'));
  try {
    const right = await project(`{ mcpServers: { crm: { url: '${url}' } } }`);
    await expect(loadProject(right)).rejects.toThrow('there is no tool server `erp`');
    const options = await loadProject(right, { mcpServers: { erp: { url } } });
    expect(Object.keys(options.mcpServers ?? {})).toEqual(['crm', 'erp']);
    expect(createOrchestrator(options)).toBeDefined();
    const wrong = await project('{ mcpServers: { crm: { url: 7 } } }');
    await expect(loadProject(wrong)).rejects.toThrow('`mcpServers.crm`: `url` must be an absolute');
  } finally {
    await rm(folder, { recursive: true });
  }
});
