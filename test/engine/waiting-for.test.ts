/** What the record of an execution says about its waits: `waitingFor`, `metrics.queued` and `metrics.waited`. */

import { describe, expect, it } from 'vitest';
import { embeddedEngine } from '../../src/index.ts';
import { childrenOf, code, deferred, ok, scene, turns } from './scene.ts';

const HOUR = 3_600_000;
const T0 = Date.parse('2026-01-01T00:00:00.000Z');

describe('waitingFor', () => {
  it('names the signal, the instant of a sleep, the agent of a retry, and the child', async () => {
    const flow = [
      {
        parallel: [
          { wait: 'approved', timeout: '24h' },
          { sleep: '3h' },
          code('call', 'late', { retry: { maxAttempts: 2, backoff: 'fixed', delay: 2 * HOUR } }),
          { ensemble: 'child' },
        ],
      },
    ];
    const child = { name: 'child', flow: [{ sleep: '5h' }] };
    const late = () => {
      throw new Error('not yet');
    };
    const made = scene(flow, { ensembles: [child], scripts: { late } });
    const { id } = await made.start();
    await turns(10);
    const [awaited] = await childrenOf(made, id);
    const record = await made.orchestrator.executions.get(id);
    expect(record.status).toBe('waiting');
    expect([...record.waitingFor].sort((a, b) => (a.key < b.key ? -1 : 1))).toEqual([
      { key: 'flow[0].parallel[0]', kind: 'signal', name: 'approved', since: T0, until: T0 + 24 * HOUR },
      { key: 'flow[0].parallel[1]', kind: 'sleep', since: T0, until: T0 + 3 * HOUR },
      { key: 'flow[0].parallel[2]', kind: 'retry', name: 'call', since: T0, until: T0 + 2 * HOUR },
      { key: 'flow[0].parallel[3]', kind: 'child', name: 'child', executionId: awaited?.id, since: T0 },
    ]);
    expect(record.waitingForOmitted).toBeUndefined();
    const [listed] = (await made.orchestrator.executions.list({ ensemble: 'e' })).executions;
    expect(listed?.waitingFor).toEqual(record.waitingFor);
  });

  it('a wait keeps its `since` when another branch resumes the execution, and is gone when it has ended', async () => {
    const flow = [
      {
        parallel: [{ wait: 'a' }, { if: true, then: [{ wait: 'b' }, ok('after'), { wait: 'c' }] }],
      },
    ];
    const made = scene(flow);
    const { id, result } = await made.start();
    await turns();
    const waits = async () =>
      (await made.orchestrator.executions.get(id)).waitingFor.map(({ name, since }) => [name, since - T0]);
    expect(await waits()).toEqual([
      ['a', 0],
      ['b', 0],
    ]);
    await made.clock.advance(HOUR);
    await made.orchestrator.executions.signal(id, 'b');
    await turns(10);
    expect(await waits()).toEqual([
      ['a', 0],
      ['c', HOUR],
    ]);
    await made.orchestrator.executions.signal(id, 'c');
    await made.orchestrator.executions.signal(id, 'a');
    expect(await result()).toMatchObject({ status: 'completed', waitingFor: [] });
    expect((await made.orchestrator.executions.get(id)).waitingFor).toEqual([]);
  });

  it('is empty while the execution works, although a branch waits', async () => {
    const gate = deferred();
    const made = scene([{ parallel: [{ wait: 'a' }, code('work', 'gate')] }], {
      scripts: { gate: () => gate.promise },
    });
    const { id } = await made.start();
    await turns();
    const record = await made.orchestrator.executions.get(id);
    expect([record.status, record.waitingFor]).toEqual(['running', []]);
    gate.resolve(1);
    await turns(5);
    expect((await made.orchestrator.executions.get(id)).waitingFor).toMatchObject([{ name: 'a', since: T0 }]);
  });

  it('has the first 100 waits, and says how many more there are', async () => {
    const made = scene([{ foreach: '${input}', concurrency: 200, steps: [{ wait: 'go' }] }]);
    const { id } = await made.start(Array.from({ length: 130 }, (_, i) => i));
    await turns(40);
    const { waitingFor, waitingForOmitted } = await made.orchestrator.executions.get(id);
    expect([waitingFor.length, waitingForOmitted]).toEqual([100, 30]);
    expect(waitingFor[99]?.key).toBe('flow[0].foreach[99].steps[0]');
  });

  it('belongs to the caller, who may change it', async () => {
    const made = scene([{ wait: 'a' }]);
    const { id } = await made.start();
    await turns();
    const record = await made.orchestrator.executions.get(id);
    (record.waitingFor[0] as { name: string }).name = 'changed';
    (record.waitingFor as unknown[]).push('more');
    expect((await made.orchestrator.executions.get(id)).waitingFor).toMatchObject([{ name: 'a' }]);
  });
});

describe('metrics', () => {
  it('queued: from the acceptance to the start, absent until then', async () => {
    const gate = deferred();
    const made = scene([code('a', 'gate')], {
      scripts: { gate: () => gate.promise },
      engine: embeddedEngine({ concurrency: 1 }),
    });
    await made.start();
    const { id, result } = await made.start();
    const cancelled = await made.start();
    await turns();
    expect((await made.orchestrator.executions.get(id)).metrics.queued).toBeUndefined();
    await made.clock.advance(400);
    await made.orchestrator.executions.cancel(cancelled.id);
    expect((await made.orchestrator.executions.get(cancelled.id)).metrics.queued).toBe(400);
    gate.resolve(1);
    const { metrics, createdAt, startedAt } = await result();
    expect([metrics.queued, metrics.waited]).toEqual([(startedAt as number) - createdAt, 0]);
    expect(metrics.queued).toBeGreaterThanOrEqual(400);
  });

  it('waited: short and long waits, suspended or not, and nothing while a branch works', async () => {
    const gate = deferred();
    const flow = [
      { sleep: 300 },
      { wait: 'go' },
      { parallel: [{ sleep: '1h' }, code('work', 'gate')] },
      code('last', 'ok'),
    ];
    const made = scene(flow, { scripts: { gate: () => gate.promise } });
    const { id, result } = await made.start();
    await turns(5);
    await made.clock.advance(2 * HOUR);
    const waiting = await made.orchestrator.executions.get(id);
    expect([waiting.status, waiting.metrics.waited]).toEqual(['waiting', 300]);
    await made.orchestrator.executions.signal(id, 'go');
    await turns(10);
    const running = await made.orchestrator.executions.get(id);
    expect([running.status, running.metrics.waited]).toEqual(['running', 2 * HOUR]);
    await made.clock.advance(1000);
    gate.resolve(1);
    await turns(5);
    await made.clock.advance(HOUR);
    const { metrics, duration } = await result();
    expect(metrics.waited).toBe((duration as number) - 1000);
    expect(metrics.totalDuration).toBe(3 * HOUR);
  });

  it('waited: a wait of a run that does not store its steps counts, too', async () => {
    const made = scene({ flow: [{ sleep: '2s' }], execution: { durability: 'none' } });
    const { metrics } = await made.run();
    expect(metrics).toEqual({ totalDuration: 2000, agents: 0, queued: 0, waited: 2000 });
  });
});
