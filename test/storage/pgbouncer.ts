/** A PgBouncer for one test in front of the test server: it can be started, killed, paused and restarted on one port. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { SERVER, until } from './postgres-server.ts';

/** @returns whether the program is installed; logs it when it is not, because its tests are then skipped */
export function hasPgBouncer(): boolean {
  const found = spawnSync('pgbouncer', ['--version'], { env: ENV }).status === 0;
  if (!found) console.log('pgbouncer is not installed (`apt-get install pgbouncer`): its tests are skipped');
  return found;
}

/** Debian installs it in a folder that only the administrator's shell searches. */
const ENV = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` };
/** PgBouncer refuses to run as root. */
const NOBODY = 65_534;

export interface PgBouncer {
  /** The connection string of the same database through the pooler. */
  through(connectionString: string): string;
  start(): Promise<void>;
  /** Kills it, as a crash would. */
  kill(): Promise<void>;
  /** Runs a command on its console: `PAUSE`, `RESUME`, `DISABLE name`. */
  command(text: string): Promise<void>;
  /** Stops it and deletes its files. */
  stop(): Promise<void>;
}

/** @param settings - further lines of the section `[pgbouncer]` */
export async function createPgBouncer(settings: Readonly<Record<string, string | number>> = {}): Promise<PgBouncer> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'pgbouncer-'));
  const config = join(folder, 'pgbouncer.ini');
  const { hostname, port: serverPort, username, password } = new URL(SERVER);
  const server = { host: hostname, port: serverPort || 5432, user: username, ...(password && { password }) };
  const all = {
    ...{
      listen_addr: '127.0.0.1',
      listen_port: port,
      unix_socket_dir: '',
      auth_type: 'any',
      admin_users: username,
      pool_mode: 'transaction',
    },
    ...{
      max_client_conn: 500,
      default_pool_size: 20,
      server_login_retry: 1,
      ignore_startup_parameters: 'extra_float_digits',
    },
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
  const to = Object.entries(server).map(([name, value]) => `${name}=${value}`);
  writeFileSync(config, `[databases]\n* = ${to.join(' ')}\n[pgbouncer]\n${lines.join('\n')}\n`);
  const isRoot = process.getuid?.() === 0;
  chmodSync(folder, 0o755);
  let running: { readonly child: ChildProcess; readonly gone: Promise<void> } | undefined;

  const end = async (signal: NodeJS.Signals) => {
    const ended = running;
    running = undefined;
    ended?.child.kill(signal);
    await ended?.gone;
  };

  return {
    through: (connectionString) => Object.assign(new URL(connectionString), { host: `127.0.0.1:${port}` }).href,
    async start() {
      const as = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
      const child = spawn('pgbouncer', ['--quiet', config], { env: ENV, stdio: ['ignore', 'ignore', 'pipe'], ...as });
      let said = '';
      child.stderr?.on('data', (part) => {
        said += part;
      });
      // A test that times out leaves no process running.
      const kill = () => child.kill('SIGKILL');
      process.once('exit', kill);
      const gone = new Promise<void>((resolve) =>
        child.on('close', () => {
          process.off('exit', kill);
          resolve();
        }),
      );
      running = { child, gone };
      await until(async () => {
        if (child.exitCode !== null) throw new Error(`pgbouncer ended at once: ${said}`);
        return listens(port);
      }, 'pgbouncer to listen');
    },
    kill: () => end('SIGKILL'),
    async command(text) {
      const console = new pg.Client({ host: '127.0.0.1', port, user: username, database: 'pgbouncer' });
      await console.connect();
      await console.query(text);
      await console.end();
    },
    async stop() {
      await end('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address ? address.port : 0;
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
