/** `concurrency` of an agent: how many attempts are made at once, over all executions and processes. */

import { describe, expect, it } from 'vitest';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { createOrchestrator } from '../../src/index.ts';
import { STORES } from './stores.ts';

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(Object.entries(STORES))('an agent on %s', (_name, open) => {
  it.each(['step', 'none'])(
    'with a shared limit: no more calls at once than it allows, in two ensembles and all processes (durability: %s)',
    async (durability) => {
      let [now, most, calls] = [0, 0, 0];
      const ask = {
        agent: 'ask',
        operation: 'code',
        config: { script: 'ask' },
        concurrency: { shared: 'bank' },
      };
      const made = (await open()).map((storage) =>
        createOrchestrator({
          storage,
          logger: false,
          sharedLimits: { bank: { concurrency: 3 } },
          ensembles: [
            {
              name: 'pay',
              execution: { durability },
              flow: [{ foreach: '${range(0, 4)}', concurrency: 4, steps: [ask] }],
            },
            { name: 'refund', flow: [ask] },
          ] as never,
          scripts: {
            async ask() {
              now += 1;
              calls += 1;
              most = Math.max(most, now);
              await pause(15);
              now -= 1;
            },
          },
        }),
      );
      const ends = await Promise.all(
        Array.from({ length: 12 }, (_, i) => made[i % made.length]?.execute(i % 3 === 0 ? 'refund' : 'pay', {})),
      );
      expect(ends.map((end) => end?.status)).toEqual(Array(12).fill('completed'));
      expect([most, calls]).toEqual([3, 36]);
      await Promise.all(made.map((one) => one.close()));
    },
  );
});

describe('an agent', () => {
  const app = (concurrency: object, options: object = {}) => {
    const open = new Map<string, () => void>();
    const orchestrator = createTestOrchestrator({
      ensembles: [
        {
          name: 'pay',
          flow: [{ agent: 'ask', operation: 'code', config: { script: 'ask' }, concurrency, ...options }],
        } as never,
      ],
      scripts: {
        ask: ({ input }) => new Promise<void>((resolve) => open.set((input as { readonly job: string }).job, resolve)),
      },
    });
    const settle = async () => {
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    };
    return { orchestrator, settle, open, running: () => [...open.keys()] };
  };

  it('with `limit` and `key`: each key has slots of its own; a slot is given back when the attempt has ended', async () => {
    const { orchestrator, settle, open, running } = app({ limit: 1, key: '${input.bank}' });
    const start = (bank: string, job: string) => orchestrator.start('pay', { bank, job });
    const handles = [await start('a', '1'), await start('a', '2'), await start('b', '3')];
    await settle();
    expect(running()).toEqual(['1', '3']);
    open.get('1')?.();
    await settle();
    expect(running()).toEqual(['1', '3', '2']);
    open.get('2')?.();
    open.get('3')?.();
    for (const handle of handles) expect((await handle.result()).status).toBe('completed');
  });

  it('its `timeout` counts from the slot; a cancelled execution waits no longer', async () => {
    const { orchestrator, settle, open, running } = app({ limit: 1 }, { timeout: '1m' });
    const { clock, executions } = orchestrator;
    const first = await orchestrator.start('pay', { job: '1' });
    const second = await orchestrator.start('pay', { job: '2' });
    const third = await orchestrator.start('pay', { job: '3' });
    await clock.advance(50_000);
    await executions.cancel(second.id);
    expect((await second.result()).status).toBe('cancelled');
    open.get('1')?.();
    await settle();
    expect(running()).toEqual(['1', '3']);
    await clock.advance(59_000);
    expect((await executions.get(third.id)).status).toBe('running');
    open.get('3')?.();
    expect((await third.result()).status).toBe('completed');
    expect((await first.result()).status).toBe('completed');
  });

  it('whose key is not a text fails the attempt, and says so', async () => {
    const { orchestrator } = app({ limit: 1, key: '${input.bank}' });
    const { status, error } = await orchestrator.execute('pay', { bank: [], job: '1' });
    expect([status, error?.message]).toEqual([
      'failed',
      '`concurrency.key` of agent `ask` must be a text, a number or a boolean for each execution, not an empty list',
    ]);
  });

  it.each([
    [{}, 'needs `limit`, or `shared` with the name of a shared limit'],
    [{ shared: 'bnk' }, 'there is no shared limit `bnk`'],
    [{ limit: 1, shared: 'bank' }, '`limit` and `shared` are both given; keep one of them'],
    [{ limit: 0 }, 'must be at least 1, not 0'],
  ])('with %j is refused', (concurrency, message) => {
    expect(() => app(concurrency)).toThrow(message);
  });
});
