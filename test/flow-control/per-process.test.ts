/** `perProcess`: how many executions of an ensemble one process runs at once, besides all limits. */

import { afterEach, describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { manualClock } from '../../src/entries/testing.ts';
import { createOrchestrator, type Orchestrator, type Storage } from '../../src/index.ts';
import { newFile } from '../storage/sqlite-files.ts';

const opened: Orchestrator[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close({ grace: 0 });
});
const settle = async () => {
  for (let i = 0; i < 30; i++) await new Promise((resolve) => setImmediate(resolve));
};

/** A process whose scripts end when they are told to. */
function open(storage: Storage, clock: ReturnType<typeof manualClock>, definition: object = {}) {
  const running: (() => void)[] = [];
  const most = { held: 0 };
  const script = () =>
    new Promise<number>((resolve) => {
      running.push(() => resolve(1));
      most.held = Math.max(most.held, running.length);
    });
  const flow = [{ agent: 'a', operation: 'code', config: { script: 'script' } }];
  const orchestrator = createOrchestrator({
    ensembles: [
      { name: 'work', perProcess: 2, flow, ...definition },
      { name: 'other', flow },
    ] as never,
    ...{ scripts: { script }, storage, clock, logger: false },
  }) as unknown as Orchestrator;
  opened.push(orchestrator);
  const finishOne = async () => {
    running.shift()?.();
    await settle();
    await clock.advance(1);
    await settle();
  };
  return { orchestrator, running, most, finishOne };
}

describe.each([
  ['memory', () => memoryStorage()],
  ['SQLite', () => sqliteStorage({ path: newFile() })],
])('perProcess on %s', (_name, create) => {
  it('runs no more at once, queues the others, also those of a call that waits, and runs all of them', async () => {
    const clock = manualClock();
    const { orchestrator, running, most, finishOne } = open(create(), clock);
    await orchestrator.ready();
    const handles = await Promise.all([1, 2, 3, 4].map(() => orchestrator.start('work')));
    const awaited = orchestrator.execute('work');
    await settle();
    expect(running).toHaveLength(2);
    expect((await orchestrator.executions.list({ status: 'queued' })).executions).toHaveLength(3);
    for (let left = 5; left > 0; left--) await finishOne();
    expect(most.held).toBe(2);
    for (const handle of handles) expect((await handle.result()).status).toBe('completed');
    expect((await awaited).status).toBe('completed');
  });

  it('other ensembles run meanwhile, and an execution that waits does not count', async () => {
    const clock = manualClock();
    const flow = [{ sleep: '1h' }, { agent: 'a', operation: 'code', config: { script: 'script' } }];
    const { orchestrator, running, most, finishOne } = open(create(), clock, { perProcess: 1, flow });
    await orchestrator.ready();
    const handles = await Promise.all([1, 2, 3].map(() => orchestrator.start('work')));
    await settle();
    await clock.advance(1);
    await settle();
    expect((await orchestrator.executions.list({ status: 'waiting' })).executions).toHaveLength(3);
    await orchestrator.start('other');
    await settle();
    expect(running).toHaveLength(1);
    await finishOne();
    most.held = 0;
    await clock.advance(3_600_000);
    await settle();
    expect(running).toHaveLength(1);
    for (let left = 3; left > 0; left--) await finishOne();
    expect(most.held).toBe(1);
    for (const handle of handles) expect((await handle.result()).status).toBe('completed');
  });
});

it('two processes each have their own number', async () => {
  const clock = manualClock();
  const storage = memoryStorage({ shared: true });
  const [one, two] = [open(storage, clock), open(storage, clock)];
  await Promise.all([one.orchestrator.ready(), two.orchestrator.ready()]);
  for (let nr = 0; nr < 5; nr++) await one.orchestrator.start('work');
  for (let i = 0; i < 10; i++) {
    await settle();
    await clock.advance(1_000);
  }
  expect([one.running.length, two.running.length]).toEqual([2, 2]);
});

it.each([0, 1.5, '2', 100_001])('`perProcess: %s` is refused', (perProcess) => {
  expect(() => open(memoryStorage(), manualClock(), { perProcess })).toThrow('perProcess');
});
