/** The claims desk does what its README says, in Hono, in Express, and with its executions in Postgres. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { ensureBuilt, ROOT } from '../cli/cli-process.ts';
import { createDatabase, findServer } from '../storage/postgres-server.ts';

const EXAMPLE = join(ROOT, 'examples/claims-desk');
const hasPostgres = await findServer();

beforeAll(ensureBuilt, 60_000);

async function prints(framework: string, env: Readonly<Record<string, string>> = {}) {
  const [, shown = ''] = /```text\n([\s\S]*?)```/.exec(readFileSync(join(EXAMPLE, 'README.md'), 'utf8')) ?? [];
  const args = ['--no-warnings', join(EXAMPLE, 'start.mjs'), framework];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: { ...process.env, ...env } });
  expect(stdout.trim()).toBe(shown.trim());
}

it.each(['hono', 'express'])('prints what its README shows, in %s', (framework) => prints(framework));

it.runIf(hasPostgres)('prints the same with its executions in Postgres, by one line', async () => {
  const database = await createDatabase();
  try {
    await prints('hono', { DATABASE_URL: database.connectionString });
  } finally {
    await database.drop();
  }
});
