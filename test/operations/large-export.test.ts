/** An export of many rows to an object store takes no more memory than one of few. LARGE_EXPORT_ROWS sets how many. */

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildChild } from '../build-child.ts';

const ROWS = Number(process.env.LARGE_EXPORT_ROWS ?? 100_000);
const MIB = 1_048_576;
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
// Packages can be resolved from this folder, and git ignores it.
const built = join(ROOT, 'node_modules/.cache/ensemble-orchestrator', `export-${process.pid}`);
const child = join(built, 'child.mjs');
const folder = mkdtempSync(join(tmpdir(), 'ensemble-export-'));

beforeAll(async () => {
  mkdirSync(built, { recursive: true });
  await buildChild('test/operations/large-export-child.ts', child);
}, 60_000);
afterAll(() => {
  for (const path of [built, folder]) rmSync(path, { recursive: true, force: true });
});

it(`an export of ${ROWS} rows to a store keeps the heap flat`, { timeout: 600_000 }, async () => {
  const node = ['--expose-gc', '--no-warnings', child, folder, String(ROWS)];
  const { stdout } = await promisify(execFile)(process.execPath, node);
  const { status, output, ms, grown } = JSON.parse(stdout);
  console.log(`${ROWS} rows, ${output.size} bytes, ${ms} ms, heap grew by ${Math.round(grown / 1024)} KiB`);
  expect(status, JSON.stringify(output)).toBe('completed');
  expect(output.count).toBe(ROWS);
  const written = await readFile(join(folder, 'out.csv'));
  expect(written.byteLength).toBe(output.size);
  expect(written.subarray(-100).toString().trimEnd().split('\r\n').at(-1)).toMatch(`${ROWS},customer number ${ROWS},`);
  expect(grown).toBeLessThan(16 * MIB);
});
