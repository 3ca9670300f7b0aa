/** The export of orders: what it prints, and the same definition over an object store of the S3 kind. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { s3Objects } from '../../src/entries/s3.ts';
import { sqliteDatabase } from '../../src/entries/sqlite.ts';
import { createOrchestrator } from '../../src/index.ts';
import { ensureBuilt, ROOT } from '../cli/cli-process.ts';
import { BUCKET, KEYS, startS3 } from '../storage/s3-server.ts';

const EXAMPLE = join(ROOT, 'examples/csv-export');

beforeAll(ensureBuilt, 60_000);

it('the export of orders prints what its README shows', async () => {
  const [, shown] = /```text\n([\s\S]*?)```/.exec(readFileSync(join(EXAMPLE, 'README.md'), 'utf8')) ?? [];
  const { stdout } = await promisify(execFile)(process.execPath, ['--no-warnings', join(EXAMPLE, 'start.mjs')]);
  expect(stdout.trim()).toBe(shown?.trim());
});

it('with one more binding, the same definition writes the CSV to S3', async () => {
  const server = await startS3();
  onTestFinished(() => server.close());
  const { endpoint, region } = server;
  const sql = sqliteDatabase({ path: ':memory:' });
  const { signal } = new AbortController();
  const columns = 'CREATE TABLE orders (id INTEGER, day TEXT, customer TEXT, note TEXT, total REAL)';
  await sql.execute({ strings: [columns], values: [] }, { signal });
  const order = "INSERT INTO orders VALUES (1, '2026-03-02', 'Ada', 'two lamps, blue', 40)";
  await sql.execute({ strings: [order], values: [] }, { signal });
  const orchestrator = createOrchestrator({
    ensembles: [readFileSync(join(EXAMPLE, 'ensembles/export-orders.yaml'), 'utf8')],
    bindings: { sql, objects: s3Objects({ url: endpoint, region, bucket: BUCKET, ...KEYS }) },
  });
  const { output } = await orchestrator.execute('export-orders', { day: '2026-03-02' });
  await orchestrator.close();
  await sql.close();
  expect(output).toMatchObject({ orders: 1, key: 'reports/2026-03-02.csv' });
  const [stored] = server.objects.values();
  expect(stored?.body.toString()).toBe('id,customer,note,total\r\n1,Ada,"two lamps, blue",40\r\n');
});
