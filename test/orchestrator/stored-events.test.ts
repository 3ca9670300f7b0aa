/** The stored events of an execution: what they report, their ids, and that a listener gets the same data. */

import { describe, expect, it } from 'vitest';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import { openStorageWorld } from '../../src/conformance/engine-suite/world/storage-world.ts';
import { inWorld } from '../../src/conformance/engine-suite/world/world.ts';
import { accept, entry, execution, step, WORKER } from '../../src/conformance/storage-suite/context.ts';
import { EVENT_KINDS, type EventKind, type OrchestratorEvent } from '../../src/engine/events/event.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { createOrchestrator, memoryStorage } from '../../src/index.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';
import { turns } from '../engine/scene.ts';
import { scaled } from '../slowdown.ts';

const code = (agent: string, fields: object = {}) => ({
  ...{ agent, operation: 'code', config: { script: agent } },
  ...fields,
});
const RETRY = { retry: { maxAttempts: 2, backoff: 'fixed', delay: 100 } };
const SCRIPTS = {
  a: () => 'a',
  b: () => 'b',
  flaky({ execution: { attempt } }: { readonly execution: { readonly attempt: number } }) {
    if (attempt === 1) throw new Error('not yet');
    return 'at last';
  },
};
/** Only the process in which they happen reports them. */
const LIVE: readonly EventKind[] = ['agent.started', 'state.updated'];

/** A flow with every kind of event. */
const FLOW = [
  code('flaky', RETRY),
  code('a', { condition: false, name: 'unused' }),
  { foreach: [1, 2], steps: [code('b', { condition: '${item == 2}' })], name: 'each' },
  { sleep: '5s' },
  { wait: 'go', name: 'answer' },
  { wait: 'go', timeout: '1s', onTimeout: 'continue', name: 'late' },
  { ensemble: 'kid', name: 'sub' },
  code('a'),
];
const ENSEMBLES = [
  { name: 'e', flow: FLOW, outputs: { answer: '${answer.output}' } },
  { name: 'kid', flow: [{ sleep: '3s' }, code('b')] },
];

async function run() {
  const made = createTestOrchestrator({ ensembles: ENSEMBLES as never, scripts: SCRIPTS });
  const { orchestrator, clock } = made;
  const heard: OrchestratorEvent[] = [];
  for (const kind of Object.keys(EVENT_KINDS) as EventKind[]) orchestrator.on(kind, (event) => heard.push(event));
  const handle = await orchestrator.start('e', {});
  await clock.advance(8000);
  await orchestrator.executions.signal(handle.id, 'go', { yes: true });
  await clock.advance(20_000);
  expect((await handle.result()).status).toBe('completed');
  const own = heard.filter(({ event, data }) => data.executionId === handle.id && !LIVE.includes(event));
  return { ...made, id: handle.id, heard: own };
}

type Numbered = { readonly id: string; readonly event: OrchestratorEvent };
async function read(
  { orchestrator, id }: Awaited<ReturnType<typeof run>>,
  after?: string,
): Promise<readonly Numbered[]> {
  const found: Numbered[] = [];
  for await (const one of orchestrator.executions.events(id, after === undefined ? {} : { after })) found.push(one);
  return found;
}

