/** `executions.move`: an execution that waits gets another definition, if what is recorded of it replays there. */

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { hostTurn, manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { postgresStorage } from '../../src/entries/postgres.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createOrchestrator, type Orchestrator, type OrchestratorOptions } from '../../src/index.ts';

const open: Orchestrator[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close({ grace: 0 });
});

const agent = (name: string, more = '') => `  - { agent: ${name}, operation: code, config: { script: note }${more} }`;
const flow = (...steps: string[]) =>
  `name: order\nflow:\n${steps.join('\n')}\noutputs: { went: "\${state.went ?? 1}" }`;
const WAIT = '  - { wait: paid, name: paid }';
const BEFORE = flow(agent('price'), WAIT, agent('ship')).replace('outputs: { went: "${state.went ?? 1}" }', '');

function world(create: () => Storage = always(memoryStorage({ shared: true }))) {
  const clock = manualClock();
  const ran: string[] = [];
  const deploy = (definition: string, more: Partial<OrchestratorOptions> = {}) => {
    const orchestrator = createOrchestrator({
      ensembles: [definition, ...((more.ensembles ?? []) as string[])] as never,
      scripts: {
        other: () => 1,
        note: ({ execution }) => {
          ran.push(execution.agent);
          return execution.agent;
        },
      },
      ...{ storage: create(), clock, logger: false },
      ...(({ ensembles: _none, ...rest }) => rest)(more),
    });
    open.push(orchestrator);
    return orchestrator;
  };
  const settle = async (ms = 2_000) => {
    for (let i = 0; i < 5; i++) await hostTurn();
    await clock.advance(ms);
    for (let i = 0; i < 20; i++) await hostTurn();
  };
  return { clock, ran, deploy, settle, create };
}
type World = ReturnType<typeof world>;

function always(storage: Storage) {
  return () => storage;
}

/** Each process opens the same file. */
function inFile() {
  const path = join(mkdtempSync(join(tmpdir(), 'move-')), 'store.db');
  return () => sqliteStorage({ path });
}

/** An execution of `before` that waits, in a store that the next process uses. */
async function waiting(before: string, { deploy, settle }: World, input: unknown = {}): Promise<string> {
  const first = deploy(before);
  const { id } = await (first.start as (name: string, input: unknown) => Promise<{ id: string }>)('order', input);
  await settle();
  expect((await first.executions.status(id)).status).toBe('waiting');
  open.splice(open.indexOf(first), 1);
  await first.close({ grace: 0 });
  return id;
}

