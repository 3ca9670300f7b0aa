/** Tools of real MCP servers, called by a Worker on workerd. */

import { execFile } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual, promisify } from 'node:util';
import { bundleWorker, HERE, node, workerd } from './programs.mjs';

const TIMEOUT_MS = 60_000;
const run = promisify(execFile);

const completed = (words) => ({
  status: 'completed',
  output: { count: words.split(' ').length, blocks: [{ type: 'text', text: words }] },
});
// Each call of a Worker has a session of its own, and ends it.
const EXPECTED = { runs: ['a b', 'a', 'a b c', 'd'].map(completed), openSessions: 0 };

/** @param work - a folder with the installed package @returns the check, whose `check()` returns the differences */
export function mcp(work) {
  return {
    name: 'MCP',
    version: workerd().version,
    async check() {
      cpSync(join(HERE, 'mcp-worker.mjs'), join(work, 'mcp-worker.mjs'));
      const bundle = join(work, 'mcp.bundle.mjs');
      await bundleWorker(join(work, 'mcp-worker.mjs'), bundle);
      // Miniflare's own program needs a newer Node.js than this library does.
      const { stdout } = await run(node(24).program(), [join(HERE, 'serve-mcp-worker.mjs'), bundle], {
        cwd: work,
        timeout: TIMEOUT_MS,
        env: { PATH: process.env.PATH, HOME: work, NO_COLOR: '1' },
      });
      return Object.entries(JSON.parse(stdout))
        .filter(([, outcome]) => !isDeepStrictEqual(outcome, EXPECTED))
        .map(([kind, outcome]) => `${kind}: ${JSON.stringify(outcome)}`);
    },
  };
}
