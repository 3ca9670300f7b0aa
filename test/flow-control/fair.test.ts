/** `fair`: queued executions of different tenants take turns, and those of the users of a tenant. */

import { describe, expect, it } from 'vitest';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { memoryStorage } from '../../src/index.ts';
import { newFile } from '../storage/sqlite-files.ts';
import { world } from './world.ts';

const STORES = { memory: () => memoryStorage(), SQLite: () => sqliteStorage({ path: newFile() }) };

describe.each(Object.entries(STORES))('fair on %s', (_name, openStorage) => {
  /** Starts one job after the other, and returns them in the order in which they began. */
  const order = async (rules: object, jobs: readonly string[]): Promise<string[]> => {
    const begun: string[] = [];
    let open = () => {};
    const all = new Promise<void>((resolve) => {
      open = resolve;
    });
    const orchestrator = createTestOrchestrator({
      storage: openStorage(),
      ensembles: [
        { name: 'work', ...rules, flow: [{ agent: 'do', operation: 'code', config: { script: 'work' } }] } as never,
      ],
      scripts: {
        async work({ input }) {
          begun.push((input as { readonly job: string }).job);
          await all;
        },
      },
    });
    const handles = [];
    for (const job of jobs) {
      const [tenant = '', user = ''] = job.split(' ');
      handles.push(await orchestrator.start('work', { tenant, user, job }));
    }
    open();
    await Promise.all(handles.map((handle) => handle.result()));
    await orchestrator.close();
    return begun;
  };
  const jobsOf = (tenant: string, users: number, each: number) =>
    Array.from({ length: users * each }, (_, i) => `${tenant} u${Math.floor(i / each)} ${i % each}`);

  it('one limit for all: a tenant with many users does not hold up another one, and its users take turns', async () => {
    const rules = { fair: ['${input.tenant}', '${input.user}'], concurrency: { limit: 1 } };
    const begun = await order(rules, [...jobsOf('big', 20, 3), ...jobsOf('small', 1, 5), ...jobsOf('other', 2, 3)]);
    expect(begun).toHaveLength(71);
    const placeOf = (job: string) => begun.indexOf(job);
    // The first one began before the others came.
    expect(placeOf('small u0 4')).toBeLessThanOrEqual(16);
    expect(placeOf('other u1 2')).toBeLessThanOrEqual(19);
    const first = begun.filter((job) => job.startsWith('big')).slice(1, 21);
    expect(new Set(first.map((job) => job.split(' ')[1])).size).toBe(20);
  });

  it('a limit by key that a tenant spreads over does not hold up another tenant', async () => {
    const rules = { fair: '${input.tenant}', concurrency: [{ limit: 1, key: '${input.user}' }, { limit: 1 }] };
    const begun = await order(rules, [...jobsOf('big', 30, 1), ...jobsOf('small', 3, 1)]);
    expect(begun.findIndex((job) => job === 'small u2 0')).toBeLessThanOrEqual(7);
  });
});

describe('definitions', () => {
  it.each([
    ['tenant', 'must read the input, such as `${input.customer}`'],
    [[], 'at least 1'],
    [['${input.a}', '${input.b}', '${input.c}'], 'or a list of one or two, such as a tenant and its user, not a list'],
    [3, 'must be an expression such as `${input.tenant}`, or a list of one or two, such as a tenant and its user'],
  ])('%j is refused', (fair, message) => {
    expect(() => world(null, { rules: { fair } })).toThrow(message);
  });

  it('an input without a tenant is refused, and nothing is queued', async () => {
    const { orchestrator } = world(null, { rules: { fair: '${input.tenant}' } });
    await expect(orchestrator.start('export', { job: 'a' })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('`fair` (${input.tenant})'),
    });
    expect((await orchestrator.executions.list()).executions).toEqual([]);
  });
});