describe('move', () => {
  it('gives a waiting execution the definition of today: it continues there, and its record has the move', async () => {
    const one = world();
    const id = await waiting(BEFORE, one);
    const next = one.deploy(flow(agent('price'), WAIT, agent('pack'), agent('ship')).replace(/outputs.*/, ''));
    const before = (await next.executions.get(id)).version;
    const { version: now } = await next.ensembles.get('order');
    expect(await next.executions.move({ ensemble: 'order', to: 'latest' })).toEqual({
      ...{ matched: 1, moved: 1, unchanged: 0, refused: 0, refusals: [] },
    });
    const moved = await next.executions.get(id);
    expect([moved.version, moved.status, moved.waitingFor.length]).toEqual([now, 'waiting', 1]);
    expect(moved.moves).toEqual([{ from: before, to: now, at: one.clock.now() }]);
    await next.ready();
    await next.executions.signal(id, 'paid');
    await one.settle();
    const ended = await next.executions.get(id);
    expect([ended.status, one.ran, ended.moves]).toEqual(['completed', ['price', 'pack', 'ship'], moved.moves]);
  });

  it('moves back to a definition by its hash, and both moves are in the record', async () => {
    const one = world();
    const id = await waiting(BEFORE, one);
    const next = one.deploy(flow(agent('price'), WAIT, agent('pack')).replace(/outputs.*/, ''));
    const { version } = await next.executions.get(id);
    await next.executions.move({ id, to: 'latest' });
    expect(await next.executions.move({ id, to: version })).toMatchObject({ moved: 1 });
    expect((await next.executions.get(id)).moves?.map(({ to }) => to === version)).toEqual([false, true]);
    await next.ready();
    await next.executions.signal(id, 'paid');
    await one.settle();
    expect(one.ran).toEqual(['price', 'ship']);
    expect((await next.executions.get(id)).moves).toHaveLength(2);
  });

  it.each<[string, string, { at: string; reason: RegExp }]>([
    [
      'another agent at a recorded position',
      flow(agent('cost'), WAIT),
      { at: 'flow[0]', reason: /come to `price` at flow\[0\], and the definition has `cost` there/ },
    ],
    [
      'a step that the flow does not come to',
      flow(agent('price', ', condition: "${1 > 2}"'), WAIT),
      { at: 'flow[0]', reason: /does not come to it/ },
    ],
    [
      'a new step before the wait',
      flow(agent('price'), agent('tax'), WAIT),
      { at: 'flow[1]', reason: /come to `wait for paid` at flow\[1\], and the definition has `tax` there/ },
    ],
    [
      'a wait for another signal',
      flow(agent('price'), '  - { wait: sent, name: paid }'),
      { at: 'flow[1]', reason: /the definition has `wait for sent` there/ },
    ],
    ['no wait', flow(agent('price')), { at: 'status', reason: /ends after what is recorded, as completed/ }],
    [
      'an input that does not fit',
      `${flow(agent('price'), WAIT)}\ninputs: { id: { type: string, required: true } }`,
      { at: 'input', reason: /refuses the recorded input: .*id is required/ },
    ],
    [
      'a default that the recorded input lacks',
      `${flow(agent('price'), WAIT)}\ninputs: { id: { type: string, default: x } }`,
      { at: 'input', reason: /with a default that is new/ },
    ],
  ])('changes nothing on a difference, and says where: %s', async (_what, after, { at, reason }) => {
    const one = world();
    const id = await waiting(BEFORE, one);
    const next = one.deploy(after.replace(/outputs.*\}\n?/, ''));
    const before = await next.executions.get(id);
    const { moved, refused, refusals } = await next.executions.move({ ensemble: 'order', to: 'latest' });
    expect([moved, refused]).toEqual([0, 1]);
    expect(refusals).toEqual([expect.objectContaining({ executionId: id, ensemble: 'order', at })]);
    expect(refusals[0]?.reason).toMatch(reason);
    expect(await next.executions.get(id)).toEqual(before);
  });

  it('`map` names what has another name now: agents, and the signal that the execution waits for', async () => {
    for (const create of [undefined, inFile()]) {
      const one = world(create);
      const id = await waiting(BEFORE, one);
      const after = flow(agent('cost'), '  - { wait: settled, name: paid }', agent('ship')).replace(/outputs.*/, '');
      const next = one.deploy(after);
      await next.ready();
      expect(await next.executions.move({ id, to: 'latest' })).toMatchObject({ refused: 1 });
      const map = { price: 'cost', paid: 'settled' };
      expect(await next.executions.move({ id, to: 'latest', map })).toMatchObject({ moved: 1 });
      await one.settle();
      expect((await next.executions.get(id)).waitingFor).toMatchObject([{ name: 'settled' }]);
      await next.executions.signal(id, 'settled');
      await one.settle();
      expect([(await next.executions.status(id)).status, one.ran]).toEqual(['completed', ['price', 'ship']]);
    }
  });

  it('`dryRun` counts what could be moved, and changes nothing', async () => {
    const one = world();
    const id = await waiting(BEFORE, one);
    const next = one.deploy(flow(agent('price'), WAIT).replace(/outputs.*/, ''));
    const before = await next.executions.get(id);
    expect(await next.executions.move({ id, to: 'latest', dryRun: true })).toMatchObject({ moved: 1, refused: 0 });
    expect(await next.executions.get(id)).toEqual(before);
  });

  it('moves what sleeps, is queued, waits for a retry, or is inside a loop', async () => {
    const one = world(inFile());
    const before = `name: order
flow:
  - { agent: price, operation: code, config: { script: note } }
  - foreach: [1, 2]
    steps: [{ sleep: 1h }, { agent: each, operation: code, config: { script: note } }]
  - { agent: ship, operation: code, config: { script: note } }`;
    const id = await waiting(before, one);
    const next = one.deploy(before.replace('agent: ship', 'agent: send'));
    expect(await next.executions.move({ id, to: 'latest' })).toMatchObject({ moved: 1 });
    await next.ready();
    await one.settle(3 * 3_600_000);
    expect(one.ran).toEqual(['price', 'each', 'each', 'send']);
    expect((await next.executions.get(id)).status).toBe('completed');
  });

  it('refuses an execution that a process runs, and moves it when it waits', async () => {
    const one = world();
    const gate: (() => void)[] = [];
    const scripts = { note: () => new Promise<number>((resolve) => gate.push(() => resolve(1))) };
    const first = one.deploy(BEFORE, { scripts });
    const next = one.deploy(flow(agent('price'), WAIT).replace(/outputs.*/, ''), { scripts });
    const { id } = await first.start('order', {});
    await hostTurn();
    const { refusals } = await next.executions.move({ id, to: 'latest' });
    expect(refusals).toMatchObject([{ at: 'status', reason: expect.stringContaining('a process runs it') }]);
    gate[0]?.();
    await one.settle();
    expect(await next.executions.move({ id, to: 'latest' })).toMatchObject({ moved: 1 });
  });

  it('leaves ended executions, and those that have the definition already', async () => {
    const one = world();
    const id = await waiting(BEFORE, one);
    const next = one.deploy(BEFORE);
    expect(await next.executions.move({ id, to: 'latest' })).toMatchObject({ matched: 1, unchanged: 1 });
    await next.ready();
    await next.executions.signal(id, 'paid');
    await one.settle();
    expect(await next.executions.move({ ensemble: 'order', to: 'latest' })).toMatchObject({ matched: 0 });
    expect(await next.executions.move({ id, to: 'latest' })).toMatchObject({ unchanged: 1 });
  });

  it('refuses wrong options: what is wrong, and what was expected', async () => {
    const one = world();
    const { executions } = one.deploy(BEFORE);
    const move = executions.move as (options: object) => Promise<unknown>;
    await expect(move({ to: 'latest' })).rejects.toThrow(/an `id` or at least one filter/);
    await expect(move({ ensemble: 'order' })).rejects.toThrow(
      /`to` must be `latest`, or the label or the hash of a version/,
    );
    await expect(move({ ensemble: 'order', to: 'latest', status: 'failed' })).rejects.toThrow(/`failed` has ended/);
    await expect(move({ ensemble: 'order', to: 'latest', map: { a: 1 } })).rejects.toThrow(/`map` must have/);
    await expect(move({ ensemble: 'order', to: 'latest', dry: true })).rejects.toThrow(/dryRun/);
    await expect(move({ id: 'exec_none', to: 'latest' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const id = await waiting(BEFORE, one);
    await expect(move({ id, to: 'abcdef' })).rejects.toThrow(/`order` has no version `abcdef`/);
  });

  it('a claim that comes between the check and the move wins: the execution keeps its definition', async () => {
    const storages: [string, () => Storage][] = [
      ['memory', always(memoryStorage({ shared: true }))],
      ['SQLite', inFile()],
    ];
    if (process.env.TEST_POSTGRES_URL)
      storages.push(['Postgres', () => postgresStorage({ url: process.env.TEST_POSTGRES_URL as string })]);
    for (const [, create] of storages) {
      const one = world(create);
      const id = await waiting(BEFORE, one);
      const storage = one.create();
      const pinned = await storage.executions.getPinned(id);
      await storage.workers.register('own_other', { now: one.clock.now(), leaseUntil: one.clock.now() + 60_000 });
      const change = {
        from: pinned?.version as string,
        to: 'f'.repeat(32),
        handover: { waitingFor: [], waited: 0, recoveries: 0 },
      };
      await storage.executions.take('own_other', id, one.clock.now());
      expect(await storage.executions.repin(id, { ...change, epoch: pinned?.epoch as number })).toBe(false);
      expect((await storage.executions.getPinned(id))?.version).toBe(pinned?.version);
      await storage.close();
    }
  });

  const both = async (
    before: string,
    after: string,
    more: { signal?: string; map?: Record<string, string>; others?: string[] } = {},
  ) => {
    const one = world();
    const first = one.deploy(before, { ensembles: more.others ?? [] } as never);
    const { id } = await (first.start as never as (name: string, input: object) => Promise<{ id: string }>)(
      'order',
      {},
    );
    await one.settle();
    if (more.signal) {
      await first.executions.signal(id, more.signal, { sum: 1 });
      await one.settle();
    }
    open.splice(open.indexOf(first), 1);
    await first.close({ grace: 0 });
    const next = one.deploy(after, { ensembles: more.others ?? [] } as never);
    await next.ready();
    const moves = await next.executions.move({ id, to: 'latest', map: more.map });
    return { one, next, id, ...moves };
  };
  const order = (...steps: string[]) =>
    `name: order\nstate: { initial: { n: 1 } }\nflow:\n${steps.map((step) => `  - ${step}`).join('\n')}\n`;
  const note = (name: string, more = '') => `{ agent: ${name}, operation: code, config: { script: note }${more} }`;
  const GO = '{ wait: go }';

  it.each<[string, string, string, RegExp, { signal?: string; others?: string[] }?]>([
    [
      'a wait that has taken the signal of another name',
      order('{ wait: paid, name: p }', GO),
      order('{ wait: refunded, name: p }', GO),
      /`wait for paid` at flow\[0\], and the definition has `wait for refunded` there/,
      { signal: 'paid' },
    ],
    [
      'a child of another ensemble',
      order('{ ensemble: kid-a, name: k }', GO),
      order('{ ensemble: kid-b, name: k }', GO),
      /`ensemble kid-a` at flow\[0\], and the definition has `ensemble kid-b`/,
      { others: ['name: kid-a\nflow: []', 'name: kid-b\nflow: []'] },
    ],
    [
      'a block that has ended, with other steps',
      order('{ foreach: [1, 2], concurrency: 2, steps: [' + note('pay') + '] }', GO),
      order('{ foreach: [1, 2], concurrency: 2, steps: [' + note('refund') + '] }', GO),
      /come to `pay` at flow\[0\]\.foreach\[0\]\.steps\[0\], and the definition has `refund` there/,
    ],
    [
      'a condition that read the state',
      order('{ if: "${state.n > 0}", then: [' + note('a') + '] }', GO),
      order('{ if: "${state.n > 5}", then: [' + note('a') + '] }', GO),
      /come to `if state.n > 0` at flow\[0\], and the definition has `if state.n > 5` there/,
    ],
    [
      'another timeout of the wait in progress',
      order('{ wait: go, timeout: 1h }'),
      order('{ wait: go, timeout: 1d }'),
      /at most 1d` there/,
    ],
    [
      'a timeout that the wait in progress did not have',
      order(GO),
      order('{ wait: go, timeout: 1d }'),
      /at most 1d` there/,
    ],
  ])('refuses what the records alone do not show: %s', async (_what, before, after, reason, more = {}) => {
    const { moved, refusals } = await both(before, after, more);
    expect([moved, refusals[0]?.reason]).toEqual([0, expect.stringMatching(reason)]);
  });

  it('an execution that was moved is woken: it also waits for what is new', async () => {
    const parallel = (...signals: string[]) =>
      order(`{ parallel: [${signals.map((name) => `{ wait: ${name} }`).join(', ')}], waitFor: any }`, note('after'));
    const { one, next, id, moved } = await both(parallel('paid', 'other'), parallel('paid', 'other', 'cancelled'));
    expect(moved).toBe(1);
    await one.settle();
    expect((await next.executions.get(id)).waitingFor.map(({ name }) => name)).toEqual(['paid', 'other', 'cancelled']);
    await next.executions.signal(id, 'cancelled');
    await one.settle();
    expect([(await next.executions.status(id)).status, one.ran]).toEqual(['completed', ['after']]);
  });

  it('`map` passes on signals that came early under the old name, and a later move still knows it', async () => {
    const one = world();
    const first = one.deploy(order(note('price'), '{ wait: ok }', '{ wait: paid, name: paid }'));
    const { id } = await first.start('order', {});
    await one.settle();
    await first.executions.signal(id, 'paid', { sum: 5 });
    await one.settle();
    open.splice(open.indexOf(first), 1);
    await first.close({ grace: 0 });
    const second = one.deploy(order(note('cost'), '{ wait: ok }', '{ wait: settled, name: paid }'));
    const map = { price: 'cost', paid: 'settled' };
    expect(await second.executions.move({ id, to: 'latest', map })).toMatchObject({ moved: 1 });
    open.splice(open.indexOf(second), 1);
    await second.close({ grace: 0 });
    const third = `${order(note('cost'), '{ wait: ok }', '{ wait: settled, name: paid }', note('ship'))}outputs: { sum: "\${paid.output.sum}" }`;
    const next = one.deploy(third);
    await next.ready();
    expect(await next.executions.move({ id, to: 'latest' })).toMatchObject({ moved: 1, refusals: [] });
    expect((await next.executions.get(id)).moves).toMatchObject([{ map }, {}]);
    await next.executions.signal(id, 'ok');
    await one.settle();
    expect(await next.executions.get(id)).toMatchObject({ status: 'completed', output: { sum: 5 } });
  });

  it('refuses a signal that came early and does not fit the form that its wait has now, also under its new name', async () => {
    const one = world();
    const first = one.deploy(order(note('price'), '{ wait: ok }', '{ wait: paid, name: paid }'));
    const { id } = await first.start('order', {});
    await one.settle();
    await first.executions.signal(id, 'paid', { sum: 'five' });
    await one.settle();
    open.splice(open.indexOf(first), 1);
    await first.close({ grace: 0 });
    const form = (name: string, type: string) =>
      `{ wait: ${name}, name: paid, fields: { type: object, properties: { sum: { type: ${type} } } } }`;
    for (const [name, map] of [
      ['paid', undefined],
      ['settled', { paid: 'settled' }],
    ] as const) {
      const next = one.deploy(order(note('price'), '{ wait: ok }', form(name, 'number')));
      for (const dryRun of [true, false])
        expect(await next.executions.move({ id, to: 'latest', map, dryRun })).toMatchObject({
          refusals: [{ at: 'signals', reason: expect.stringMatching(/early: .*`sum` must be a number/) }],
        });
      open.splice(open.indexOf(next), 1);
      await next.close({ grace: 0 });
    }
    const last = one.deploy(order(note('price'), '{ wait: ok }', form('paid', 'string')));
    expect(await last.executions.move({ id, to: 'latest' })).toMatchObject({ moved: 1 });
  });

  it('refuses a new name that the definition does not have', async () => {
    const one = world();
    const id = await waiting(BEFORE, one);
    const next = one.deploy(flow(agent('cost'), WAIT, agent('ship')).replace(/outputs.*/, ''));
    expect(await next.executions.move({ id, to: 'latest', map: { price: 'cots' } })).toMatchObject({
      moved: 0,
      refusals: [{ at: 'map', reason: expect.stringContaining('did you mean `cost`?') }],
    });
    expect(await next.executions.move({ id, to: 'latest', map: { price: 'cost' } })).toMatchObject({ moved: 1 });
  });

  it('refuses an execution that was cut off in a step: it would have its effect again', async () => {
    const one = world();
    const scripts = { note: () => new Promise(() => {}) };
    const first = one.deploy(order(note('charge')), { scripts });
    const { id } = await first.start('order', {});
    await hostTurn();
    open.splice(open.indexOf(first), 1);
    await first.close({ grace: 0 });
    const next = one.deploy(order(note('pack'), note('charge')), { scripts });
    const { refusals } = await next.executions.move({ id, to: 'latest' });
    expect(refusals).toMatchObject([{ at: 'status', found: 'running' }]);
  });

  it('moves an execution with a long part that left no record', async () => {
    const idle = '{ foreach: "${range(0, 12000)}", steps: [{ if: "${item < 0}", then: [' + note('x') + '] }] }';
    expect(await both(order(idle, GO), order(idle, GO, note('z')))).toMatchObject({ moved: 1 });
  });

  it('finds a wrong target before anything is moved, and takes an id or filters', async () => {
    const one = world();
    const id = await waiting(BEFORE, one);
    const { executions } = one.deploy(flow(agent('price'), WAIT).replace(/outputs.*/, ''));
    await expect(executions.move({ ensemble: 'ordr', to: 'latest' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(executions.move({ ensemble: 'order', to: 'nonsense' })).rejects.toMatchObject({
      code: 'VERSION_NOT_FOUND',
    });
    await expect(executions.move({ id, ensemble: 'order', to: 'latest' })).rejects.toThrow(
      /an `id` or filters, not both/,
    );
    const { version } = await one.deploy(flow(agent('price'), WAIT).replace(/outputs.*/, '')).ensembles.get('order');
    expect(await executions.move({ id, to: version })).toMatchObject({ moved: 1 });
    expect(await executions.move({ tag: 'none', to: 'nonsense' })).toMatchObject({ matched: 0 });
  });
});
