/** `npm run verify`: runs every check of the repository that is not a test, one after the other, and prints the output of those that fail. */

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../', import.meta.url));

const CHECKS = [
  ['build', 'the build'],
  ['typecheck', 'types, also without the types of Node.js'],
  ['lint', 'lint'],
  ['format:check', 'format'],
  ['check:imports', 'import rules'],
  ['check:unused', 'unused code and dependencies'],
  ['check:package', 'the package'],
  ['check:types', 'the types of the package'],
  ['docs', 'the API documentation'],
];

// The first check builds: a check that packs must not build again (`prepack`). `npm publish --dry-run` must not keep it from packing.
const env = { ...process.env, npm_config_ignore_scripts: 'true', npm_config_dry_run: 'false' };

const failed = [];
for (const [script, what] of CHECKS) {
  const began = performance.now();
  const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', script], {
    cwd: ROOT,
    env,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`${status === 0 ? 'ok    ' : 'FAILED'} ${what} (npm run ${script}, ${seconds} s)`);
  if (status === 0) continue;
  failed.push(script);
  console.log(`${stdout}${stderr}`.trimEnd().replace(/^/gm, '    '));
}
console.log(`${CHECKS.length - failed.length} passed, ${failed.length} failed`);
process.exitCode = failed.length === 0 ? 0 : 1;
