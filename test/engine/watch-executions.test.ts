/** Readers of stored events: their queries while nothing happens, and the position from which they read. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { accept, entry, execution, step, WORKER } from '../../src/conformance/storage-suite/context.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';
import { watchedStorage } from '../storage/watched-storage.ts';
import { ok, scene } from './scene.ts';

const FLOW = [ok('a'), { wait: 'go' }, ok('b')];

/** Readers of an execution that waits, and the events that they received. */
async function readers(shared: boolean, count: number) {
  const watched = watchedStorage(memoryStorage({ shared }));
  const made = scene(FLOW, { storage: watched.storage });
  const run = await made.start();
  await made.clock.advance(2000);
  const gone = new AbortController();
  const received: string[][] = [];
  const ended = Array.from({ length: count }, async (_, i) => {
    received[i] = [];
    for await (const { id, event } of made.orchestrator.executions.events(run.id, { signal: gone.signal }))
      received[i]?.push(`${id} ${event.event}`);
  });
  await made.clock.advance(1000);
  return { ...made, ...watched, run, gone, received, ended: Promise.all(ended) };
}

describe('readers that wait', () => {
  it('50 readers of one execution poll a shared storage twice a second, like one reader', async () => {
    const { calls, clock, gone, ended } = await readers(true, 50);
    calls();
    await clock.advance(10_000);
    const { 'executions.getStatus': statuses, 'executions.listSteps': steps, ...others } = calls();
    expect([statuses, steps]).toEqual([20, 20]);
    for (const verb of ['executions.get', 'executions.getAccepted', 'executions.skipSteps', 'signals.list'])
      expect(others).not.toHaveProperty([verb]);
    gone.abort();
    await ended;
    calls();
    await clock.advance(10_000);
    expect(calls()).not.toHaveProperty(['executions.getStatus']);
  });

  it('do not poll a storage that no other process shares, and no timer runs', async () => {
    const { calls, clock, run, orchestrator, received, ended } = await readers(false, 3);
    calls();
    await clock.advance(60_000);
    expect(calls()).toEqual({});
    expect(clock.nextIn).toBeUndefined();
    await orchestrator.executions.signal(run.id, 'go');
    await run.result();
    await ended;
    for (const one of received)
      expect(one).toEqual([
        ...['1 execution.started', '2 agent.completed', '3 step.waiting', '4 signal.taken'],
        ...['5 agent.completed', '6 execution.completed'],
      ]);
  });

  it('receive what another process stores, from the position of each', async () => {
    const storage = memoryStorage({ shared: true });
    await accept(storage, execution(1));
    const { id } = execution(1);
    const reader = createTestOrchestrator({ storage });
    const received: string[][] = [[], []];
    const ended = [undefined, '2'].map(async (after, i) => {
      for await (const event of reader.executions.events(id, { ...(after !== undefined && { after }) }))
        received[i]?.push(event.id);
    });
    await reader.clock.advance(1000);
    for (const key of ['flow[0]', 'flow[1]']) {
      storage.commit(WORKER, [entry(1, { steps: [step(key)] })]);
      await reader.clock.advance(500);
    }
    expect(received).toEqual([['1', '2', '3'], ['3']]);
    storage.commit(WORKER, [
      entry(1, { end: { status: 'completed', output: null, finishedAt: 1, duration: 1, agents: 2 } }),
    ]);
    await reader.clock.advance(500);
    await Promise.all(ended);
    expect(received).toEqual([
      ['1', '2', '3', '4'],
      ['3', '4'],
    ]);
  });

  it('receive each failure of the storage', async () => {
    let isAway = false;
    const inner = memoryStorage({ shared: true });
    const storage = changeStorage(inner, {
      executions: {
        getStatus(id) {
          if (isAway) throw new Error('away');
          return inner.executions.getStatus(id);
        },
      },
    });
    await accept(inner, execution(1));
    const reader = createTestOrchestrator({ storage });
    const reads = [1, 2].map(async () => {
      for await (const _ of reader.executions.events(execution(1).id));
    });
    const failures = Promise.allSettled(reads);
    await reader.clock.advance(1000);
    isAway = true;
    await reader.clock.advance(1000);
    expect((await failures).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });
});

describe('a reader that comes back', () => {
  it('reads nothing again that it had before', async () => {
    const inner = memoryStorage({ shared: true });
    await accept(inner, execution(1));
    const keys = Array.from({ length: 20_000 }, (_, i) => `flow[0].foreach[${i}].steps[0]`);
    inner.commit(WORKER, [entry(1, { steps: keys.map((key) => step(key)) })]);
    let read = 0;
    const storage = changeStorage(inner, {
      executions: {
        async listSteps(id, query) {
          const steps = await inner.executions.listSteps(id, query);
          read += steps.length;
          return steps;
        },
      },
    });
    const { executions } = createTestOrchestrator({ storage });
    for (const [after, next] of [
      ['19999', '20000'],
      ['1', '2'],
    ] as const) {
      read = 0;
      const events = executions.events(execution(1).id, { after });
      const { value } = await events.next();
      await events.return?.();
      expect([after, value.id, value.event.data.key]).toEqual([after, next, keys[Number(next) - 2]]);
      expect(read).toBeLessThanOrEqual(250);
    }
  });

  it('with an id that does not exist yet receives later events, and reads nothing before', async () => {
    const { storage, calls } = watchedStorage(memoryStorage({ shared: true }));
    await accept(storage, execution(1));
    storage.commit(WORKER, [entry(1, { steps: [step('a'), step('b')] })]);
    const reader = createTestOrchestrator({ storage });
    const received: string[] = [];
    const ended = (async () => {
      for await (const { id } of reader.executions.events(execution(1).id, { after: '4' })) received.push(id);
    })();
    calls();
    await reader.clock.advance(400);
    expect(calls()['executions.listSteps']).toBe(1);
    storage.commit(WORKER, [entry(1, { steps: [step('c'), step('d')] })]);
    const end = { status: 'completed', output: null, finishedAt: 1, duration: 1, agents: 4 } as const;
    storage.commit(WORKER, [entry(1, { end })]);
    await reader.clock.advance(1000);
    await ended;
    expect(received).toEqual(['5', '6']);
  });
});
