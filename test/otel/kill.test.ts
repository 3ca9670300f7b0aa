/** A process that is killed in a step, and what a receiver of OTLP on loopback has got from it and from the next process. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';

interface OtlpSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
}

const CHILD = fileURLToPath(new URL('./otel-child.mjs', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'ensemble-otel-'));
const received: OtlpSpan[] = [];
const receiver = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const { resourceSpans } = JSON.parse(Buffer.concat(parts).toString());
  for (const { scopeSpans } of resourceSpans) for (const { spans } of scopeSpans) received.push(...spans);
  response.setHeader('content-type', 'application/json').end('{}');
});

beforeAll(async () => {
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
});
afterAll(() => {
  receiver.close();
  rmSync(folder, { recursive: true });
});

function run(mode: string) {
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/v1/traces`;
  const child = spawn(process.execPath, [CHILD, mode, join(folder, 'killed.db'), url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.on('data', (part) => {
    said += part;
  });
  return { child, said: () => said };
}

it('is killed with SIGKILL in a step: every span that was exported has a parent that was exported', async () => {
  const first = run('start');
  await expect.poll(first.said, { timeout: 20_000 }).toContain('in the step');
  // The exporter sends without delay; what it has sent by now is what the kill leaves.
  await expect.poll(() => received.map(({ name }) => name), { timeout: 5_000 }).toContain('agent first');
  first.child.kill('SIGKILL');
  await once(first.child, 'exit');
  const before = received.map(({ name }) => name).sort();
  expect(before).toEqual(['agent first', 'create killed']);

  const second = run('continue');
  await once(second.child, 'exit');
  expect(second.said()).toContain('{"text":"done"}');
  const names = received.map(({ name }) => name).sort();
  expect(names).toEqual([
    ...['agent ask', 'agent first', 'agent look', 'chat m', 'create killed', 'execute_tool look'],
    'invoke_workflow killed',
  ]);
  const ids = new Set(received.map(({ spanId }) => spanId));
  const orphans = received.filter(({ parentSpanId }) => parentSpanId && !ids.has(parentSpanId));
  expect(orphans).toEqual([]);
  expect(new Set(received.map(({ traceId }) => traceId)).size).toBe(1);
}, 60_000);
