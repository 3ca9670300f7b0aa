/** The storage suite's cases of fences: who may write to an execution, and that nobody else changes anything. */

import type { CommitEntry } from '../../../engine/model/stored-execution.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import {
  accept,
  change,
  claim,
  commitOne,
  delivery,
  end,
  enqueue,
  entry,
  everything,
  execution,
  executionId,
  join,
  LEASE,
  OTHER,
  OWNER,
  release,
  retrying,
  STRANGER,
  type StorageCase,
  same,
  step,
  T0,
} from './context.ts';

/** What an entry may hold: each is fenced alone too. */
const PARTS: Readonly<Record<string, Partial<CommitEntry>>> = {
  nothing: {},
  'a step': { steps: [step('flow[7]')] },
  'an attempt': { steps: [retrying('flow[7]', 1)] },
  'a note': { steps: [step('flow[7]', { name: '', note: true })] },
  'a state': { steps: [step('flow[7]')], state: change(0, { a: 1 }) },
  'a delivery': { deliveries: [delivery(7)] },
  'a release': { release: { status: 'waiting', dueAt: T0 + 7777 } },
  'an end': { end: end({ output: 7 }) },
  everything: {
    steps: [step('flow[7]'), step('flow[8]')],
    state: change(0, { a: 1 }),
    deliveries: [delivery(7)],
    end: end({ output: 7 }),
  },
};

/** Who is refused: brings execution 1 about, and gives what the refused writer holds in its hands. */
type Refused = (storage: Storage) => Promise<{ readonly epoch?: number; readonly owner?: string }>;

const ONE_OWNER: Readonly<Record<string, Refused>> = {
  async 'an execution that is unknown'(storage) {
    await join(storage);
    return {};
  },
  async 'an owner that never joined'(storage) {
    await accept(storage, execution(1));
    return { owner: STRANGER };
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
  async 'an execution that is queued'(storage) {
    await join(storage);
    await enqueue(storage, execution(1));
    return { epoch: 0 };
  },
  async 'an execution that it gave up to wait'(storage) {
    await accept(storage, execution(1));
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 100 });
    return {};
  },
  async 'an execution that it gave up for another to go on'(storage) {
    await accept(storage, execution(1));
    await release(storage, 1, { status: 'running', dueAt: T0 + 100 });
    return {};
  },
  async 'an execution that has ended'(storage) {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')], end: end({ status: 'failed' }) }));
    return {};
  },
  async 'an owner that has left'(storage) {
    await accept(storage, execution(1));
    await storage.leave(OWNER, T0 + 100);
    return {};
  },
  async 'an owner that has left and joined again'(storage) {
    await accept(storage, execution(1));
    await storage.leave(OWNER, T0 + 100);
    await join(storage);
    return {};
  },
};

const MANY_OWNERS: Readonly<Record<string, Refused>> = {
  async 'another owner than the one that holds it'(storage) {
    await accept(storage, execution(1));
    await join(storage, OTHER);
    return { owner: OTHER };
  },
  async 'an owner that was taken for dead'(storage) {
    await accept(storage, execution(1));
    await join(storage, OTHER, T0 + LEASE);
    same((await storage.recover(OTHER, T0 + LEASE)).freed, 1, 'freed');
    return {};
  },
  async 'an owner that was taken for dead and joined again'(storage) {
    await accept(storage, execution(1));
    await join(storage, OTHER, T0 + LEASE);
    await storage.recover(OTHER, T0 + LEASE);
    await join(storage, OWNER, T0 + LEASE);
    return {};
  },
  async 'an owner whose execution was claimed by another'(storage) {
    await accept(storage, execution(1));
    await join(storage, OTHER, T0 + LEASE);
    await storage.recover(OTHER, T0 + LEASE);
    await join(storage, OWNER, T0 + LEASE);
    same((await claim(storage, {}, OTHER))[0]?.epoch, 2, 'epoch');
    return {};
  },
  async 'an owner whose execution was claimed by another, under its epoch'(storage) {
    await accept(storage, execution(1));
    await join(storage, OTHER, T0 + LEASE);
    await storage.recover(OTHER, T0 + LEASE);
    await join(storage, OWNER, T0 + LEASE);
    await claim(storage, {}, OTHER);
    return { epoch: 2 };
  },
};

