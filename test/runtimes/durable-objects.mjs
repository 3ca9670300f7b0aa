/** The published suites of the storage and the engine, in Durable Objects on workerd. */

import { execFile } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bundleWorker, HERE, node, workerd } from './programs.mjs';

const FILES = ['durable-objects-worker.mjs', 'durable-objects-limits.mjs'];
const TIMEOUT_MS = 300_000;
const run = promisify(execFile);

/** @param work - a folder with the installed package @returns the check, whose `check()` returns the cases that failed */
export function durableObjects(work) {
  return {
    name: 'suites',
    version: workerd().version,
    async check() {
      for (const file of FILES) cpSync(join(HERE, file), join(work, file));
      const bundle = join(work, 'durable-objects.bundle.mjs');
      await bundleWorker(join(work, FILES[0]), bundle);
      // Miniflare's own program needs a newer Node.js than this library does.
      const { stdout } = await run(node(24).program(), [join(HERE, 'serve-durable-objects.mjs'), bundle], {
        cwd: work,
        timeout: TIMEOUT_MS,
        maxBuffer: 64 * 1024 * 1024,
        env: { PATH: process.env.PATH, HOME: work, NO_COLOR: '1' },
      });
      const { passed, failures } = JSON.parse(stdout);
      const figures = Object.entries(passed).map(([suite, count]) => `${suite} ${count}`);
      console.log(`suites in Durable Objects: ${figures.join(', ')} passed; ${failures.length} failed`);
      return failures;
    },
  };
}