describe('stored events', () => {
  it('report waits, signals, retries, children, skips and loops, in their order', async () => {
    const stored = await read(await run());
    expect(stored.map(({ event: { event, data } }) => ('key' in data ? `${event} ${data.key}` : event))).toEqual([
      'execution.started',
      'agent.retrying flow[0]',
      'agent.completed flow[0]',
      'agent.skipped flow[1]',
      'foreach.started flow[2]',
      'agent.skipped flow[2].foreach[0].steps[0]',
      'agent.completed flow[2].foreach[1].steps[0]',
      'step.waiting flow[3]',
      'step.continued flow[3]',
      'step.waiting flow[4]',
      'signal.taken flow[4]',
      'step.waiting flow[5]',
      'step.continued flow[5]',
      'child.started flow[6]',
      'child.ended flow[6]',
      'agent.completed flow[7]',
      'execution.completed',
    ]);
    const taken = stored.find(({ event }) => event.event === 'signal.taken')?.event.data;
    expect(taken).toMatchObject({ signal: 'go', payload: { yes: true }, ensemble: 'e' });
  });

  it('`step.continued` says whether a wait timed out, and whether it fails for this', async () => {
    const { orchestrator } = createTestOrchestrator({
      ensembles: [
        {
          name: 'e',
          flow: [
            { sleep: '5s' },
            { wait: 'go', timeout: '1s', onTimeout: 'continue' },
            { wait: 'boss', timeout: '1s' },
          ],
        },
      ],
    });
    const { id } = await orchestrator.execute('e', {});
    const stored = await read({ orchestrator, id } as never);
    expect(stored.flatMap(({ event }) => (event.event === 'step.continued' ? [event.data] : []))).toMatchObject([
      { key: 'flow[0]', timedOut: false, failed: false },
      { key: 'flow[1]', signal: 'go', timedOut: true, failed: false },
      { key: 'flow[2]', signal: 'boss', timedOut: true, failed: true },
    ]);
  });

  it('have the data that a listener received, each once, also when the execution was suspended meanwhile', async () => {
    const made = await run();
    const stored = (await read(made)).map(({ event: { event, data } }) => ({ event, data }));
    expect(made.heard.map(({ event, data }) => ({ event, data }))).toEqual(stored);
  });

  it('are complete after each id: none comes again, and none is lost', async () => {
    const made = await run();
    const all = await read(made);
    const last = Number(all.at(-1)?.id);
    for (let after = 0; after <= last; after++) {
      const rest = await read(made, String(after));
      expect([after, rest]).toEqual([after, all.filter(({ id }) => Number(id) > after)]);
    }
    expect(await read(made, String(last + 5))).toEqual([]);
  });

  it('reach a reader when the run is suspended, with a storage that no other process shares', async () => {
    const { orchestrator, clock } = createTestOrchestrator({
      ensembles: [{ name: 'e', flow: [code('a'), { wait: 'go' }] }] as never,
      scripts: SCRIPTS,
    });
    const { id } = await orchestrator.start('e', {}, { events: false });
    const received: string[] = [];
    const gone = new AbortController();
    const reading = (async () => {
      for await (const { event } of orchestrator.executions.events(id, { signal: gone.signal }))
        received.push(event.event);
    })();
    await turns(10);
    expect(clock.nextIn).toBeUndefined();
    expect(received).toEqual(['execution.started', 'agent.completed', 'step.waiting']);
    gone.abort();
    await reading;
  });

  it('a run that was resumed after the death of its process is reported once, with the number of deaths', async () => {
    const create = () => {
      const storage = memoryStorage({ shared: true });
      return { connect: () => storage };
    };
    const openWorld = () => openStorageWorld({ create, engine: embeddedEngine });
    await inWorld({ openWorld, createSubject: createOrchestrator as never }, async (world) => {
      const options = {
        ensembles: [{ name: 'e', flow: [code('a'), code('b'), { sleep: '1h' }, code('a', { name: 'c' })] }],
        scripts: SCRIPTS as never,
      };
      const first = await world.open({ ...options, fault: { method: 'commit', at: 2, when: 'after', then: 'kill' } });
      void first.subject.execute('e', {}).catch(() => undefined);
      await world.until('the crash', () => first.control.triggered);
      const second = await world.open(options);
      await second.subject.ready();
      const { id = '' } = (await world.reader.executions.list({ limit: 1 }))[0] ?? {};
      await world.ended(id, 10_000_000);
      const kinds: string[] = [];
      for await (const { event } of second.subject.executions.events(id)) {
        const { recoveries } = event.data as { readonly recoveries?: number };
        kinds.push(recoveries === undefined ? event.event : `${event.event} ${recoveries}`);
      }
      expect(kinds).toEqual([
        ...['execution.started', 'agent.completed', 'run.resumed 1', 'agent.completed', 'step.waiting'],
        ...['step.continued', 'agent.completed', 'execution.completed'],
      ]);
    });
  });

  it('of a history without marks are its results, a retried one too', async () => {
    const storage = memoryStorage({ shared: true });
    await accept(storage, execution(1));
    const retried = { ...step('flow[0]'), attempts: 3 };
    storage.commit(WORKER, [entry(1, { steps: [retried, step('flow[1]')] })]);
    const end = { status: 'completed', output: null, finishedAt: 1, duration: 1, agents: 2 } as const;
    storage.commit(WORKER, [entry(1, { end })]);
    const reader = createTestOrchestrator({ storage });
    const ids: string[] = [];
    for await (const { id, event } of reader.executions.events(execution(1).id)) ids.push(`${id} ${event.event}`);
    expect(ids).toEqual(['1 execution.started', '2 agent.completed', '3 agent.completed', '4 execution.completed']);
  });
});

