/** Storage suite: signals that an entry sends to other executions. They are stored together with the entry. */

import type { CommitEntry } from '../../../engine/execution/stored-execution.ts';
import {
  accept,
  claim,
  commitOne,
  end,
  entry,
  everything,
  execution,
  executionId,
  nextDueAt,
  OTHER,
  STRANGER,
  type StorageCase,
  same,
  signal,
  starting,
  step,
  T0,
  WORKER,
} from '../context.ts';
import { ids, list, pollSignals, waiting } from './signalled.ts';

const PARTS: Readonly<Record<string, Partial<CommitEntry>>> = {
  'an end': { end: end() },
  'a step and an end': { steps: [step('flow[0]')], end: end() },
  'a step': { steps: [step('flow[0]')] },
  'a release': { release: { status: 'waiting', dueAt: T0 + 9000 } },
  'no other content': {},
};

export function sentSignalCases(it: StorageCase): void {
  for (const [what, fields] of Object.entries(PARTS)) {
    it(`commit: signals in an entry with ${what} are stored with it, and make waiting executions due`, async (storage) => {
      await waiting(storage, 2);
      for (const number of [1, 3]) await accept(storage, execution(number));
      const sent = [signal(1, 2), signal(2, 3, { payload: 'held' })];
      same(await commitOne(storage, entry(1, { ...fields, signals: sent })), 'stored', 'answer');
      same([await list(storage, 2), await list(storage, 3)], [[sent[0]], [sent[1]]], 'signals');
      same(await pollSignals(storage), [{ executionId: executionId(3), signals: 1 }], 'what `poll` reports');
      same(await nextDueAt(storage), T0 + 50, 'due');
      same(await commitOne(storage, entry(1, { ...fields, signals: sent })), 'stored', 'the same entry again');
      same([await ids(storage, 2), await ids(storage, 3)], [[1], [2]], 'signals after that');
    });
  }

  it('commit: signals in a queued start are stored with it', async (storage) => {
    await waiting(storage, 2);
    const queued = starting(execution(1), { release: { status: 'queued', dueAt: T0 + 5000 }, signals: [signal(1, 2)] });
    same(await commitOne(storage, queued), 'stored', 'answer');
    same(await ids(storage, 2), [1], 'signals');
    same((await claim(storage)).length, 2, 'claimed');
  });

  it('commit: a signal to an unknown or ended execution is dropped, and its entry is stored', async (storage) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    await commitOne(storage, entry(2, { end: end() }));
    const before = await everything(storage, 2, 9);
    const sent = [signal(1, 9), signal(2, 2), signal(3, 3)];
    same(await commitOne(storage, entry(1, { end: end(), signals: sent })), 'stored', 'answer');
    same((await storage.executions.get(executionId(1)))?.status, 'completed', 'status');
    same(await ids(storage, 3), [3], 'signals of the running execution');
    same(await everything(storage, 2, 9), before, 'the others');
  });

  it('commit: a refused entry sends no signals', async (storage) => {
    await waiting(storage, 2);
    await accept(storage, execution(1));
    const before = await everything(storage, 1, 2);
    const refused = entry(1, { end: end(), signals: [signal(1, 2)] });
    same(await commitOne(storage, { ...refused, epoch: 7 }), 'fenced', 'under another epoch');
    same(await commitOne(storage, refused, STRANGER), 'fenced', 'by another worker');
    const state = { ensemble: 'orders', expectedVersion: 5, value: {}, updatedAt: T0 };
    same(await commitOne(storage, { ...refused, state }), 'state-conflict', 'with another version of the state');
    same(await everything(storage, 1, 2), before, 'what is stored');
  });

  it('commit: each stored entry of a batch sends its own signals', async (storage) => {
    await waiting(storage, 9);
    const numbers = [1, 2, 3, 4];
    for (const number of numbers) await accept(storage, execution(number));
    const batch = numbers.map((number) =>
      entry(number, { steps: [step('flow[0]')], ...(number !== 3 && { end: end(), signals: [signal(number, 9)] }) }),
    );
    same(await storage.commit(WORKER, batch), ['stored', 'stored', 'stored', 'stored'], 'answers');
    same(await ids(storage, 9), [1, 2, 4], 'signals');
    same((await claim(storage))[0]?.signals, 3, 'number of signals at the claim');
  });
}

/** For stores on which several workers may work at the same time. */
export function sharedSignalCases(it: StorageCase): void {
  it('put: only the worker that holds the execution sees the signal', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2), OTHER);
    for (const number of [1, 2]) await storage.signals.put(signal(1, number));
    same(await pollSignals(storage), [{ executionId: executionId(1), signals: 1 }], 'what the first worker sees');
    same(
      await pollSignals(storage, OTHER),
      [{ executionId: executionId(2), signals: 1 }],
      'what the second worker sees',
    );
  });

  it('commit: two concurrent commits that signal executions of each other do not deadlock', async (storage) => {
    const numbers = Array.from({ length: 16 }, (_, i) => i + 1);
    for (const number of numbers) await accept(storage, execution(number), number % 2 === 0 ? OTHER : WORKER);
    const batchOf = (rest: number, to: readonly number[]) =>
      numbers
        .filter((number) => number % 2 === rest)
        .map((number) => entry(number, { steps: [step('flow[0]')], signals: to.map((of) => signal(number, of)) }));
    const [even, odd] = [numbers.filter((n) => n % 2 === 0), numbers.filter((n) => n % 2 === 1)];
    const answers = await Promise.all([
      storage.commit(WORKER, batchOf(1, even)),
      storage.commit(OTHER, batchOf(0, [...odd].reverse())),
    ]);
    same(
      answers.flat(),
      numbers.map(() => 'stored'),
      'answers',
    );
    for (const number of numbers) same((await ids(storage, number)).length, 8, `signals of ${number}`);
  });
}
