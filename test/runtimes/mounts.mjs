/**
 * The mounting examples for Deno, Bun and Workers on their runtimes. Each example is started unchanged, by the command of its
 * opening comment; it answers requests over loopback, and is stopped. The requests use the token that the example prints.
 */

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bun, bundleWorker, deno, HERE, node, workerd } from './programs.mjs';

const TIMEOUT_MS = 60_000;
const STOP_MS = 5_000;
const EXECUTE = '/api/v1/execute/ensemble/greet';

/** @param work - a folder with `examples/` and the installed package @returns examples whose `check()` returns the differences */
export function mounts(work) {
  const byCommand =
    ({ program }, runtime, file, greeting) =>
    async () => {
      const [name, ...args] = commandOf(work, file);
      if (name !== runtime)
        throw new Error(`the opening comment of ${file} must start it with ${runtime}, not with ${name}`);
      return serving(work, program(), args, /Listening on (http:\/\/[\w.]+:\d+)/, (server) => ask(server, greeting));
    };
  const byWrangler = (file, greeting) => async () => {
    const [npx, wrangler, dev, option, configuration = ''] = commandOf(work, file);
    const given = [npx, wrangler, dev, option].join(' ');
    if (given !== 'npx wrangler dev --config')
      throw new Error(
        `the opening comment of ${file} must start it with \`npx wrangler dev --config\`, not with \`${given}\``,
      );
    const bundle = join(work, 'worker-example.bundle.mjs');
    const { main } = JSON.parse(readFileSync(join(work, configuration), 'utf8'));
    await bundleWorker(join(work, configuration, '..', main), bundle);
    // Miniflare's own program needs a newer Node.js than this library does.
    const args = [join(HERE, 'serve-worker-example.mjs'), bundle, join(work, configuration)];
    return serving(work, node(24).program(), args, /Ready on (http:\/\/[\w.]+:\d+)/, (server) => ask(server, greeting));
  };
  return [
    {
      name: 'mount-deno',
      version: deno().version,
      check: byCommand(deno(), 'deno', 'examples/mount-deno/main.mjs', 'Hello'),
    },
    {
      name: 'mount-bun',
      version: bun().version,
      check: byCommand(bun(), 'bun', 'examples/mount-bun/main.mjs', 'Hello'),
    },
    {
      name: 'mount-worker',
      version: workerd().version,
      check: byWrangler('examples/mount-worker/worker.mjs', 'Good morning'),
    },
  ];
}

/** @returns the words of the command in the opening comment of a file */
function commandOf(work, file) {
  const [, command] = /^\/\*\* `([^`]+)`/.exec(readFileSync(join(work, file), 'utf8')) ?? [];
  if (command === undefined) throw new Error(`${file} does not open with the command that starts it`);
  return command.split(' ');
}

/** Starts a server on a port that the system picks, waits for its address, calls `use`, and always stops the server. */
export async function serving(work, program, args, ready, use) {
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  const child = spawn(program, args, {
    cwd: work,
    env: { PATH: process.env.PATH, HOME: work, NO_COLOR: '1', PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise((resolve) => {
    child.once('error', resolve);
    child.once('close', (code, signal) => resolve(new Error(`it ended with ${signal ?? code}`)));
  });
  let output = '';
  const listeners = new Set();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
      for (const look of listeners) look();
    });
  }
  /** @returns a promise of what the pattern's group finds in the output, now or later */
  const printed = (pattern) =>
    new Promise((resolve, reject) => {
      const look = () => {
        const [, found] = pattern.exec(output) ?? [];
        if (found !== undefined) resolve(found);
      };
      limit.addEventListener('abort', () => reject(new Error(`${pattern} was not printed in ${TIMEOUT_MS} ms`)));
      ended.then(reject);
      listeners.add(look);
      look();
    });
  try {
    return await use({ origin: await printed(ready), printed, limit });
  } catch (error) {
    throw new Error(`${error.message}${error.cause ? `: ${error.cause.message}` : ''}\nIt printed:\n${output}`);
  } finally {
    child.kill('SIGTERM');
    const killTimer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await ended;
    clearTimeout(killTimer);
  }
}

/** Sends the requests: the app's own page, open routes, a run, and refused requests. @returns the differences */
async function ask({ origin, printed, limit }, greeting) {
  const differences = [];
  const expect = async (what, [path, init], status, fits) => {
    const response = await fetch(`${origin}${path}`, { ...init, signal: limit });
    const text = await response.text();
    if (response.status === status && fits(text)) return;
    differences.push(`${what}: ${response.status} ${text.slice(0, 300)}`);
  };
  const post = (body, headers) => [
    EXECUTE,
    { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) },
  ];
  const failsWith = (code) => (text) => JSON.parse(text).error.code === code;

  await expect("the app's own page", ['/'], 200, (text) => text === 'my own page');
  await expect('health', ['/api/v1/health'], 200, (text) => JSON.parse(text).status === 'ok');
  const authorization = `Bearer ${await printed(/'Authorization: Bearer (sk-service-\w+)'/)}`;
  await expect('a run', post({ input: { who: 'Zoë' } }, { authorization }), 200, (text) => {
    const { status, output } = JSON.parse(text);
    return status === 'completed' && output.text === `${greeting} Zoë`;
  });
  await expect('a run with a wrong input', post({ input: {} }, { authorization }), 400, failsWith('INVALID_INPUT'));
  await expect('a run without a token', post({ input: { who: 'Zoë' } }), 401, failsWith('UNAUTHORIZED'));
  const large = post({ input: { who: 'x'.repeat(1_100_000) } }, { authorization });
  await expect('a body that is too large', large, 413, failsWith('PAYLOAD_TOO_LARGE'));
  await expect('an unknown route of the API', ['/api/v1/nothing'], 404, failsWith('NOT_FOUND'));
  await expect('an unknown page', ['/nothing'], 404, failsWith('NOT_FOUND'));
  return differences;
}
