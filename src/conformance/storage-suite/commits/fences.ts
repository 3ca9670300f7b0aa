/** Storage suite: fences. Only the worker that holds an execution may write to it, under its current epoch. */

import type { CommitEntry } from '../../../engine/execution/stored-execution.ts';
import type { Storage } from '../../../engine/storage/storage.port.ts';
import {
  accept,
  change,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  everything,
  execution,
  executionId,
  LEASE,
  OTHER,
  register,
  release,
  retrying,
  STRANGER,
  type StorageCase,
  same,
  step,
  T0,
  WORKER,
} from '../context.ts';

/** The contents of an entry. Each of them is fenced, also on its own. */
const PARTS: Readonly<Record<string, Partial<CommitEntry>>> = {
  nothing: {},
  'a step': { steps: [step('flow[7]')] },
  'an attempt': { steps: [retrying('flow[7]', 1)] },
  'a decision': { steps: [step('flow[7]', { name: '', note: true })] },
  'a state': { steps: [step('flow[7]')], state: change(0, { a: 1 }) },
  'a release': { release: { status: 'waiting', dueAt: T0 + 7777 } },
  'an end': { end: end({ output: 7 }) },
  everything: {
    steps: [step('flow[7]'), step('flow[8]')],
    state: change(0, { a: 1 }),
    end: end({ output: 7 }),
  },
};

/** Prepares execution 1. @returns the worker and the epoch of a write that must be refused; default `WORKER` and 1 */
type Refused = (storage: Storage) => Promise<{ readonly epoch?: number; readonly worker?: string }>;

const ONE_WORKER: Readonly<Record<string, Refused>> = {
  async 'an unknown execution'(storage) {
    await register(storage);
    return {};
  },
  async 'a worker that never registered'(storage) {
    await accept(storage, execution(1));
    return { worker: STRANGER };
  },
  async 'an earlier epoch'(storage) {
    await accept(storage, execution(1));
    await release(storage, 1, { status: 'waiting', dueAt: T0 });
    same((await claim(storage))[0]?.epoch, 2, 'epoch');
    return {};
  },
  async 'a later epoch'(storage) {
    await accept(storage, execution(1));
    return { epoch: 2 };
  },
  async 'a queued execution'(storage) {
    await register(storage);
    await enqueue(storage, execution(1));
    return { epoch: 0 };
  },
  async 'an execution that the worker released as waiting'(storage) {
    await accept(storage, execution(1));
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 100 });
    return {};
  },
  async 'an execution that the worker released as running'(storage) {
    await accept(storage, execution(1));
    await release(storage, 1, { status: 'running', dueAt: T0 + 100 });
    return {};
  },
  async 'an execution that has ended'(storage) {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')], end: end({ status: 'failed' }) }));
    return {};
  },
  async 'a worker that has unregistered'(storage) {
    await accept(storage, execution(1));
    await storage.workers.unregister(WORKER, T0 + 100);
    return {};
  },
  async 'a worker that has unregistered and registered again'(storage) {
    await accept(storage, execution(1));
    await storage.workers.unregister(WORKER, T0 + 100);
    await register(storage);
    return {};
  },
};

const MANY_WORKERS: Readonly<Record<string, Refused>> = {
  async 'a worker that does not hold the execution'(storage) {
    await accept(storage, execution(1));
    await register(storage, OTHER);
    return { worker: OTHER };
  },
  async 'a worker that was considered dead'(storage) {
    await accept(storage, execution(1));
    await register(storage, OTHER, T0 + LEASE);
    same((await storage.workers.reclaimFromDead(OTHER, T0 + LEASE)).freed, 1, 'freed');
    return {};
  },
  async 'a worker that was considered dead and registered again'(storage) {
    await accept(storage, execution(1));
    await register(storage, OTHER, T0 + LEASE);
    await storage.workers.reclaimFromDead(OTHER, T0 + LEASE);
    await register(storage, WORKER, T0 + LEASE);
    return {};
  },
  async 'a worker whose execution another worker has claimed'(storage) {
    await accept(storage, execution(1));
    await register(storage, OTHER, T0 + LEASE);
    await storage.workers.reclaimFromDead(OTHER, T0 + LEASE);
    await register(storage, WORKER, T0 + LEASE);
    same((await claim(storage, {}, OTHER))[0]?.epoch, 2, 'epoch');
    return {};
  },
  async 'a worker whose execution another worker has claimed, under the new epoch'(storage) {
    await accept(storage, execution(1));
    await register(storage, OTHER, T0 + LEASE);
    await storage.workers.reclaimFromDead(OTHER, T0 + LEASE);
    await register(storage, WORKER, T0 + LEASE);
    await claim(storage, {}, OTHER);
    return { epoch: 2 };
  },
};

