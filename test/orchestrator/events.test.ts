/** Events: their kinds, their order and their data. And listeners that misbehave. */

import { describe, expect, it } from 'vitest';
import type { EventKind, OrchestratorEvent } from '../../src/engine/events/event.ts';
import { boom, code, deferred, echo, ok, type Scene, scene, turns, when } from '../engine/scene.ts';

const KINDS: readonly EventKind[] = [
  'execution.started',
  'execution.completed',
  'execution.failed',
  'execution.timeout',
  'execution.cancelled',
  'agent.started',
  'agent.completed',
  'agent.failed',
  'agent.retrying',
  'agent.skipped',
  'state.updated',
];

function listenToAll({ orchestrator }: Scene): OrchestratorEvent[] {
  const events: OrchestratorEvent[] = [];
  for (const kind of KINDS) orchestrator.on(kind, (event) => events.push(event));
  return events;
}
const names = (events: readonly OrchestratorEvent[]) =>
  events.map(({ event, data }) => ('agent' in data ? `${event} ${data.agent}` : event));

describe('the events of the specification', () => {
  it('an execution that completes: kinds, order and data', async () => {
    const made = scene({ flow: [echo('a', '${input.x}'), ok('b', when('false'))], outputs: { a: '${a.output}' } });
    const events = listenToAll(made);
    const { id } = await made.run({ x: 1 });
    const about = { executionId: id, ensemble: 'e' };
    const timestamp = '2026-01-01T00:00:00.000Z';
    expect(events).toEqual([
      { event: 'execution.started', timestamp, data: { ...about, id, input: { x: 1 } } },
      { event: 'agent.started', timestamp, data: { ...about, agent: 'a', key: 'flow[0]' } },
      {
        event: 'agent.completed',
        timestamp,
        data: { ...about, agent: 'a', key: 'flow[0]', output: 1, duration: 0 },
      },
      { event: 'agent.skipped', timestamp, data: { ...about, agent: 'b', key: 'flow[1]' } },
      {
        event: 'execution.completed',
        timestamp,
        data: { ...about, id, status: 'completed', output: { a: 1 }, duration: 0 },
      },
    ]);
  });

  it("an execution that fails after a retry: timestamps and durations are the clock's", async () => {
    const made = scene([boom('a', { retry: { maxAttempts: 2 } })]);
    const events = listenToAll(made);
    const { id, createdAt } = await made.run();
    const about = { executionId: id, ensemble: 'e' };
    const error = { code: 'AGENT_FAILED', message: 'boom in a' };
    const [first, later] = ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:01.000Z'];
    expect(events).toEqual([
      { event: 'execution.started', timestamp: first, data: { ...about, id, input: {} } },
      { event: 'agent.started', timestamp: first, data: { ...about, agent: 'a', key: 'flow[0]' } },
      {
        event: 'agent.retrying',
        timestamp: first,
        data: { ...about, agent: 'a', key: 'flow[0]', error, attempt: 1, retryAt: createdAt + 1000 },
      },
      {
        event: 'agent.failed',
        timestamp: later,
        data: { ...about, agent: 'a', key: 'flow[0]', error, attempts: 2, duration: 1000 },
      },
      {
        event: 'execution.failed',
        timestamp: later,
        data: { ...about, id, status: 'failed', error: { message: 'boom in a' }, duration: 1000 },
      },
    ]);
  });

  it('an execution that times out', async () => {
    const made = scene({ timeout: 700, flow: [boom('a', { retry: { maxAttempts: 2 } })] });
    const events = listenToAll(made);
    const { id } = await made.run();
    expect(names(events)).toEqual(['execution.started', 'agent.started a', 'agent.retrying a', 'execution.timeout']);
    expect(events.at(-1)).toEqual({
      event: 'execution.timeout',
      timestamp: '2026-01-01T00:00:00.700Z',
      data: { executionId: id, ensemble: 'e', id, duration: 700, timeout: 700 },
    });
  });

  it('an execution that is cancelled', async () => {
    const made = scene([boom('a', { retry: { maxAttempts: 2 } })]);
    const events = listenToAll(made);
    const handle = await made.start();
    await turns();
    handle.cancel();
    await handle.result();
    expect(events.at(-1)).toMatchObject({
      event: 'execution.cancelled',
      data: { id: handle.id, ensemble: 'e', duration: 0 },
    });
  });

  it('agents in blocks, branches and routes are reported by name and position', async () => {
    const made = scene({
      agents: [{ name: 'm', operation: 'code', config: { script: 'ok' } }],
      flow: [
        { foreach: [1, 2], steps: [{ if: '${item == 1}', then: [ok('x')], else: [ok('y')] }] },
        { agent: 'r', routes: [{ default: true, member: 'm' }] },
      ],
    });
    const events = listenToAll(made);
    await made.run();
    const places = events.flatMap(({ event, data }) =>
      event === 'agent.started' && 'key' in data ? [`${data.agent} ${data.key}`] : [],
    );
    expect(places).toEqual([
      'x flow[0].foreach[0].steps[0].then[0]',
      'y flow[0].foreach[1].steps[0].else[0]',
      'm flow[1].m',
    ]);
  });

  it('events of several executions have the ids of their executions', async () => {
    const made = scene([ok('a'), ok('b')]);
    const events = listenToAll(made);
    const results = await Promise.all(Array.from({ length: 20 }, () => made.run()));
    for (const { id } of results) {
      const own = events.filter(({ data }) => data.executionId === id);
      expect(names(own)).toEqual([
        'execution.started',
        'agent.started a',
        'agent.completed a',
        'agent.started b',
        'agent.completed b',
        'execution.completed',
      ]);
    }
  });

  it('the event of the end is sent after the end is stored', async () => {
    const made = scene([ok('a')]);
    const seen: unknown[] = [];
    const looks: Promise<void>[] = [];
    made.orchestrator.on('execution.completed', ({ data }) => {
      looks.push(made.orchestrator.executions.get(data.id).then(({ status }) => void seen.push(status)));
    });
    await made.run();
    await Promise.all(looks);
    expect(seen).toEqual(['completed']);
  });
});

