/** What every event says about its execution, and the listener of all events. */

import { describe, expect, it } from 'vitest';
import { EVENT_KINDS, type OrchestratorEvent } from '../../src/engine/events/event.ts';
import { boom, code, ok, scene, turns, when } from '../engine/scene.ts';

const child = { name: 'child', flow: [ok('inner')] };
const flow = [
  ok('left', when('false')),
  { foreach: [1, 2], steps: [ok('each')] },
  { sleep: 10 },
  { ensemble: 'child' },
  boom('late', { retry: { maxAttempts: 2 } }),
];

describe('every event', () => {
  it('has the id of its execution and the name of its ensemble; `child.*` name the child apart', async () => {
    const made = scene(flow, { ensembles: [child] });
    const events: OrchestratorEvent[] = [];
    made.orchestrator.on('*', (event) => events.push(event));
    const { id } = await made.run();
    const of = (ensemble: string) => events.filter(({ data }) => data.ensemble === ensemble);
    expect([...new Set(of('e').map(({ data }) => data.executionId))]).toEqual([id]);
    expect(of('e').length + of('child').length).toBe(events.length);
    const started = events.find(({ event }) => event === 'child.started');
    expect(started?.data).toEqual({
      executionId: id,
      ensemble: 'e',
      key: 'flow[3]',
      childEnsemble: 'child',
      childId: of('child')[0]?.data.executionId,
    });
  });

  it('is the same when it is emitted and when it is read from what is stored', async () => {
    const made = scene([ok('a'), boom('b')]);
    const emitted: OrchestratorEvent[] = [];
    made.orchestrator.on('*', (event) => emitted.push(event));
    const { id } = await made.run();
    const stored: OrchestratorEvent[] = [];
    for await (const { event } of made.orchestrator.executions.events(id)) stored.push(event);
    const kinds = new Set(stored.map(({ event }) => event));
    expect(emitted.filter(({ event }) => kinds.has(event))).toEqual(stored);
  });
});

describe("on('*')", () => {
  it('receives the events of all kinds, in order, next to the listeners of one kind', async () => {
    const made = scene([ok('a')]);
    const all: string[] = [];
    const one: string[] = [];
    const stop = made.orchestrator.on('*', ({ event }) => all.push(event));
    made.orchestrator.on('agent.completed', ({ event }) => one.push(event));
    await made.run();
    stop();
    await made.run();
    expect(all).toEqual(['execution.started', 'agent.started', 'agent.completed', 'execution.completed']);
    expect(one).toEqual(['agent.completed', 'agent.completed']);
  });

  it('receives the end of an execution that this process did not begin', async () => {
    const made = scene([{ wait: 'go' }]);
    const all: string[] = [];
    const { id } = await made.start();
    await turns();
    made.orchestrator.on('*', ({ event, data }) => all.push(`${event} ${data.executionId === id}`));
    await made.orchestrator.executions.cancel(id);
    await turns(10);
    expect(all).toEqual(['execution.cancelled true']);
  });

  it('an unknown kind is still refused, and the message names `*`', () => {
    const { orchestrator } = scene([code('a', 'ok')]);
    const on = orchestrator.on as (event: string, listener: () => void) => () => void;
    expect(() => on('everything', () => {})).toThrow(/there is no event `everything`.*`\*` for all of them/);
    expect(Object.keys(EVENT_KINDS)).not.toContain('*');
  });
});
