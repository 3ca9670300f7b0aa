/** The refund desk does what its README says: own login, one refund for an order, approval by link with escalation, a flaky bank. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { ensureBuilt, ROOT } from '../cli/cli-process.ts';

const EXAMPLE = join(ROOT, 'examples/refund-desk');

beforeAll(ensureBuilt, 60_000);

it('prints what its README shows', async () => {
  const [, shown = ''] = /```text\n([\s\S]*?)```/.exec(readFileSync(join(EXAMPLE, 'README.md'), 'utf8')) ?? [];
  const { stdout } = await promisify(execFile)(process.execPath, ['--no-warnings', join(EXAMPLE, 'start.mjs')]);
  expect(stdout.trim()).toBe(shown.trim());
});