describe('on()', () => {
  it('returns a function that removes the listener', async () => {
    const made = scene([ok('a')]);
    const received: string[] = [];
    const one = made.orchestrator.on('agent.completed', () => received.push('one'));
    made.orchestrator.on('agent.completed', () => received.push('two'));
    await made.run();
    one();
    one();
    await made.run();
    expect(received).toEqual(['one', 'two', 'two']);
  });

  it('a listener that is added twice is called twice, and each is removed by itself', async () => {
    const made = scene([ok('a')]);
    let received = 0;
    const listener = () => {
      received += 1;
    };
    const first = made.orchestrator.on('agent.completed', listener);
    made.orchestrator.on('agent.completed', listener);
    await made.run();
    first();
    await made.run();
    expect(received).toBe(3);
  });

  it('a listener that throws or rejects is logged, and affects neither the execution nor other listeners nor later events', async () => {
    const logged: unknown[] = [];
    const error = (fields: object, message?: string) => logged.push([fields, message]);
    const made = scene([ok('a'), ok('b')], { logger: { debug() {}, info() {}, warn() {}, error } });
    const received: unknown[] = [];
    made.orchestrator.on('agent.completed', () => {
      throw new Error('listener broke');
    });
    made.orchestrator.on('agent.completed', async () => {
      throw new Error('listener rejected');
    });
    made.orchestrator.on('agent.completed', ({ data }) => received.push(data.agent));
    expect((await made.run()).status).toBe('completed');
    await turns();
    expect(received).toEqual(['a', 'b']);
    expect(logged.length).toBe(4);
    expect(logged[0]).toEqual([expect.objectContaining({ event: 'agent.completed' }), 'a listener failed']);
  });

  it('a listener may start another execution, or remove itself', async () => {
    const made = scene([ok('a')]);
    const ids: string[] = [];
    const off = made.orchestrator.on('execution.completed', async ({ data }) => {
      ids.push(data.id);
      off();
      await made.run();
    });
    await made.run();
    await turns(5);
    expect((await made.orchestrator.executions.list()).executions.length).toBe(2);
    expect(ids.length).toBe(1);
  });
});

describe('handle.events()', () => {
  it('returns all events, also for a late reader', async () => {
    const made = scene([ok('a'), boom('b', { retry: { maxAttempts: 2 } })]);
    const handle = await made.start();
    await handle.result();
    const expected = [
      'execution.started',
      'agent.started a',
      'agent.completed a',
      'agent.started b',
      'agent.retrying b',
      'agent.failed b',
      'execution.failed',
    ];
    for (let reader = 0; reader < 2; reader++) {
      const read: OrchestratorEvent[] = [];
      for await (const event of handle.events()) read.push(event);
      expect(names(read)).toEqual(expected);
    }
  });

  it('returns each event when it happens, and ends with the execution', async () => {
    const gate = deferred();
    const made = scene([code('a', 'gate'), ok('b')], { scripts: { gate: () => gate.promise } });
    const handle = await made.start();
    const read: string[] = [];
    let ended = false;
    const reading = (async () => {
      for await (const { event } of handle.events()) read.push(event);
      ended = true;
    })();
    await turns();
    expect([read, ended]).toEqual([['execution.started', 'agent.started'], false]);
    gate.resolve(1);
    await handle.result();
    await reading;
    expect(read).toEqual([
      'execution.started',
      'agent.started',
      'agent.completed',
      'agent.started',
      'agent.completed',
      'execution.completed',
    ]);
  });

  it('returns only the events of its execution', async () => {
    const made = scene([echo('a')]);
    const [one, two] = await Promise.all([made.start({ n: 1 }), made.start({ n: 2 })]);
    await Promise.all([one.result(), two.result()]);
    for (const handle of [one, two]) {
      const ids = new Set<string>();
      for await (const { data } of handle.events()) ids.add(data.executionId);
      expect([...ids]).toEqual([handle.id]);
    }
  });

  it('a reader that stops early delays nothing', async () => {
    const made = scene([ok('a'), ok('b')]);
    const handle = await made.start();
    for await (const { event } of handle.events()) if (event === 'execution.started') break;
    expect((await handle.result()).status).toBe('completed');
  });

  it('keeps only the newest of very many events', async () => {
    const made = scene({ flow: [{ foreach: "${split(input.text, ',')}", collect: false, steps: [ok('x')] }] });
    const handle = await made.start({ text: ','.repeat(24_999) });
    await handle.result();
    let count = 0;
    let last = '';
    for await (const { event } of handle.events()) {
      count += 1;
      last = event;
    }
    expect(count).toBeGreaterThanOrEqual(10_000);
    expect(count).toBeLessThanOrEqual(20_000);
    expect(last).toBe('execution.completed');
  });
});
