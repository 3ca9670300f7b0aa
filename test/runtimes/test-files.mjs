/** `defineTests` in the test runners of Deno and Bun: the test file of the quickstart passes in each. */

import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bun, deno } from './programs.mjs';

const TIMEOUT_MS = 60_000;
const PROGRAM = `import { defineTests } from 'ensemble-orchestrator/node';
await defineTests(new URL('./examples/quickstart/', import.meta.url));
`;
const run = promisify(execFile);

/** @param work - a folder with the installed package and the examples @returns the checks, whose `check()` returns the differences */
export function testFiles(work) {
  const check = (name, { version, program }, args, passed) => ({
    name: `tests ${name}`,
    version,
    async check() {
      writeFileSync(join(work, 'flows.test.mjs'), PROGRAM);
      const env = { PATH: process.env.PATH, HOME: work, NO_COLOR: '1' };
      const { stdout, stderr } = await run(program(), args, { cwd: work, timeout: TIMEOUT_MS, env });
      return passed.test(stdout + stderr) ? [] : [stdout + stderr];
    },
  });
  return [
    check(
      'Deno',
      deno(),
      ['test', '-A', '--no-prompt', '--node-modules-dir=manual', 'flows.test.mjs'],
      /2 passed.*0 failed/s,
    ),
    check('Bun', bun(), ['test', './flows.test.mjs'], /2 pass\s+0 fail/s),
  ];
}
