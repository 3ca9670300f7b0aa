/** The examples with language models do what their READMEs say, as programs, without network and keys. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensemble, ensureBuilt, ROOT } from '../cli/cli-process.ts';

beforeAll(ensureBuilt, 60_000);

/** Runs the example. @returns what it printed, and what its README says */
async function runExample(folder: string) {
  const example = join(ROOT, 'examples', folder);
  const [, shown = ''] = /```text\n([\s\S]*?)```/.exec(readFileSync(join(example, 'README.md'), 'utf8')) ?? [];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--no-warnings', join(example, 'start.mjs')]);
  return { printed: stdout.trim(), shown: shown.trim(), stderr };
}

describe.each([
  ['support-triage', 3],
  ['research-agent', 2],
])('%s', (folder, files) => {
  it('prints what its README shows', async () => {
    const { printed, shown, stderr } = await runExample(folder);
    expect([printed, stderr]).toEqual([shown, '']);
  });

  it('is a project without problems for `ensemble validate`', async () => {
    const { stdout, code } = await ensemble(['validate', join(ROOT, 'examples', folder)]);
    expect([code, stdout]).toEqual([0, `✓ ${files} files, no problems\n`]);
  });
});

it('the research continues after its process was killed: no stored call is made again', async () => {
  const { printed } = await runExample('research-agent');
  const counts = [...printed.matchAll(/^ {2}((?:model|search|read_page) .*?) +(\d+)(.*)$/gm)].map(
    ([, what, times, more]) => [what, Number(times), more],
  );
  expect(counts).toEqual([
    ['model gpt-4o', 5, ''],
    ['search tides and the moon', 1, ''],
    ['read_page tides', 1, ''],
    ['read_page moon', 2, ', with 1 idempotency key'],
    ['model gpt-4o-mini', 1, ''],
  ]);
  expect(printed).toMatch(/^ {2}flow\[0\]\.tool\[4\] +tool +read_page$/m);
  expect(printed).toContain('completed: The library says: tides come from the moon.');
});