function refusedCases(it: StorageCase, all: Readonly<Record<string, Refused>>): void {
  for (const [who, prepare] of Object.entries(all)) {
    it(`I9: ${who} is fenced, whatever the entry holds, and nothing is stored`, async (storage) => {
      const { epoch = 1, owner = OWNER } = await prepare(storage);
      const before = await everything(storage, 1);
      for (const [what, parts] of Object.entries(PARTS)) {
        same(await commitOne(storage, entry(1, { epoch, ...parts }), owner), 'fenced', `answer for ${what}`);
        same(await everything(storage, 1), before, `what is stored after ${what}`);
      }
    });
  }
}

export function fenceCases(it: StorageCase): void {
  refusedCases(it, ONE_OWNER);

  it('I9: an epoch only grows, through claims, releases, leaving and joining again', async (storage) => {
    await join(storage);
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
    await storage.leave(OWNER, T0);
    await join(storage);
    await claimIt();
    same(epochs, [1, 2, 3, 4, 5], 'epochs');
    same(await commitOne(storage, entry(1, { epoch: 5, end: end() })), 'stored', 'a commit under the last one');
  });

  it('I9: each execution has an epoch of its own', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    await release(storage, 1, { status: 'waiting', dueAt: T0 });
    await claim(storage);
    const answers = await storage.commit(OWNER, [
      entry(1, { epoch: 2 }),
      entry(2, { epoch: 1 }),
      entry(1, { epoch: 1 }),
      entry(2, { epoch: 2 }),
    ]);
    same(answers, ['stored', 'stored', 'fenced', 'fenced'], 'answers');
  });

  it('commit: an owner that is not known writes nothing of a batch but what it queues', async (storage) => {
    await accept(storage, execution(1));
    const queued = { ...entry(2, { epoch: 0 }), start: execution(2) };
    const answers = await storage.commit(STRANGER, [
      entry(1, { steps: [step('flow[0]')] }),
      { ...queued, release: { status: 'queued', dueAt: T0 } },
      { ...entry(3), start: execution(3) },
      entry(1, { end: end() }),
    ]);
    same(answers, ['fenced', 'stored', 'fenced', 'fenced'], 'answers');
    const found = await Promise.all([1, 2, 3].map(async (number) => storage.getExecution(executionId(number))));
    same(
      found.map((record) => record?.status ?? 'unknown'),
      ['running', 'queued', 'unknown'],
      'statuses',
    );
  });
}

/** For stores on which several owners may work at once. */
export function rivalCases(it: StorageCase): void {
  refusedCases(it, MANY_OWNERS);

  it('I9: of one that was taken for dead, the successor alone writes', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')] }));
    await join(storage, OTHER, T0 + LEASE);
    await storage.recover(OTHER, T0 + LEASE);
    await claim(storage, {}, OTHER);
    const last = entry(1, { epoch: 2, steps: [step('flow[1]')], end: end({ agents: 2 }) });
    same(await commitOne(storage, last, OTHER), 'stored', "the successor's commit");
    same(await commitOne(storage, entry(1, { steps: [step('flow[2]')] })), 'fenced', 'a late write');
    const record = await storage.getExecution(executionId(1));
    same(
      [record?.status, ...(record?.agents ?? []).map(({ key }) => key)],
      ['completed', 'flow[0]', 'flow[1]'],
      'status and steps',
    );
  });

  it('commit: two owners write at the same time, each to what it holds', async (storage) => {
    for (let number = 0; number < 20; number++)
      await accept(storage, execution(number), number % 2 === 0 ? OWNER : OTHER);
    const all = (key: string) => Array.from({ length: 20 }, (_, number) => entry(number, { steps: [step(key)] }));
    const [own, other] = await Promise.all([storage.commit(OWNER, all('own')), storage.commit(OTHER, all('other'))]);
    const expected = (even: string, odd: string) => own.map((_, number) => (number % 2 === 0 ? even : odd));
    same(own, expected('stored', 'fenced'), 'answers to the one');
    same(other, expected('fenced', 'stored'), 'answers to the other');
  });
}
