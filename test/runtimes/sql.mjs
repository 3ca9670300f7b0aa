/** SQL databases on each runtime that has SQLite, and on `better-sqlite3`, where that could be installed. */

import { execFile } from 'node:child_process';
import { cpSync, existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bun, deno, HERE, installed, node } from './programs.mjs';

const FILE = 'sql-program.mjs';
const TIMEOUT_MS = 60_000;
const run = promisify(execFile);

/** @param work - a folder with the installed package @returns one check for each driver, whose `check()` returns the cases that failed */
export function sql(work) {
  const denoFlags = ['run', '--no-prompt', '--quiet', '--node-modules-dir=manual', '--allow-env=LOG_TOKENS,LOG_STREAM'];
  const on = (name, { version, program }, before = [], after = []) => ({
    name: `SQL ${name}`,
    version,
    async check() {
      cpSync(join(HERE, FILE), join(work, FILE));
      const env = { PATH: process.env.PATH, HOME: work, NO_COLOR: '1' };
      const { stdout } = await run(program(), [...before, FILE, ...after], { cwd: work, timeout: TIMEOUT_MS, env });
      const { passed, failures } = JSON.parse(stdout);
      console.log(`SQL databases on ${name}: ${passed} cases passed; ${failures.length} failed`);
      return failures;
    },
  });
  const checks = [22, 24].map((major) => on(`Node.js ${major}`, node(major), ['--no-warnings']));
  return [...checks, on('Deno', deno(), denoFlags), on('Bun', bun(), ['run']), ...betterSqlite3(work, on)];
}

/** It is built for the Node.js that installed it. */
function betterSqlite3(work, on) {
  const from = join(HERE, 'node_modules/better-sqlite3');
  if (!existsSync(join(from, 'build/Release/better_sqlite3.node'))) {
    console.log('SQL databases on better-sqlite3: skipped, because npm could not install it here');
    return [];
  }
  const packages = ['better-sqlite3', 'bindings', 'file-uri-to-path'];
  for (const name of packages) symlinkSync(join(HERE, 'node_modules', name), join(work, 'node_modules', name), 'dir');
  const { version } = installed('better-sqlite3');
  return [on('better-sqlite3', { version, program: () => process.execPath }, [], ['better-sqlite3'])];
}
