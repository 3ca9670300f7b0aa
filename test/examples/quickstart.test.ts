/** The quickstart does what its README says, once and as a service (issue 2, point 1; issue 3, points 4 and 7). */

import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ensemble, ensureBuilt, makeFolder, type Ran, ROOT } from '../cli/cli-process.ts';
import { readCurlLine, saidOnStdout } from '../cli/served-project.ts';

beforeAll(ensureBuilt, 60_000);

const EXAMPLE = join(ROOT, 'examples/quickstart');

/** The example in a folder of its own: its store stays out of the repository. */
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

/** Without what differs from run to run: ports, times, the ticket's number, ids and token. */
function steady(stdout: string, folder: string): readonly string[] {
  return stdout
    .replaceAll(folder, 'FOLDER')
    .replace(/\nPort 3000 is taken; .*\n/, '')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    .replace(/ +\d+ ms/g, ' N ms')
    .replace(/T-1002-[0-9a-f]{6}/, 'T-1002-KEY')
    .replace(/exec_\w{26}/, 'exec_ID')
    .replace(/sk-service-\w{42}/g, 'TOKEN')
    .trimEnd()
    .split('\n');
}

// Newer versions of Node.js say this of their own SQLite.
const withoutWarning = (stderr: string) =>
  stderr.replace(/^.*SQLite is an experimental feature.*\n\(Use `.* --trace-warnings.*\n/m, '');

describe('issue 2.1, 3.4: the quickstart with --once', () => {
  it('prints its orders, agent by agent, with what came of them; then calls itself over HTTP, and ends', async () => {
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
      '  reserve    retry              attempt 1: POST http://127.0.0.1:PORT/reservations answered 503; again in N ms',
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
      'The same as a service, on http://127.0.0.1:PORT; its store is FOLDER/.ensemble/quickstart.sqlite',
      'A token for everything, shown this once: TOKEN',
      '',
      'Try it:',
      '',
      `curl http://127.0.0.1:PORT/api/v1/execute/ensemble/order-intake -H 'Authorization: Bearer TOKEN' -H 'Content-Type: application/json' -d '{"input":{"order":"1004","customer":"ada","lines":[{"sku":"chair-02","quantity":2}],"express":true}}'`,
      '',
      'The same, sent from here',
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
    ]);
  });

  it('is a project that `ensemble validate` finds nothing in', async () => {
    const { stdout, code } = await ensemble(['validate', EXAMPLE]);
    expect([code, stdout]).toEqual([0, '✓ 6 files, no problems\n']);
  });
});

describe('issue 3.4: the quickstart as a service', () => {
  it('answers the line that it prints until Ctrl-C; a second start finds its store, and has a line that works again', async () => {
    const folder = copyExample();
    const printed: string[] = [];
    for (const [stored, token] of [
      [4, 'A token for everything, shown this once: sk-service-'],
      [8, 'A token for everything, shown this once, good for a day: sk-service-'],
    ] as const) {
      const service = start(folder);
      const stdout = await saidOnStdout(service, /It goes on listening; Ctrl-C ends it\.\n/);
      expect(stdout).toContain(token);
      const line = readCurlLine(stdout);
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
      // Two orders and two calls a start; the third order is refused, and stored nowhere.
      expect(executions).toHaveLength(stored);
    }
    expect(printed[0]).not.toBe(printed[1]);
    expect(existsSync(join(folder, '.ensemble/.gitignore'))).toBe(true);
  });

  it('takes the next free port when 3000 is taken, and says so', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => {
      // Where somebody else has it, it is taken as well.
      taken.once('error', () => resolve());
      taken.listen(3000, '127.0.0.1', resolve);
    });
    onTestFinished(() => void taken.close());
    const { code, stdout } = await start(copyExample(), '--once').ended;
    const [, port] = /\nPort 3000 is taken; the next free one is (\d+)\.\n/.exec(stdout) ?? [];
    expect([code, Number(port)]).toEqual([0, expect.any(Number)]);
    expect(Number(port)).toBeGreaterThan(3000);
    expect(stdout).toContain(`The same as a service, on http://127.0.0.1:${port};`);
  });
});
