/** The HTTP client on every runtime: the published suite, and peers that misbehave. */

import { execFile } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { bun, bundleServer, bundleWorker, deno, HERE, node, workerd } from './programs.mjs';

const FILES = ['http-cases.mjs', 'http-program.mjs', 'http-worker.mjs'];
const TIMEOUT_MS = 180_000;
const run = promisify(execFile);

/** @param work - a folder with the installed package @returns one check for each runtime, whose `check()` returns the cases that failed */
export function httpPeers(work) {
  const program = ({ version, program: path }, ...args) => ({ version, start: (peer) => [path(), [...args, peer]] });
  const denoFlags = ['run', '--no-prompt', '--quiet', '--node-modules-dir=manual', '--allow-net=127.0.0.1'];
  const runtimes = {
    ...Object.fromEntries([20, 22, 24].map((major) => [`Node.js ${major}`, program(node(major), 'http-program.mjs')])),
    Deno: program(deno(), ...denoFlags, '--allow-env=LOG_TOKENS,LOG_STREAM', 'http-program.mjs'),
    Bun: program(bun(), 'run', 'http-program.mjs'),
    workerd: { version: workerd().version, start: (peer) => byMiniflare(work, peer) },
  };
  return Object.entries(runtimes).map(([name, { version, start }]) => ({
    name: `HTTP ${name}`,
    version,
    async check() {
      for (const file of FILES) cpSync(join(HERE, file), join(work, file));
      const peer = await startPeer(work);
      try {
        const [file, args] = await start(peer.baseUrl);
        const env = { PATH: process.env.PATH, HOME: work, NO_COLOR: '1' };
        const { stdout } = await run(file, args, { cwd: work, timeout: TIMEOUT_MS, maxBuffer: 16 * 1024 * 1024, env });
        const { passed, failures } = JSON.parse(stdout);
        console.log(`HTTP on ${name}: ${passed} cases passed; ${failures.length} failed`);
        return failures;
      } finally {
        await peer.close();
      }
    },
  }));
}

/** The peer of the tests in `test/http`. */
async function startPeer(work) {
  const file = join(work, 'bad-peer.mjs');
  await bundleServer(join(HERE, '../http/bad-peer.ts'), file);
  const { startBadPeer } = await import(pathToFileURL(file).href);
  return startBadPeer();
}

async function byMiniflare(work, peer) {
  const bundle = join(work, 'http-worker.bundle.mjs');
  await bundleWorker(join(work, 'http-worker.mjs'), bundle);
  // Miniflare's own program needs a newer Node.js than this library does.
  return [node(24).program(), [join(HERE, 'serve-http-worker.mjs'), bundle, peer]];
}