describe('marks', () => {
  it('add no commit of their own, and are stored in parts when there are very many', async () => {
    const inner = memoryStorage({ shared: true });
    const sizes: number[] = [];
    const storage = changeStorage(inner, {
      commit(worker, batch) {
        for (const { steps } of batch) sizes.push(steps.length);
        return inner.commit(worker, batch);
      },
    });
    const { orchestrator } = createTestOrchestrator({
      ensembles: [
        {
          name: 'few',
          flow: [{ if: true, then: [code('a')] }, code('a', { name: 'no', condition: false }), code('b')],
        },
        {
          name: 'many',
          flow: [{ foreach: '${input.items}', steps: [code('a', { condition: '${item < 0}' })] }, code('b')],
        },
      ] as never,
      scripts: SCRIPTS,
      storage,
    });
    await orchestrator.execute('few', {});
    // The start, the first result with the choice, and the end with the skip and the last result.
    expect(sizes).toEqual([0, 2, 2]);
    sizes.length = 0;
    const { id } = await orchestrator.execute('many', { items: Array.from({ length: 3000 }, (_, i) => i) });
    expect(Math.max(...sizes)).toBeLessThanOrEqual(502);
    let skips = 0;
    for await (const { event } of orchestrator.executions.events(id)) if (event.event === 'agent.skipped') skips += 1;
    expect(skips).toBe(3000);
  });
});

it('reading all events or the history of an ended execution gives the event loop turns, on SQLite too', async () => {
  const orchestrator = createOrchestrator({
    storage: sqliteStorage({ path: ':memory:' }),
    scripts: { tiny: () => 1 },
    ensembles: [
      {
        name: 'many',
        flow: [
          {
            foreach: '${input.items}',
            collect: false,
            steps: [{ agent: 'tiny', operation: 'code', config: { script: 'tiny' } }],
          },
        ],
      } as never,
    ],
  });
  const { id } = await orchestrator.execute('many', { items: Array.from({ length: 8_000 }, () => 0) } as never);
  const longestGap = async (work: () => Promise<unknown>) => {
    let last = performance.now();
    let longest = 0;
    let isOver = false;
    const look = () => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
      if (!isOver) setImmediate(look);
    };
    setImmediate(look);
    await work();
    isOver = true;
    look();
    return longest;
  };
  const readers = Array.from({ length: 5 }, () => async () => {
    let count = 0;
    for await (const _event of orchestrator.executions.events(id)) count += 1;
    return count;
  });
  expect(await longestGap(() => Promise.all(readers.map((read) => read())))).toBeLessThan(scaled(150));
  expect(await longestGap(() => orchestrator.executions.history(id))).toBeLessThan(scaled(150));
  await orchestrator.close();
});
