/** The entry `ai` with the versions of the AI SDK's providers that need Node.js 22: the tests of `test/ai`, and Workers AI on workerd. */

import { execFile } from 'node:child_process';
import { cpSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, promisify } from 'node:util';
import { bundleWorker, HERE, node, workerd } from './programs.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const TIMEOUT_MS = 180_000;
const run = promisify(execFile);

const EXPECTED = {
  tools: ['completed', 'Yes.', 24],
  result: '{"rain":true}',
  stream: ['completed', 'Hello.', 2],
  deltas: 'Hello.',
};

/** @param work - a folder with the installed package @returns checks whose `check()` returns the differences */
export function ai(work) {
  return [
    {
      name: 'ai-sdk',
      version: node(24).version,
      async check() {
        const env = { ...process.env, AI_PROVIDERS: join(HERE, 'ai-providers.mjs'), NO_COLOR: '1' };
        const args = [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', 'test/ai'];
        try {
          await run(node(24).program(), args, { cwd: ROOT, timeout: TIMEOUT_MS, env });
          return [];
        } catch (error) {
          return String(error.stdout || error.message)
            .trim()
            .split('\n')
            .slice(-60);
        }
      },
    },
    {
      name: 'workers-ai',
      version: workerd().version,
      async check() {
        symlinkSync(
          join(HERE, 'node_modules/workers-ai-provider'),
          join(work, 'node_modules/workers-ai-provider'),
          'dir',
        );
        cpSync(join(HERE, 'ai-worker.mjs'), join(work, 'ai-worker.mjs'));
        cpSync(join(HERE, '../ai/ai-binding.ts'), join(work, 'ai-binding.ts'));
        const bundle = join(work, 'ai-worker.bundle.mjs');
        await bundleWorker(join(work, 'ai-worker.mjs'), bundle);
        // Miniflare's own program needs a newer Node.js than this library does.
        const { stdout } = await run(node(24).program(), [join(HERE, 'serve-worker.mjs'), bundle], {
          cwd: work,
          timeout: TIMEOUT_MS,
        });
        const found = JSON.parse(stdout);
        return isDeepStrictEqual(found, EXPECTED)
          ? []
          : [`${JSON.stringify(found)} instead of ${JSON.stringify(EXPECTED)}`];
      },
    },
  ];
}
