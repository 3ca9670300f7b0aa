/** The test files of the examples pass, and run every step. */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { ensureBuilt } from '../cli/cli-process.ts';
import { ensemble } from '../cli/in-process.ts';
import { ROOT } from '../docs/code-blocks.ts';

beforeAll(ensureBuilt, 60_000);

const EXAMPLES = readdirSync(join(ROOT, 'examples')).filter((name) => {
  const folder = join(ROOT, 'examples', name, 'ensembles');
  return existsSync(folder) && readdirSync(folder).some((file) => file.endsWith('.test.yaml'));
});

it.each(EXAMPLES)('%s', async (name) => {
  const cwd = join(ROOT, 'examples', name);
  const app = existsSync(join(cwd, 'test-options.mjs')) ? ['--app', './test-options.mjs'] : [];
  const { code, stdout, stderr } = await ensemble(['test', '--reporter', 'json', ...app], { cwd });
  expect(stderr).toBe('');
  const { failed, coverage, files } = JSON.parse(stdout);
  expect(
    files.flatMap((file: { tests: { differences: object[]; problems: string[] }[] }) =>
      file.tests.flatMap((one) => [...one.differences, ...one.problems]),
    ),
  ).toEqual([]);
  expect(failed).toBe(0);
  for (const { missing } of coverage) expect(missing).toEqual([]);
  expect(code).toBe(0);
});
