/** The six kinds of events, their data, and that each is stored in the commit of the state that it reports. */

import { describe, expect, it } from 'vitest';
import type { Storage } from '../../src/entries/adapter.ts';
import { embeddedEngine, memoryStorage, type OrchestratorOptions } from '../../src/index.ts';
import { ALL_EVENTS, eventOf, notifying, setUp } from './setup.ts';

const T0 = '2026-01-01T00:00:00.000Z';

async function eventsOf(options: OrchestratorOptions, input: unknown = { order: 1 }) {
  const { http, orchestrator, settle, clock } = setUp({ status: 204 }, options);
  const running = orchestrator.execute('pay', input);
  for (let i = 0; i < 20; i++) await clock.advance(500);
  const record = await running;
  await settle();
  await orchestrator.close({ grace: 0 });
  return { record, events: http.calls.map(eventOf) };
}

describe('the events of an execution', () => {
  it('that completes: started, agent.completed, state.updated and completed, with their data', async () => {
    const { record, events } = await eventsOf({
      ensembles: [
        `
name: pay
state: { initial: { sum: 1 } }
notifications:
  - { type: webhook, url: https://shop.example/hooks, events: ${ALL_EVENTS} }
flow:
  - { agent: work, operation: code, config: { script: work }, setState: { sum: "\${work.output.paid}" } }
outputs: { paid: "\${work.output.paid}" }
`,
      ],
    });
    const { id } = record;
    const eventId = expect.stringMatching(/^evt_[0-9A-Z]{26}$/);
    expect(events).toEqual([
      { event: 'execution.started', timestamp: T0, data: { id, ensemble: 'pay', input: { order: 1 } } },
      {
        event: 'agent.completed',
        timestamp: T0,
        data: { id: eventId, executionId: id, agent: 'work', output: { paid: 7 }, duration: 0 },
      },
      { event: 'state.updated', timestamp: T0, data: { id: eventId, executionId: id, state: { sum: 7 } } },
      {
        event: 'execution.completed',
        timestamp: T0,
        data: { id, ensemble: 'pay', status: 'completed', output: { paid: 7 }, duration: 0 },
      },
    ]);
    expect(new Set(events.map(({ data }) => data.id)).size).toBe(3);
  });

  it('that fails: failed, with the message of its error', async () => {
    const fail = () => {
      throw new Error('no money');
    };
    const { record, events } = await eventsOf({ scripts: { work: fail } });
    expect(events.map(({ event }) => event)).toEqual(['execution.started', 'execution.failed']);
    expect(events[1]?.data).toEqual({
      ...{ id: record.id, ensemble: 'pay', status: 'failed', duration: 0 },
      error: { message: record.error?.message },
    });
  });

  it('that times out: timeout, with how long it may take', async () => {
    const never = () => new Promise<never>(() => {});
    const { record, events } = await eventsOf({
      scripts: { work: never },
      ensembles: [notifying(undefined, 'timeout: 2s')],
    });
    expect(record.status).toBe('timed_out');
    expect(events.at(-1)).toMatchObject({
      event: 'execution.timeout',
      data: { id: record.id, duration: 2000, timeout: 2000 },
    });
    expect(Object.keys(events.at(-1)?.data ?? {}).sort()).toEqual(['duration', 'id', 'timeout']);
  });

  it('that is cancelled: nothing after its beginning', async () => {
    const { http, orchestrator, clock } = setUp({}, { scripts: { work: () => new Promise<never>(() => {}) } });
    const handle = await orchestrator.start('pay', {});
    await clock.advance(1);
    await orchestrator.executions.cancel(handle.id);
    await clock.advance(1000);
    expect(http.calls.map((call) => eventOf(call).event)).toEqual(['execution.started']);
  });

  it('are sent only to the notifications that ask for them, each with a delivery of its own', async () => {
    const { http, orchestrator, settle } = setUp(
      {},
      {
        ensembles: [
          `
name: pay
notifications:
  - { type: webhook, url: https://shop.example/hooks?1, events: [execution.completed] }
  - { type: webhook, url: https://shop.example/hooks?2, events: [execution.completed, agent.completed] }
flow:
  - { agent: work, operation: code, config: { script: work } }
`,
        ],
      },
    );
    await orchestrator.execute('pay', {});
    await settle();
    const sent = http.calls.map((call) => `${call.url.at(-1)} ${eventOf(call).event}`).sort();
    expect(sent).toEqual(['1 execution.completed', '2 agent.completed', '2 execution.completed']);
    const deliveries = http.calls.map(({ headers }) => headers?.['X-Service-Delivery']);
    expect(new Set(deliveries).size).toBe(3);
  });

  it('have their secrets masked', async () => {
    const { events } = await eventsOf({
      secrets: { KEY: 'sesame-sesame' },
      scripts: { work: ({ env }) => ({ paid: env.KEY }) },
    });
    expect(JSON.stringify(events)).not.toContain('sesame');
    expect(events[1]?.data.output).toEqual({ paid: '***' });
  });

  it('of a queued execution: started when it begins, and once', async () => {
    const ends: (() => void)[] = [];
    const work = () => new Promise<{ paid: number }>((resolve) => ends.push(() => resolve({ paid: 7 })));
    const { http, orchestrator, clock } = setUp(
      {},
      {
        engine: embeddedEngine({ concurrency: 1 }),
        scripts: { work },
        ensembles: [notifying('events: [execution.started]')],
      },
    );
    await orchestrator.start('pay', { order: 1 });
    const queued = await orchestrator.start('pay', { order: 2 });
    await clock.advance(5000);
    expect(http.calls.map((call) => eventOf(call).data.input)).toEqual([{ order: 1 }]);
    ends.shift()?.();
    await clock.advance(1000);
    expect(http.calls.map((call) => eventOf(call).data)).toMatchObject([{}, { id: queued.id, input: { order: 2 } }]);
    expect(eventOf(http.calls[1] as never).timestamp).toMatch(/^2026-01-01T00:00:0[56]/);
    ends.shift()?.();
    await clock.advance(60_000);
    expect(http.calls).toHaveLength(2);
  });

  it('of a retry: those of what runs, not of the results that it keeps', async () => {
    let fails = true;
    const { http, orchestrator, settle } = setUp(
      {},
      {
        scripts: {
          work: () => ({ paid: 7 }),
          flaky() {
            if (fails) throw new Error('not yet');
            return 1;
          },
        },
        ensembles: [
          `
name: pay
notifications:
  - { type: webhook, url: https://shop.example/hooks, events: ${ALL_EVENTS} }
flow:
  - { agent: work, operation: code, config: { script: work } }
  - { agent: flaky, operation: code, config: { script: flaky } }
`,
        ],
      },
    );
    const failed = await orchestrator.execute('pay', {});
    fails = false;
    await settle();
    const before = http.calls.length;
    await (await orchestrator.executions.retry(failed.id)).result();
    await settle();
    const events = http.calls.slice(before).map(eventOf);
    expect(events.map(({ event, data }) => `${event} ${data.agent ?? ''}`.trim())).toEqual([
      'execution.started',
      'agent.completed flaky',
      'execution.completed',
    ]);
  });

  it('are stored with the state that they report, in one entry of a commit', async () => {
    const memory = memoryStorage();
    const entries: string[] = [];
    const storage: Storage = {
      ...memory,
      commit(worker, batch) {
        for (const { start, steps, end, deliveries = [] } of batch) {
          const parts = [start && 'start', ...steps.map(({ key }) => key), end && 'end'].filter(Boolean);
          entries.push(`${parts.join(' ')}: ${deliveries.map(({ event }) => event).join(' ')}`);
        }
        return memory.commit(worker, batch);
      },
    };
    const { orchestrator } = setUp({}, { storage });
    await orchestrator.execute('pay', {});
    expect(entries).toEqual(['start: execution.started', 'flow[0] end: agent.completed execution.completed']);
  });

  it('of an ensemble without notifications: nothing is stored, and nothing is read', async () => {
    const memory = memoryStorage();
    const calls: string[] = [];
    const deliveries = new Proxy(memory.deliveries, {
      get(target, name, receiver) {
        calls.push(String(name));
        return Reflect.get(target, name, receiver);
      },
    });
    const plain = notifying().replace(/notifications:\n.*\n/, '');
    const { orchestrator, clock } = setUp({}, { storage: { ...memory, deliveries }, ensembles: [plain] });
    calls.length = 0;
    await orchestrator.execute('pay', {});
    await clock.advance(60_000);
    expect(calls).toEqual([]);
  });
});
