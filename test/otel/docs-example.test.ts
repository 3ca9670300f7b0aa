/** The example of docs/telemetry.md, run as its reader runs it, with a receiver of OTLP on loopback. */

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { fencedBlocks } from '../docs/code-blocks.ts';
import { startOtlpReceiver } from './otlp-receiver.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'ensemble-docs-'));
const { url, received, close } = await startOtlpReceiver();
afterAll(() => {
  close();
  rmSync(folder, { recursive: true });
});

it('the example of docs/telemetry.md: a receiver has the spans of the execution when the app has ended', async () => {
  const page = fencedBlocks('docs/telemetry.md', readFileSync(join(ROOT, 'docs/telemetry.md'), 'utf8'));
  const [app] = page.filter(({ code }) => code.includes('telemetry: openTelemetry()'));
  const [sdk] = page.filter(({ code }) => code.includes('provider.register()'));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules/ensemble-orchestrator'), 'dir');
  symlinkSync(join(ROOT, 'node_modules/@opentelemetry'), join(folder, 'node_modules/@opentelemetry'), 'dir');
  writeFileSync(join(folder, 'app.mjs'), app?.code ?? '');
  writeFileSync(join(folder, 'telemetry.mjs'), sdk?.code ?? '');
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', './telemetry.mjs', 'app.mjs'], {
    cwd: folder,
    env: { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: url },
  });
  expect(stdout).toBe('completed\n');
  expect(received.map(({ name, service }) => `${service}: ${name}`).sort()).toEqual([
    'shop: agent charge',
    'shop: create pay',
    'shop: invoke_workflow pay',
  ]);
});
