/** The quickstart does what its README says (issue 2, point 1). */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { CLI, ensureBuilt, ROOT } from '../cli/cli-process.ts';

beforeAll(ensureBuilt, 60_000);

const START = join(ROOT, 'examples/quickstart/start.mjs');
const run = (args: readonly string[]) => {
  const { PATH, HOME } = process.env;
  return spawnSync(process.execPath, args, {
    encoding: 'utf8',
    env: { PATH, HOME } as NodeJS.ProcessEnv,
    cwd: join(ROOT, 'test'),
  });
};

describe('issue 2.1: the quickstart', () => {
  it('prints its orders, agent by agent, with what came of them', () => {
    const { stdout, stderr, status } = run([START, '--once']);
    expect([status, stderr]).toEqual([0, '']);
    // What differs from run to run: the port, times, and the ticket's number.
    const lines = stdout
      .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
      .replace(/ +\d+ ms/g, ' N ms')
      .replace(/T-1002-[0-9a-f]{6}/, 'T-1002-KEY')
      .trimEnd()
      .split('\n');
    expect(lines).toEqual([
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
      '  =>         accepted N ms  6 agents ran',
      '     decision     accepted',
      '     customer     Ada',
      '     total        197.6',
      '     reservation  R-4002',
      '     pickup       today',
      '',
      'orders/1002-large.json',
      '  customer   ok N ms',
      '  price      ok N ms',
      '  price      ok N ms',
      '  price      ok N ms',
      '  score      ok N ms',
      '  hand-over  ok N ms',
      '  courier    skipped',
      '  =>         review N ms  6 agents ran',
      '     decision     review',
      '     customer     Grace',
      '     total        1630',
      '     ticket       T-1002-KEY',
      '',
      'orders/1003-incomplete.json',
      "  =>         refused            the input of `order-intake` does not fit: lines must be a list, not 'two chairs, please'",
    ]);
  });

  it('without --once says in one line that there is no service yet', () => {
    const { stdout, status } = run([START]);
    expect(status).toBe(0);
    expect(stdout.trimEnd().split('\n').at(-1)).toBe(
      'All orders ran once; this version has no service that would go on listening.',
    );
  });

  it('is a project that `ensemble validate` finds nothing in', () => {
    const { stdout, status } = run([CLI, 'validate', join(ROOT, 'examples/quickstart')]);
    expect([status, stdout]).toEqual([0, '✓ 6 files, no problems\n']);
  });
});
