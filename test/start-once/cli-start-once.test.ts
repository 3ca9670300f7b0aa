/** Own ids and tags on the command line, and the filters of `ensemble execution list`, from a store and from a server. */

import { beforeAll, describe, expect, it } from 'vitest';
import { ensemble, ensureBuilt, makeFolder } from '../cli/cli-process.ts';
import { GREET, makeProject, serveProject } from '../cli/served-project.ts';

beforeAll(ensureBuilt, 60_000);

describe('ensemble execution list', () => {
  it('filters by tag, time and search, and shows tags where there are any', async () => {
    const served = await serveProject(makeProject(GREET));
    const start = (body: object) => served.api('/execute/ensemble/greet', { input: { who: 'Ada' }, ...body });
    await start({ id: 'order-7', tags: ['customer=7', 'vip'] });
    await start({ id: 'a-plain-one' });
    const ways = [
      [[], { cwd: served.cwd }],
      [['--url', served.url, '--token', served.token], {}],
    ] as const;
    for (const [where, options] of ways) {
      const list = (...more: readonly string[]) => ensemble(['execution', 'list', ...where, ...more], options);
      const idsOf = async (...more: readonly string[]) =>
        JSON.parse((await list(...more, '--json')).stdout).executions.map(({ id }: { id: string }) => id);
      expect(await idsOf()).toEqual(['a-plain-one', 'order-7']);
      expect(await idsOf('--tag', 'vip', '--since', '1h')).toEqual(['order-7']);
      expect(await idsOf('--search', 'order-', '--until', '2000-01-01')).toEqual([]);
      expect(await idsOf('--search', 'customer', '--since', '2026-01-01T00:00:00Z')).toEqual(['order-7']);
      expect(await idsOf('--oldest')).toEqual(['order-7', 'a-plain-one']);
      expect(await idsOf('--error', 'TIMEOUT')).toEqual([]);
      const [head, row] = (await list('--tag', 'vip')).stdout.trimEnd().split('\n');
      expect(head).toMatch(/^ID +ENSEMBLE +STATUS +STARTED +DURATION +TAGS$/);
      expect(row).toMatch(/^order-7 +greet +completed .* customer=7, vip$/);
      expect((await list('--search', 'a-')).stdout).not.toContain('TAGS');
      expect((await list('--tag', 'none')).stderr).toBe('no matching executions\n');
      const shown = await ensemble(['execution', 'show', 'order-7', ...where], options);
      expect(shown.stdout).toMatch(/^order-7\n(.*\n)* {2}tags +customer=7, vip\n/);
      expect((await ensemble(['execution', 'watch', 'order-7', ...where], options)).code).toBe(0);
    }
  }, 120_000);

  it('a wrong instant is wrong usage', async () => {
    const { code, stderr } = await ensemble([
      'execution',
      'list',
      '--since',
      'yesterday',
      '--url',
      'http://127.0.0.1:1',
      '--token',
      'x',
    ]);
    expect(code).toBe(2);
    expect(stderr).toContain('--since must be a duration back from now such as 2h');
  });
});

describe('ensemble run', () => {
  const project = () =>
    makeFolder({
      'ensembles/greet.yaml': 'name: greet\nflow: []\noutputs: { me: "${execution.id}" }\n',
    });

  it('takes an id and tags', async () => {
    const { code, stdout } = await ensemble(['run', 'greet', '--id', 'mine', '--tag', 'a=1', '--tag', 'b', '--json'], {
      cwd: project(),
    });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ id: 'mine', tags: ['a=1', 'b'], output: { me: 'mine' } });
  });

  it.each([
    [['--id', 'exec_1'], '--id: `id` must be 1 to 128'],
    [['--tag', ''], '--tag: `tags` must be a list'],
  ])('%j is wrong usage', async (options, message) => {
    const { code, stderr } = await ensemble(['run', 'greet', ...options], { cwd: project() });
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});
