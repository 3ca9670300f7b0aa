/** Projects in temporary folders, each served by the built command in its own process, and SQLite files that were filled before. */

import { spawn } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/[/\\]$/, '');
export const CLI = join(ROOT, 'dist/cli.js');
const STARTED_MS = 60_000;

const alive = new Set();
const folders = new Set();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

/** The ensemble that the bystander runs, in every project. */
const GOOD = { 'ensembles/good.yaml': 'name: good\nflow: []\noutputs: { n: "${input.n}" }\n' };

/** @param files - text by path @returns the folder, in which the package can be imported by its name */
export function makeProject(files) {
  const folder = mkdtempSync(join(tmpdir(), 'ensemble-load-'));
  folders.add(folder);
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules/ensemble-orchestrator'), 'dir');
  for (const [path, text] of Object.entries({ ...GOOD, ...files })) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

export function removeProject(folder) {
  folders.delete(folder);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

/**
 * Serves a project and waits until it listens.
 *
 * @param storage - for `--storage`
 * @param heapMb - the old space of V8; undefined leaves the default
 * @returns `url`, the first `token` (empty if the store had tokens), `pid`, `ended` (a promise of a text: how the process ended)
 *   and `kill()`; if the process ended before it listened, only `refused`: its output
 */
export async function serve(folder, storage, heapMb) {
  const args = [...(heapMb === undefined ? [] : [`--max-old-space-size=${heapMb}`]), '--no-warnings', CLI];
  const child = spawn(process.execPath, [...args, 'serve', '--port', '0', '--storage', storage, folder], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NO_COLOR: '1', NODE_OPTIONS: '' },
  });
  alive.add(child);
  let said = '';
  let wrote = '';
  child.stderr.on('data', (chunk) => {
    // The log of requests is long; its end shows how the process ended.
    wrote = (wrote + chunk).slice(-20_000);
  });
  const ended = new Promise((resolve) => {
    child.on('close', (code, signal) => {
      alive.delete(child);
      const heap = /heap out of memory/.test(wrote) ? ' (heap out of memory)' : '';
      resolve(`${signal ?? `code ${code}`}${heap}`);
    });
  });
  const listens = new Promise((resolve) => {
    child.stdout.on('data', (chunk) => {
      said = (said + chunk).slice(-20_000);
      if (/tokens +\d+;|sk-\S+/.test(said)) resolve('listens');
    });
    setTimeout(resolve, STARTED_MS, 'late').unref();
  });
  const kill = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  if ((await Promise.race([listens, ended])) !== 'listens') {
    await kill();
    return { refused: `${said}${wrote}` };
  }
  const url = /listening on (\S+)/.exec(said)?.[1];
  return { url, token: /\bsk-[\w-]+/.exec(said)?.[0] ?? '', pid: child.pid, ended, kill };
}

const filled = new Map();

/**
 * Copies a SQLite file to `target` that a server without a heap limit has filled.
 *
 * @param name - the file of a name is filled once
 * @param fill - receives the server, and returns facts of what it has stored
 * @returns the facts, with the server's `token`
 */
export async function filledStore(name, files, fill, target) {
  let known = filled.get(name);
  if (!known) {
    const folder = makeProject(files);
    const path = join(folder, 'filled.db');
    const server = await serve(folder, `sqlite:${path}`);
    if (server.refused) throw new Error(`the project of ${name} is refused: ${server.refused}`);
    const facts = await fill(server);
    await server.kill();
    known = { path, facts: { ...facts, token: server.token } };
    filled.set(name, known);
  }
  for (const end of ['', '-wal']) if (existsSync(known.path + end)) copyFileSync(known.path + end, target + end);
  return known.facts;
}

/** Milliseconds of processor time that a process has used; NaN where there is no `/proc`. */
export function processorMs(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return Number.NaN;
  }
}
