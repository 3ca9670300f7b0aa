/** The storage suite's cases of signals: kept in the order in which they come, and heard by whoever holds the execution or claims it. */

import { NEVER } from '../../../engine/model/stored-execution.ts';
import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  join,
  nextDueAt,
  OWNER,
  release,
  type StorageCase,
  same,
  signal,
  step,
  T0,
} from './context.ts';
import { ids, list, told, waiting } from './signalled.ts';

export function signalCases(it: StorageCase): void {
  it('putSignal: to an unknown execution stores nothing', async (storage) => {
    same(await storage.putSignal(signal(1, 1)), 'unknown', 'answer');
    same(await list(storage, 1), [], 'signals');
  });

  it('putSignal: to one that has ended stores nothing', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { end: end() }));
    same(await storage.putSignal(signal(1, 1)), 'ended', 'answer');
    same(await list(storage, 1), [], 'signals');
  });

  it('listSignals: those of one name as they were handed in, in the order in which they came, by pages', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    const values = [null, 'text', { deep: [1, { a: 'ü\u0000"' }] }, [], 0.5];
    const signals = values.map((payload, i) => signal(9 - i, 1, { payload, createdAt: T0 + 50 - i }));
    for (const one of signals) same(await storage.putSignal(one), 'stored', 'answer');
    await storage.putSignal(signal(20, 1, { name: 'other-1' }));
    await storage.putSignal(signal(9, 2));
    same(await list(storage, 1), signals, 'signals');
    same(await ids(storage, 1, { after: 1, limit: 2 }), [8, 7], 'a page');
    same(await ids(storage, 1, { name: 'other-1' }), [20], 'another name');
    same(await ids(storage, 2), [9], 'of another execution');
  });

  it('putSignal: the same id again changes nothing, also once the execution has ended', async (storage) => {
    await accept(storage, execution(1));
    await storage.putSignal(signal(1, 1));
    same(await storage.putSignal(signal(1, 1, { payload: 'another', name: 'other' })), 'stored', 'answer');
    same(await list(storage, 1), [signal(1, 1)], 'signals');
    same(await told(storage), [{ executionId: executionId(1), signals: 1 }], 'what the owner hears');
    await commitOne(storage, entry(1, { end: end() }));
    same(await storage.putSignal(signal(1, 1)), 'stored', 'answer behind the end');
    same(await storage.putSignal(signal(2, 1)), 'ended', 'another one behind the end');
    same(await ids(storage, 1), [1], 'signals behind the end');
  });

  it('putSignal: of one that is held, its owner hears by `survey`, by how many have come', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    same(await told(storage), [], 'before');
    await storage.putSignal(signal(1, 1));
    same(await told(storage), [{ executionId: executionId(1), signals: 1 }], 'of the first');
    await storage.putSignal(signal(2, 1));
    same(await told(storage), [{ executionId: executionId(1), signals: 2 }], 'of the second, in the same millisecond');
    await commitOne(storage, entry(1, { end: end() }));
    same(await told(storage), [], 'when it is held no more');
  });

  it('putSignal: one that waits is due at once, and whoever claims it is told how many there are', async (storage) => {
    await waiting(storage, 1);
    same(await nextDueAt(storage), NEVER, 'due before');
    same(await claim(storage, { now: T0 + 86_400_000 }), [], 'claimed before');
    await storage.putSignal(signal(1, 1));
    same(await nextDueAt(storage), T0 + 50, 'due');
    same((await storage.getExecution(executionId(1)))?.status, 'waiting', 'status');
    await storage.putSignal(signal(2, 1, { createdAt: T0 + 70 }));
    const [claimed] = await claim(storage, { now: T0 + 50 });
    same([claimed?.signals, claimed?.begun, claimed?.epoch], [2, true, 2], 'claimed');
    same(await told(storage), [], 'what the owner hears of what it was told with the claim');
  });

  it('putSignal: what is due earlier is not put off, and what is queued does not begin for it', async (storage) => {
    await waiting(storage, 1, T0 + 20);
    await storage.putSignal(signal(1, 1));
    same(await nextDueAt(storage), T0 + 20, 'due');
    await claim(storage);
    await enqueue(storage, execution(2), T0 + 5000);
    same(await storage.putSignal(signal(1, 2)), 'stored', 'answer');
    same(await nextDueAt(storage), T0 + 5000, 'due when queued');
    same((await claim(storage))[0]?.signals, 1, 'signals of what was queued');
  });

  it('release: as waiting, it is due at once when a signal came that its owner has not heard of', async (storage) => {
    await accept(storage, execution(1));
    for (const number of [1, 2]) await storage.putSignal(signal(number, 1));
    await release(storage, 1, { status: 'waiting', dueAt: NEVER, signals: 1 });
    same(await nextDueAt(storage), T0 + 50, 'due');
    same((await claim(storage, { now: T0 + 50 }))[0]?.signals, 2, 'claimed');
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 900, signals: 2 }, { epoch: 2 });
    same(await nextDueAt(storage), T0 + 900, 'due when it had heard of all');
  });

  it('release: as waiting, without a number, it is due at once when a signal came since it was claimed', async (storage) => {
    await accept(storage, execution(1));
    await storage.putSignal(signal(1, 1));
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 900 });
    same(await nextDueAt(storage), T0 + 50, 'due');
    await claim(storage);
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 900 }, { epoch: 2 });
    same(await nextDueAt(storage), T0 + 900, 'due when none had come');
  });

  it('release: again, behind a signal that made it due, is stored already', async (storage) => {
    await accept(storage, execution(1));
    const given = entry(1, { steps: [step('flow[0]')], release: { status: 'waiting', dueAt: T0 + 900, signals: 0 } });
    same(await commitOne(storage, given), 'stored', 'the first time');
    await storage.putSignal(signal(1, 1));
    same(await commitOne(storage, given), 'stored', 'the second time');
    same(await nextDueAt(storage), T0 + 50, 'due');
  });

  it('putSignal: beside releases at the same time, none is lost', async (storage) => {
    const numbers = Array.from({ length: 20 }, (_, number) => number);
    for (const number of numbers) await accept(storage, execution(number));
    const giveUp = { status: 'waiting', dueAt: NEVER, signals: 0 } as const;
    await Promise.all([
      ...numbers.map(async (number) => storage.putSignal(signal(1, number))),
      storage.commit(
        OWNER,
        numbers.map((number) => entry(number, { release: giveUp })),
      ),
    ]);
    same(
      (await claim(storage)).map(({ signals }) => signals),
      numbers.map(() => 1),
      'claimed, each with its signal',
    );
  });

  it('putSignal: many at the same time are all kept, each once', async (storage) => {
    await accept(storage, execution(1));
    const numbers = Array.from({ length: 20 }, (_, number) => number);
    await Promise.all([...numbers, ...numbers].map(async (number) => storage.putSignal(signal(number, 1))));
    same(
      (await ids(storage, 1)).sort((a, b) => a - b),
      numbers,
      'signals',
    );
    same(await told(storage), [{ executionId: executionId(1), signals: 20 }], 'what the owner hears');
  });

  it('a signal outlives the owner that it was meant for, and goes with its execution', async (storage) => {
    await accept(storage, execution(1));
    await storage.putSignal(signal(1, 1));
    await storage.leave(OWNER, T0 + 100);
    await join(storage, OWNER, T0 + 100);
    same((await claim(storage))[0]?.signals, 1, 'signals');
    await commitOne(storage, entry(1, { epoch: 2, end: end({ finishedAt: T0 + 500 }) }));
    await storage.purge({ owner: OWNER, before: T0 + 1000, limit: 10 });
    same(await list(storage, 1), [], 'signals of what is deleted');
    await accept(storage, execution(1, { seed: 'f'.repeat(32) }));
    same(await list(storage, 1), [], 'signals of the next one of that id');
  });
}
