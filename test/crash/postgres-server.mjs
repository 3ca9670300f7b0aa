/** Runs a temporary Postgres server on a free port. A test stops and starts it; it is removed when this process ends. */

import { execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

const DEBIAN = '/usr/lib/postgresql';
const TIMEOUT_MS = 20_000;
/** The tests kill processes, never the machine, so nothing has to reach the disk. */
const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'fsync=off',
  'full_page_writes=off',
  'max_connections=200',
  'shared_buffers=64MB',
];

/** The folder of `initdb` and `postgres`; undefined when there is none. */
export function findBinaries() {
  const newest = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...newest.map((version) => join(DEBIAN, version, 'bin')), ...(process.env.PATH ?? '').split(':')];
  return folders.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')));
}

/** @returns the running server: `url`, `stop(signal)`, `start()`, and `remove()` */
export async function startServer(binaries = findBinaries()) {
  const user = serverUser();
  const data = mkdtempSync(join(tmpdir(), 'ensemble-postgres-'));
  if (user) chownSync(data, user.uid, user.gid);
  const options = { ...user, cwd: data, stdio: 'ignore' };
  const port = await freePort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  let server;

  const start = async () => {
    const settings = [...SETTINGS, `unix_socket_directories=${data}`, `port=${port}`].flatMap((one) => ['-c', one]);
    server = spawn(join(binaries, 'postgres'), ['-D', data, ...settings], options);
    server.ended = new Promise((resolve) => server.on('exit', resolve));
    for (const until = Date.now() + TIMEOUT_MS; ; await sleep(30)) {
      if (await answers(url)) return;
      if (Date.now() > until) throw new Error(`the Postgres server did not answer within ${TIMEOUT_MS} ms`);
    }
  };
  const stop = async (signal) => {
    server.kill(signal);
    await server.ended;
  };
  const remove = async () => {
    await stop('SIGQUIT');
    process.off('exit', abandon);
    rmSync(data, { recursive: true, force: true });
  };
  /** The backends of the server end by themselves. */
  const abandon = () => {
    server?.kill('SIGQUIT');
    rmSync(data, { recursive: true, force: true, maxRetries: 5 });
  };

  process.on('exit', abandon);
  execFileSync(
    join(binaries, 'initdb'),
    ['-D', data, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--no-sync'],
    options,
  );
  await start();
  return { url, start, stop, remove };
}

/** Postgres refuses to run as root. */
function serverUser() {
  if (process.getuid?.() !== 0) return undefined;
  const ask = (what) => Number(execFileSync('id', [what, 'postgres'], { encoding: 'utf8' }));
  return { uid: ask('-u'), gid: ask('-g') };
}

async function answers(url) {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1000 });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