function refusedCases(it: StorageCase, all: Readonly<Record<string, Refused>>): void {
  for (const [refused, prepare] of Object.entries(all)) {
    it(`commit: a write is fenced and changes nothing, whatever the entry holds: ${refused}`, async (storage) => {
      const { epoch = 1, worker = WORKER } = await prepare(storage);
      const before = await everything(storage, 1);
      for (const [what, parts] of Object.entries(PARTS)) {
        same(await commitOne(storage, entry(1, { epoch, ...parts }), worker), 'fenced', `answer for ${what}`);
        same(await everything(storage, 1), before, `what is stored after ${what}`);
      }
    });
  }
}

export function fenceCases(it: StorageCase): void {
  refusedCases(it, ONE_WORKER);

  it('epoch: it only grows, through claims, releases, and a worker that unregisters and registers again', async (storage) => {
    await register(storage);
    await enqueue(storage, execution(1));
    const epochs: (number | undefined)[] = [];
    const claimIt = async () => epochs.push((await claim(storage))[0]?.epoch);
    await claimIt();
    await release(storage, 1, { status: 'queued', dueAt: T0 }, { epoch: 1 });
    await claimIt();
    await release(storage, 1, { status: 'waiting', dueAt: T0 }, { epoch: 2 });
    await claimIt();
    await release(storage, 1, { status: 'running', dueAt: T0 }, { epoch: 3 });
    await claimIt();
    await storage.workers.unregister(WORKER, T0);
    await register(storage);
    await claimIt();
    same(epochs, [1, 2, 3, 4, 5], 'epochs');
    same(await commitOne(storage, entry(1, { epoch: 5, end: end() })), 'stored', 'a commit under the last epoch');
  });

  it('epoch: each execution has its own', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    await release(storage, 1, { status: 'waiting', dueAt: T0 });
    await claim(storage);
    const answers = await storage.commit(WORKER, [
      entry(1, { epoch: 2 }),
      entry(2, { epoch: 1 }),
      entry(1, { epoch: 1 }),
      entry(2, { epoch: 2 }),
    ]);
    same(answers, ['stored', 'stored', 'fenced', 'fenced'], 'answers');
  });

  it('commit: of the batch of an unregistered worker, only queued starts are stored', async (storage) => {
    await accept(storage, execution(1));
    const queued = { ...entry(2, { epoch: 0 }), start: execution(2) };
    const answers = await storage.commit(STRANGER, [
      entry(1, { steps: [step('flow[0]')] }),
      { ...queued, release: { status: 'queued', dueAt: T0 } },
      { ...entry(3), start: execution(3) },
      entry(1, { end: end() }),
    ]);
    same(answers, ['fenced', 'stored', 'fenced', 'fenced'], 'answers');
    const found = await Promise.all([1, 2, 3].map(async (number) => storage.executions.get(executionId(number))));
    same(
      found.map((record) => record?.status ?? 'unknown'),
      ['running', 'queued', 'unknown'],
      'statuses',
    );
  });
}

/** For stores on which several workers may work at the same time. */
export function sharedFenceCases(it: StorageCase): void {
  refusedCases(it, MANY_WORKERS);

  it('commit: after a worker was considered dead, only the worker that claimed its execution may write', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')] }));
    await register(storage, OTHER, T0 + LEASE);
    await storage.workers.reclaimFromDead(OTHER, T0 + LEASE);
    await claim(storage, {}, OTHER);
    const last = entry(1, { epoch: 2, steps: [step('flow[1]')], end: end({ agents: 2 }) });
    same(await commitOne(storage, last, OTHER), 'stored', "the new worker's commit");
    same(await commitOne(storage, entry(1, { steps: [step('flow[2]')] })), 'fenced', 'a late write');
    const record = await storage.executions.get(executionId(1));
    same(
      [record?.status, ...(record?.agents ?? []).map(({ key }) => key)],
      ['completed', 'flow[0]', 'flow[1]'],
      'status and steps',
    );
  });

  it('commit: two workers write at the same time, each to the executions that it holds', async (storage) => {
    for (let number = 0; number < 20; number++)
      await accept(storage, execution(number), number % 2 === 0 ? WORKER : OTHER);
    const all = (key: string) => Array.from({ length: 20 }, (_, number) => entry(number, { steps: [step(key)] }));
    const [own, other] = await Promise.all([storage.commit(WORKER, all('own')), storage.commit(OTHER, all('other'))]);
    const expected = (even: string, odd: string) => own.map((_, number) => (number % 2 === 0 ? even : odd));
    same(own, expected('stored', 'fenced'), 'answers to the first worker');
    same(other, expected('fenced', 'stored'), 'answers to the second worker');
  });
}
