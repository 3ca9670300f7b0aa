/** `executions.move`: an execution that waits gets another definition, if what is recorded of it replays there. */

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { postgresStorage } from '../../src/entries/postgres.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createOrchestrator, type Orchestrator, type OrchestratorOptions } from '../../src/index.ts';
import { hostTurn } from '../../src/adapters/clock/manual-clock.ts';

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
      { at: 'flow[0]', reason: /agent `cost` runs there/ },
    ],
    [
      'a step that the flow does not come to',
      flow(agent('price', ', condition: "${1 > 2}"'), WAIT),
      { at: 'flow[0]', reason: /does not come to it/ },
    ],
    [
      'a new step before the wait',
      flow(agent('price'), agent('tax'), WAIT),
      { at: 'flow[1]', reason: /has agent `tax` there/ },
    ],
    [
      'a wait for another signal',
      flow(agent('price'), '  - { wait: sent, name: paid }'),
      { at: 'flow[1]', reason: /has a wait for `sent` there/ },
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
    await expect(move({ ensemble: 'order' })).rejects.toThrow(/`to` must be `latest` or the hash/);
    await expect(move({ ensemble: 'order', to: 'latest', status: 'failed' })).rejects.toThrow(/`failed` has ended/);
    await expect(move({ ensemble: 'order', to: 'latest', map: { a: 1 } })).rejects.toThrow(/`map` must have/);
    await expect(move({ ensemble: 'order', to: 'latest', dry: true })).rejects.toThrow(/dryRun/);
    await expect(move({ id: 'exec_none', to: 'latest' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const id = await waiting(BEFORE, one);
    await expect(move({ id, to: 'abcdef' })).rejects.toThrow(/no definition abcdef of ensemble `order`/);
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
});
