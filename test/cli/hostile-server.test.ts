/** The command and a server that sends control characters: none of them reaches the terminal. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensembleHere } from './in-process.ts';

// Clears the screen, sets the title, moves the cursor up, hides text, and reverses the direction of text.
const EVIL = 'x\u001b[2J\u001b]0;title\u0007\u009b1A\u001b[8m\u202etxt\u2066\u200f\u061cy\r';
const RECORD = {
  ...{ id: EVIL, ensemble: EVIL, status: EVIL, version: EVIL, retryOf: EVIL, parentId: EVIL, trigger: { type: EVIL } },
  ...{ createdAt: 1, startedAt: 1, finishedAt: 2, duration: 1, metrics: { agents: 2 } },
  ...{ input: EVIL, output: { [EVIL]: EVIL }, error: { code: EVIL, agent: EVIL, message: EVIL } },
  agents: [
    { name: EVIL, key: EVIL, status: EVIL, attempts: EVIL, duration: 1, startedAt: 1, output: EVIL },
    {
      name: EVIL,
      key: EVIL,
      status: 'failed',
      attempts: 2,
      duration: 1,
      startedAt: 1,
      error: { code: EVIL, message: EVIL },
    },
  ],
};
const TOKEN = { id: EVIL, name: EVIL, scopes: [EVIL], plan: EVIL, token: EVIL, revoked: true };
const EVENTS = [
  ['execution.started', { id: EVIL, ensemble: EVIL }],
  ['agent.started', { agent: EVIL, key: EVIL }],
  ['agent.retrying', { agent: EVIL, key: EVIL, attempt: EVIL, retryAt: 5, error: { message: EVIL } }],
  ['agent.completed', { agent: EVIL, key: EVIL, duration: 1, output: EVIL }],
  ['agent.skipped', { agent: EVIL, key: `${EVIL}2` }],
  ['foreach.started', { key: EVIL, items: EVIL }],
  ['child.started', { childEnsemble: EVIL, childId: EVIL }],
  ['child.ended', { childEnsemble: EVIL, status: EVIL, childId: EVIL }],
  ['step.waiting', { key: EVIL, signal: EVIL }],
  ['signal.taken', { key: EVIL, signal: EVIL }],
  ['step.continued', { key: EVIL, signal: EVIL }],
  ['run.resumed', { recoveries: EVIL }],
  ['agent.failed', { agent: EVIL, key: EVIL, duration: 1, attempts: EVIL, error: { message: EVIL } }],
  ['execution.failed', { duration: 1, error: { message: EVIL } }],
] as const;

// biome-ignore lint/suspicious/noControlCharactersInRegex: these characters must not be in the output
const OBEYED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

let url: string;
const server = createServer((request, response) => {
  const path = request.url ?? '';
  if (path.endsWith('/events')) {
    response.setHeader('content-type', 'text/event-stream');
    const lines = EVENTS.map(
      ([event, data], i) =>
        `id: ${i}\ndata: ${JSON.stringify({ event, timestamp: new Date().toISOString(), data })}\n\n`,
    );
    response.end(lines.join(''));
    return;
  }
  response.setHeader('content-type', 'application/json');
  if (path.includes('/refused')) {
    response.statusCode = 409;
    response.end(JSON.stringify({ error: { code: EVIL, message: EVIL } }));
    return;
  }
  const listed = { executions: [RECORD], tokens: [TOKEN], nextCursor: undefined };
  response.end(JSON.stringify(path.includes('/tokens') ? { ...TOKEN, ...listed } : { ...RECORD, ...listed }));
});

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

describe('text from a server is printed without control characters', () => {
  it.each([
    ['execution show', ['execution', 'show', 'x']],
    ['execution show --json', ['execution', 'show', 'x', '--json']],
    ['execution list', ['execution', 'list']],
    ['execution watch', ['execution', 'watch', 'x']],
    ['execution watch --json', ['execution', 'watch', 'x', '--json']],
    ['execution cancel', ['execution', 'cancel', 'x']],
    ['execution retry', ['execution', 'retry', 'x']],
    ['execution signal', ['execution', 'signal', 'x', 'go']],
    ['a refusal', ['execution', 'cancel', 'refused']],
    ['token create', ['token', 'create', '--name', 'n', '--scope', 'admin']],
    ['token list', ['token', 'list']],
    ['token revoke', ['token', 'revoke', 'x']],
  ])('%s', async (_what, args) => {
    const { stdout, stderr } = await ensembleHere([...args, '--url', url, '--token', 'sk-x'], '/');
    expect(stdout + stderr).toContain('x');
    expect(`${stdout}${stderr}`).not.toMatch(OBEYED);
  });
});
