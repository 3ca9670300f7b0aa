/** The quickstart does what its README says, once and as a service. */

import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ensemble, ensureBuilt, makeFolder, type Ran, ROOT } from '../cli/cli-process.ts';
import { readCurlLine, waitForStdout } from '../cli/served-project.ts';

beforeAll(ensureBuilt, 60_000);

const EXAMPLE = join(ROOT, 'examples/quickstart');

/** The example in a temporary folder, so that its store is not in the repository. */
function copyExample(): string {
  const folder = makeFolder({});
  cpSync(EXAMPLE, folder, { recursive: true, filter: (path) => !path.includes('.ensemble') });
  return folder;
}

interface Example {
  readonly child: ChildProcess;
  readonly ended: Promise<Ran>;
}

function start(folder: string, ...args: readonly string[]): Example {
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME } as NodeJS.ProcessEnv;
  const child = spawn(process.execPath, [join(folder, 'start.mjs'), ...args], { cwd: folder, env });
  onTestFinished(() => void child.kill('SIGKILL'));
  const written = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].on('data', (chunk) => {
      written[stream] += chunk;
    });
  }
  return { child, ended: new Promise((resolve) => child.on('close', (code) => resolve({ code, ...written }))) };
}

/** The output without the parts that differ on each run: ports, times, the ticket's number, ids and the token. */
function steady(stdout: string, folder: string): readonly string[] {
  return stdout
    .replaceAll(folder, 'FOLDER')
    .replace(/\nPort 3000 is in use; .*\n/, '')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    .replace(/ +\d+ ms/g, ' N ms')
    .replace(/T-1002-[0-9a-f]{6}/, 'T-1002-KEY')
    .replace(/exec_\w{26}/, 'exec_ID')
    .replace(/sk-service-\w{42}/g, 'TOKEN')
    .trimEnd()
    .split('\n');
}

// Newer versions of Node.js print this warning for their SQLite module.
const withoutWarning = (stderr: string) =>
  stderr.replace(/^.*SQLite is an experimental feature.*\n\(Use `.* --trace-warnings.*\n/m, '');

describe('the quickstart with --once', () => {
  it('prints the agents and the result of each order, then calls itself over HTTP, and ends', async () => {
    const folder = copyExample();
    const { code, stdout, stderr } = await start(folder, '--once').ended;
    expect([code, withoutWarning(stderr)]).toEqual([0, '']);
    expect(steady(stdout, folder)).toEqual([
      'order intake: a customer service and a warehouse listen on http://127.0.0.1:PORT',
      '',
      'orders/1001-regular.json',
      '  customer   ok N ms',
      '  price      ok N ms',
      '  price      ok N ms',
      '  score      ok N ms',
      '  reserve    retry              attempt 1: POST http://127.0.0.1:PORT/reservations answered 503; retry in N ms',
      '  reserve    ok N ms',
      '  courier    ok N ms',
      '  keep       ok N ms',
      '  =>         accepted N ms  7 agents ran',
      '     decision     accepted',
      '     customer     Ada',
      '     total        197.6',
      '     reservation  R-4002',
      '     pickup       today',
      '     keptAs       orders/1001',
      '',
      'orders/1002-large.json',
      '  customer   ok N ms',
      '  price      ok N ms',
      '  price      ok N ms',
      '  price      ok N ms',
      '  score      ok N ms',
      '  hand-over  ok N ms',
      '  courier    skipped',
      '  keep       ok N ms',
      '  =>         review N ms  7 agents ran',
      '     decision     review',
      '     customer     Grace',
      '     total        1630',
      '     ticket       T-1002-KEY',
      '     keptAs       orders/1002',
      '',
      'orders/1003-incomplete.json',
      "  =>         refused            the input of `order-intake` does not fit: lines must be a list, not 'two chairs, please'",
      '',
      'A request to the same project as a service, sent by this program',
      '  customer   ok N ms',
      '  price      ok N ms',
      '  score      ok N ms',
      '  reserve    ok N ms',
      '  courier    ok N ms',
      '  keep       ok N ms',
      '  =>         accepted N ms  6 agents ran, as exec_ID',
      '     decision     accepted',
      '     customer     Ada',
      '     total        245.1',
      '     reservation  R-4003',
      '     pickup       today',
      '     keptAs       orders/1004',
      '',
      'The service ends with this program. `npm start` keeps it, with a token, a curl line and the dashboard.',
    ]);
  });

  it('is a project without problems for `ensemble validate`', async () => {
    const { stdout, code } = await ensemble(['validate', EXAMPLE]);
    expect([code, stdout]).toEqual([0, '✓ 6 files, no problems\n']);
  });
});

describe('the quickstart as a service', () => {
  it('responds to its printed command until Ctrl-C; a second start uses the same store and prints a new command', async () => {
    const folder = copyExample();
    const printed: string[] = [];
    for (const [stored, token] of [
      [4, 'An admin token, shown only once: sk-service-'],
      [8, 'An admin token, shown only once, valid for a day: sk-service-'],
    ] as const) {
      const service = start(folder);
      const stdout = await waitForStdout(service, /The service continues to listen\. Press Ctrl-C to stop it\.\n/);
      expect(stdout).toContain(token);
      const line = readCurlLine(stdout);
      // The address that it prints leads a browser to the dashboard.
      const [, address = ''] = /See it in a browser, .*: (http\S+)\n/.exec(stdout) ?? [];
      const page = await fetch(address, { headers: { accept: 'text/html,*/*' } });
      expect([page.status, page.url]).toEqual([200, `${address}/dashboard/`]);
      printed.push(new Headers(line.init.headers).get('authorization') as string);
      const response = await fetch(line.url, line.init);
      expect([response.status, await response.json()]).toMatchObject([
        200,
        { status: 'completed', output: { decision: 'accepted', keptAs: 'orders/1004' } },
      ]);
      service.child.kill('SIGINT');
      expect((await service.ended).code).toBe(0);
      await expect(fetch(line.url, line.init)).rejects.toThrow('fetch failed');
      const store = `sqlite:${join(folder, '.ensemble/quickstart.sqlite')}`;
      const { executions } = JSON.parse((await ensemble(['execution', 'list', '--json', '--storage', store])).stdout);
      // Each start stores two orders and two calls. The third order is refused and not stored.
      expect(executions).toHaveLength(stored);
    }
    expect(printed[0]).not.toBe(printed[1]);
    expect(existsSync(join(folder, '.ensemble/.gitignore'))).toBe(true);
  });

  it('uses the next free port when 3000 is in use, and prints it', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => {
      // The port is also in use when another process has it.
      taken.once('error', () => resolve());
      taken.listen(3000, '127.0.0.1', resolve);
    });
    onTestFinished(() => void taken.close());
    const service = start(copyExample());
    const stdout = await waitForStdout(service, /The service continues to listen/);
    service.child.kill('SIGINT');
    const { code } = await service.ended;
    const [, port] = /\nPort 3000 is in use; the next free port is (\d+)\.\n/.exec(stdout) ?? [];
    expect([code, Number(port)]).toEqual([0, expect.any(Number)]);
    expect(Number(port)).toBeGreaterThan(3000);
    expect(stdout).toContain(`The same project as a service: http://127.0.0.1:${port},`);
  });
});
