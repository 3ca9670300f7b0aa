/** A flow that never waits yields to the event loop, and its timeout ends it. */

import { describe, expect, it } from 'vitest';
import { manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { Clock } from '../../src/engine/host/clock.port.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { code } from './scene.ts';

type Fields = Readonly<Record<string, unknown>>;
const count = (length: number) => Array.from({ length }, (_, i) => i);
const nothing = { if: 'false', then: [] };

/** Runs a flow, and counts the turns of the event loop meanwhile. */
async function turnsDuring(ensemble: Fields, clock: Clock, storage: Storage = memoryStorage()) {
  const orchestrator = createOrchestrator({
    ensembles: [{ name: 'e', ...ensemble } as never],
    scripts: { id: ({ input }) => (input as { n: number }).n },
    clock,
    storage,
  });
  await orchestrator.ready();
  let turns = 0;
  let isOver = false;
  const turn = () => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const run = await orchestrator.execute('e', { n: 1, items: count(200) });
  isOver = true;
  await orchestrator.close({ grace: 0 });
  return { run, turns };
}

const busy: readonly (readonly [string, Fields])[] = [
  ['rounds without work', { flow: [{ while: 'true', steps: [nothing], maxIterations: 20_000 }] }],
  [
    'a foreach in a foreach',
    { flow: [{ foreach: '${input.items}', steps: [{ foreach: '${input.items}', steps: [nothing] }] }] },
  ],
  [
    'a foreach of a script that answers at once',
    { flow: [{ foreach: count(20_000), steps: [code('a', 'id')], collect: false }] },
  ],
  ['... of several items at a time', { flow: [{ foreach: count(20_000), steps: [code('a', 'id')], concurrency: 5 }] }],
];

describe('a flow that never waits', () => {
  it.each(busy)('yields to the event loop, even when the clock does not advance: %s', async (_what, ensemble) => {
    const { turns } = await turnsDuring(ensemble, manualClock());
    // One turn in 1,000 steps.
    expect(turns).toBeGreaterThanOrEqual(15);
  });

  it('... and with a storage that answers at once', async () => {
    const flow = [{ foreach: count(2000), steps: [code('a', 'id')], collect: false }];
    const storage = sqliteStorage({ path: ':memory:' });
    const before = process.cpuUsage();
    const { run, turns } = await turnsDuring({ flow }, systemClock(), storage);
    expect(run.status).toBe('completed');
    // One turn in 10 ms, when single steps are shorter. Time that other processes take on a busy machine does not count.
    const { user, system } = process.cpuUsage(before);
    expect(turns).toBeGreaterThan((user + system) / 1000 / 10 / 4);
  });

  it('yields together with other runs of the process', async () => {
    const orchestrator = createOrchestrator({
      ensembles: [{ name: 'e', flow: count(5).map((i) => code(`a${i}`, 'id')) } as never],
      scripts: { id: () => 1 },
      clock: manualClock(),
    });
    let turns = 0;
    let isOver = false;
    const turn = () => {
      turns += 1;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    for (let i = 0; i < 2000; i++) await orchestrator.execute('e', {});
    isOver = true;
    expect(turns).toBeGreaterThanOrEqual(8);
    await orchestrator.close();
  });

  it('does not yield when it is short', async () => {
    const { turns } = await turnsDuring({ flow: count(5).map((i) => code(`a${i}`, 'id')) }, manualClock());
    expect(turns).toBe(0);
  });

  it('is timed out by its steps, which read the clock, though its timer never fires', async () => {
    let monotonic = 0;
    const still = manualClock();
    const clock: Clock = {
      ...still,
      monotonic: () => monotonic,
      now: () => 1e12 + monotonic,
      setTimer: () => () => {},
    };
    const ran: string[] = [];
    const orchestrator = createOrchestrator({
      ensembles: [
        {
          name: 'e',
          timeout: 2500,
          flow: [
            { try: ['a', 'b', 'c', 'd'].map((name) => code(name, 'long')), finally: [code('cleanup', 'long')] },
            code('e', 'long'),
          ],
        } as never,
      ],
      scripts: {
        long: ({ execution }) => {
          ran.push(execution.agent);
          monotonic += 1000;
          return null;
        },
      },
      clock,
    });
    const run = await orchestrator.execute('e');
    expect(run.status).toBe('timed_out');
    expect(ran).toEqual(['a', 'b', 'c', 'cleanup']);
  });

  it('is cancelled while it runs', async () => {
    const orchestrator = createOrchestrator({
      ensembles: [{ name: 'e', flow: [{ while: 'true', steps: [nothing], maxIterations: 400_000 }] } as never],
    });
    const handle = await orchestrator.start('e');
    const timer = setTimeout(() => handle.cancel(), 20);
    expect((await handle.result()).status).toBe('cancelled');
    clearTimeout(timer);
    await orchestrator.close();
  });
});
