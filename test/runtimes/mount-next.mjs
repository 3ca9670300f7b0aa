/** The mounting example for Next.js in a real app of Next.js: it is built and started, and answers requests over loopback. */

import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { serving } from './mounts.mjs';
import { HERE, node } from './programs.mjs';

const BUILD_MS = 180_000;
const PACKAGES = ['next', 'react', 'react-dom'];
/** What every app of Next.js has besides. */
const APP = {
  'package.json': '{ "private": true }',
  'app/layout.js': 'export default ({ children }) => <html lang="en"><body>{children}</body></html>;',
  'app/page.js': 'export default () => <p>my own page</p>;',
};

/** @param work - a folder with `examples/` and the installed package */
export function mountNext(work) {
  return {
    name: 'mount-next',
    version: '15.5.29',
    async check() {
      const folder = join(work, 'next-app');
      cpSync(join(work, 'examples/mount-next'), folder, { recursive: true });
      for (const [file, text] of Object.entries(APP)) writeFileSync(join(folder, file), text);
      mkdirSync(join(folder, 'node_modules'));
      for (const name of PACKAGES)
        symlinkSync(join(HERE, 'node_modules', name), join(folder, 'node_modules', name), 'dir');
      const next = [join(HERE, 'node_modules/next/dist/bin/next')];
      const env = { PATH: process.env.PATH, HOME: work, NO_COLOR: '1', NEXT_TELEMETRY_DISABLED: '1' };
      await promisify(execFile)(node(20).program(), [...next, 'build'], { cwd: folder, env, timeout: BUILD_MS });
      const start = [...next, 'start', '--port', '0', '--hostname', '127.0.0.1'];
      return serving(folder, node(20).program(), start, /(http:\/\/127\.0\.0\.1:\d+)/, ask);
    },
  };
}

/** @returns the differences */
async function ask({ origin, limit }) {
  const differences = [];
  const expect = async (what, path, method, status, text) => {
    const body = method === 'GET' ? undefined : '{}';
    const headers = body && { 'content-type': 'application/json' };
    const response = await fetch(`${origin}${path}`, { method, headers, body, signal: limit });
    const found = await response.text();
    if (response.status !== status || !found.includes(text))
      differences.push(`${what}: ${response.status} ${found.slice(0, 300)}`);
  };
  await expect("the app's own page", '/', 'GET', 200, 'my own page');
  await expect('health', '/api/v1/health', 'GET', 200, '"status":"ok"');
  await expect('an unknown route of the API', '/api/v1/nothing', 'GET', 404, 'NOT_FOUND');
  await expect('a run without a token', '/api/v1/execute/ensemble/greet', 'POST', 401, 'UNAUTHORIZED');
  for (const [method, path] of [
    ['PUT', '/api/v1/ensembles/greet'],
    ['PATCH', '/api/v1/state/greet'],
    ['DELETE', '/api/v1/ensembles/greet'],
  ])
    await expect(`${method} without a token`, path, method, 401, 'UNAUTHORIZED');
  return differences;
}
