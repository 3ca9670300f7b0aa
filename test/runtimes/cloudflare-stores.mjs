/** The published suite on Workers KV, R2 and D1, in a Worker on workerd. */

import { execFile } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bundleWorker, HERE, node, workerd } from './programs.mjs';

const FILE = 'cloudflare-stores-worker.mjs';
const TIMEOUT_MS = 600_000;
const run = promisify(execFile);

/** @param work - a folder with the installed package @returns the check, whose `check()` returns the cases that failed */
export function cloudflareStores(work) {
  return {
    name: 'KV, R2, D1',
    version: workerd().version,
    async check() {
      cpSync(join(HERE, FILE), join(work, FILE));
      const bundle = join(work, 'cloudflare-stores.bundle.mjs');
      await bundleWorker(join(work, FILE), bundle);
      // Miniflare's own program needs a newer Node.js than this library does.
      const { stdout } = await run(node(24).program(), [join(HERE, 'serve-cloudflare-stores.mjs'), bundle], {
        cwd: work,
        timeout: TIMEOUT_MS,
        maxBuffer: 64 * 1024 * 1024,
        env: { PATH: process.env.PATH, HOME: work, NO_COLOR: '1' },
      });
      const { passed, failures } = JSON.parse(stdout);
      const figures = Object.entries(passed).map(([suite, count]) => `${suite} ${count}`);
      console.log(`stores of Cloudflare: ${figures.join(', ')} passed; ${failures.length} failed`);
      return failures;
    },
  };
}
