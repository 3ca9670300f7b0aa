/** The built entry `mcp`: what a Worker's bundle of it has, and programs that use it without its package, or without code from strings. */

import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { serveMcp } from '../mcp/mcp-servers.ts';
import { DIST, runNode } from './built-package.ts';
import { bundle, codeFromStrings, gzipped } from './worker-bundle.ts';

const KB = 1000;
/** With `@modelcontextprotocol/client` and its copy of zod. docs/decisions/0061 says what it consists of. */
const MAX_BUNDLE = 100 * KB;

/** A program that calls tools of the server at `url`, and prints what came back. */
const program = (url: string, entry = 'ensemble-orchestrator/mcp') => `
  import { mcpClient } from '${entry}';
  let refused = false;
  try { new Function('return 1')(); } catch { refused = true; }
  const http = {
    async send({ url, onChunk, ...request }) {
      const response = await fetch(url, request);
      const headers = Object.fromEntries(response.headers);
      return { status: response.status, headers, body: new Uint8Array(await response.arrayBuffer()) };
    },
  };
  const server = mcpClient().connect({ name: 'text', url: '${url}', http, authorize: async () => ({}), sign: () => ({}) });
  const call = { tool: 'count', arguments: { words: 'a b' }, timeoutMs: 20_000, idempotencyKey: 'k', signal: new AbortController().signal };
  try {
    await server.listTools(call);
    console.log(JSON.stringify({ refused, ...await server.callTool(call) }));
    await server.close();
  } catch ({ code, message, details }) {
    console.log(JSON.stringify({ code, message, details }));
  }`;

describe("a Worker's bundle of the entry mcp", () => {
  it('has no import that is left, and no code from strings', async () => {
    const { metafile, outputFiles } = await bundle('mcp', 'bundle');
    expect(Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path))).toEqual([]);
    expect(codeFromStrings('mcp', outputFiles[0]?.text ?? '')).toEqual([]);
  });

  it(`is at most ${MAX_BUNDLE / KB} KB gzipped`, async () => {
    expect(gzipped(await bundle('mcp', 'bundle'))).toBeLessThanOrEqual(MAX_BUNDLE);
  });
});

describe('the entry mcp', () => {
  it('checks what a tool returns where code cannot be made from strings', async () => {
    const served = await serveMcp({ kind: 'sessions' });
    const flags = ['--disallow-code-generation-from-strings', '--input-type=module'];
    expect(await runNode(program(served.url), flags)).toEqual({ refused: true, content: { count: 2 }, isError: false });
    await served.close();
  });

  it('without its package, the first call says what to install', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ensemble-mcp-'));
    cpSync(DIST, folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    expect(await runNode(program('http://127.0.0.1:9/mcp', join(folder, 'mcp.js')))).toEqual({
      code: 'NOT_CONFIGURED',
      message:
        'mcpClient: the package @modelcontextprotocol/client is not installed; `npm install @modelcontextprotocol/client`',
      details: { driver: '@modelcontextprotocol/client' },
    });
    rmSync(folder, { recursive: true });
  });
});
