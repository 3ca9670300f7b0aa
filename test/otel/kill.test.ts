/** A process that is killed in a step, and what a receiver of OTLP on loopback has got from it and from the next process. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { startOtlpReceiver } from './otlp-receiver.ts';

const CHILD = fileURLToPath(new URL('./otel-child.mjs', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'ensemble-otel-'));
const { url: receiver, received, close } = await startOtlpReceiver();
afterAll(() => {
  close();
  rmSync(folder, { recursive: true });
});

function run(mode: string) {
  const url = `${receiver}/v1/traces`;
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
