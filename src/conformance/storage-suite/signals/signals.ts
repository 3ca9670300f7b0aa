/** Storage suite: signals. They keep the order in which they arrive, and the worker that holds or claims the execution sees them. */

import { NEVER } from '../../../engine/execution/stored-execution.ts';
import {
  accept,
  claim,
  commitOne,
  EVERY_KIND,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  nextDueAt,
  numbers,
  OTHER,
  register,
  release,
  type StorageCase,
  same,
  signal,
  step,
  T0,
  WORKER,
} from '../context.ts';
import { ids, list, pollSignals, waiting } from './signalled.ts';

export function signalCases(it: StorageCase): void {
  it('put: stores nothing for an unknown execution', async (storage) => {
    same(await storage.signals.put(signal(1, 1)), 'unknown', 'answer');
    same(await list(storage, 1), [], 'signals');
  });

  it('put: stores nothing for an execution that has ended', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { end: end() }));
    same(await storage.signals.put(signal(1, 1)), 'ended', 'answer');
    same(await list(storage, 1), [], 'signals');
  });

  it('list: returns the signals of one name unchanged, in the order in which they arrived, in pages', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    const values = [null, 'text', { deep: [1, { a: 'ü\u0000"' }] }, [], 0.5];
    const signals = values.map((payload, i) => signal(9 - i, 1, { payload, createdAt: T0 + 50 - i }));
    for (const one of signals) same(await storage.signals.put(one), 'stored', 'answer');
    await storage.signals.put(signal(20, 1, { name: 'other-1' }));
    await storage.signals.put(signal(9, 2));
    same(await list(storage, 1), signals, 'signals');
    same(await ids(storage, 1, { after: 1, limit: 2 }), [8, 7], 'a page');
    same(await ids(storage, 1, { name: 'other-1' }), [20], 'another name');
    same(await ids(storage, 2), [9], 'of another execution');
  });

  it('put: a repeated id changes nothing, also after the end of the execution', async (storage) => {
    await accept(storage, execution(1));
    await storage.signals.put(signal(1, 1));
    same(await storage.signals.put(signal(1, 1, { payload: 'another', name: 'other' })), 'stored', 'answer');
    same(await list(storage, 1), [signal(1, 1)], 'signals');
    same(await pollSignals(storage), [{ executionId: executionId(1), signals: 1 }], 'what `poll` reports');
    await commitOne(storage, entry(1, { end: end() }));
    same(await storage.signals.put(signal(1, 1)), 'stored', 'answer after the end');
    same(await storage.signals.put(signal(2, 1)), 'ended', 'answer to another signal after the end');
    same(await ids(storage, 1), [1], 'signals after the end');
  });

  it('put: `poll` reports the number of signals to the worker that holds the execution', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    same(await pollSignals(storage), [], 'before');
    await storage.signals.put(signal(1, 1));
    same(await pollSignals(storage), [{ executionId: executionId(1), signals: 1 }], 'after the first');
    await storage.signals.put(signal(2, 1));
    same(
      await pollSignals(storage),
      [{ executionId: executionId(1), signals: 2 }],
      'after the second, in the same millisecond',
    );
    await commitOne(storage, entry(1, { end: end() }));
    same(await pollSignals(storage), [], 'after the end');
  });

  it('put: a waiting execution is due at once, and its claim carries the number of signals', async (storage) => {
    await waiting(storage, 1);
    same(await nextDueAt(storage), NEVER, 'due before');
    same(await claim(storage, { now: T0 + 86_400_000 }), [], 'claimed before');
    await storage.signals.put(signal(1, 1));
    same(await nextDueAt(storage), T0 + 50, 'due');
    same((await storage.executions.get(executionId(1)))?.status, 'waiting', 'status');
    await storage.signals.put(signal(2, 1, { createdAt: T0 + 70 }));
    const [claimed] = await claim(storage, { now: T0 + 50 });
    same([claimed?.signals, claimed?.begun, claimed?.epoch], [2, true, 2], 'claimed');
    same(await pollSignals(storage), [], 'what `poll` reports of signals that came with the claim');
  });

  it('put: does not postpone an earlier `dueAt`, and does not make a queued execution due', async (storage) => {
    await waiting(storage, 1, T0 + 20);
    await storage.signals.put(signal(1, 1));
    same(await nextDueAt(storage), T0 + 20, 'due');
    await claim(storage);
    await enqueue(storage, execution(2), T0 + 5000);
    same(await storage.signals.put(signal(1, 2)), 'stored', 'answer');
    same(await nextDueAt(storage), T0 + 5000, 'due when queued');
    same((await claim(storage))[0]?.signals, 1, 'signals of the queued execution');
  });

  it('release: as waiting, the execution is due at once if a signal arrived that its worker has not seen', async (storage) => {
    await accept(storage, execution(1));
    for (const number of [1, 2]) await storage.signals.put(signal(number, 1));
    await release(storage, 1, { status: 'waiting', dueAt: NEVER, signals: 1 });
    same(await nextDueAt(storage), T0 + 50, 'due');
    same((await claim(storage, { now: T0 + 50 }))[0]?.signals, 2, 'claimed');
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 900, signals: 2 }, { epoch: 2 });
    same(await nextDueAt(storage), T0 + 900, 'due when the worker has seen all');
  });

  it('release: as waiting without `signals`, the execution is due at once if a signal arrived since the claim', async (storage) => {
    await accept(storage, execution(1));
    await storage.signals.put(signal(1, 1));
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 900 });
    same(await nextDueAt(storage), T0 + 50, 'due');
    await claim(storage);
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 900 }, { epoch: 2 });
    same(await nextDueAt(storage), T0 + 900, 'due when none arrived');
  });

  it('release: repeated after a signal has made the execution due, the answer is `stored`', async (storage) => {
    await accept(storage, execution(1));
    const given = entry(1, { steps: [step('flow[0]')], release: { status: 'waiting', dueAt: T0 + 900, signals: 0 } });
    same(await commitOne(storage, given), 'stored', 'the first time');
    await storage.signals.put(signal(1, 1));
    same(await commitOne(storage, given), 'stored', 'the second time');
    same(await nextDueAt(storage), T0 + 50, 'due');
  });

  it('put: with concurrent releases, no signal is lost', async (storage) => {
    const numbers = Array.from({ length: 20 }, (_, number) => number);
    for (const number of numbers) await accept(storage, execution(number));
    const wait = { status: 'waiting', dueAt: NEVER, signals: 0 } as const;
    await Promise.all([
      ...numbers.map(async (number) => storage.signals.put(signal(1, number))),
      storage.commit(
        WORKER,
        numbers.map((number) => entry(number, { release: wait })),
      ),
    ]);
    same(
      (await claim(storage)).map(({ signals }) => signals),
      numbers.map(() => 1),
      'claimed, each with its signal',
    );
  });

  it('put: many concurrent signals are all stored, each once', async (storage) => {
    await accept(storage, execution(1));
    const numbers = Array.from({ length: 20 }, (_, number) => number);
    await Promise.all([...numbers, ...numbers].map(async (number) => storage.signals.put(signal(number, 1))));
    same(
      (await ids(storage, 1)).sort((a, b) => a - b),
      numbers,
      'signals',
    );
    same(await pollSignals(storage), [{ executionId: executionId(1), signals: 20 }], 'what `poll` reports');
  });

  it('put: a signal outlives the worker that held the execution, and is deleted with the execution', async (storage) => {
    await accept(storage, execution(1));
    await storage.signals.put(signal(1, 1));
    await storage.workers.unregister(WORKER, T0 + 100);
    await register(storage, WORKER, T0 + 100);
    same((await claim(storage))[0]?.signals, 1, 'signals');
    await commitOne(storage, entry(1, { epoch: 2, end: end({ finishedAt: T0 + 500 }) }));
    await storage.executions.purge({ worker: WORKER, before: T0 + 1000, limit: 10 });
    same(await list(storage, 1), [], 'signals of the deleted execution');
    await accept(storage, execution(1, { seed: 'f'.repeat(32) }));
    same(await list(storage, 1), [], 'signals of a new execution with that id');
  });

  it('find: finds a signal by its id, in that execution only', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    const sent = signal(1, 1, { id: 'key_go:"ü"', payload: { a: [1] } });
    await storage.signals.put(sent);
    await storage.signals.put(signal(2, 1));
    same(await storage.signals.find(executionId(1), sent.id), sent, 'signal');
    for (const [number, id] of [
      [1, 'key_go'],
      [2, sent.id],
      [3, sent.id],
    ] as const)
      same(await storage.signals.find(executionId(number), id), undefined, `${id} of execution ${number}`);
    await storage.commit(WORKER, [entry(1, { end: end() })]);
    same(await storage.signals.find(executionId(1), sent.id), sent, 'after the end');
  });
}

/** For stores that outlive their handle. */
export function reopenedSignalCases(it: StorageCase): void {
  it('reopen: signals keep their order and their payloads, and a repeated id changes nothing', async (storage, reopen) => {
    await accept(storage, execution(1));
    const sent = [
      signal(3, 1, { payload: EVERY_KIND }),
      signal(1, 1, { payload: null }),
      signal(2, 1, { name: 'ä漢👍', payload: 'text' }),
      signal(4, 1, { createdAt: T0 - 1 }),
    ];
    for (const one of sent) same(await storage.signals.put(one), 'stored', 'answer');
    const next = await reopen();
    same(await next.signals.put(signal(1, 1, { payload: 'another' })), 'stored', 'answer to a repeated id');
    same(await list(next, 1), [sent[0], sent[1], sent[3]], 'signals');
    same(await list(next, 1, { name: 'ä漢👍' }), [sent[2]], 'signals of another name');
    for (const one of sent) same(await next.signals.find(executionId(1), one.id), one, 'signal by its id');
  });

  it('reopen: an execution that waits is due at a signal that it waits for, and its claim carries the number of signals', async (storage, reopen) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    await storage.signals.put(signal(1, 1));
    await release(storage, 1, { status: 'waiting', dueAt: NEVER, signals: 1, waitsFor: ['stop'] });
    await storage.signals.put(signal(2, 2));
    await release(storage, 2, { status: 'waiting', dueAt: NEVER, signals: 0 });
    const next = await reopen();
    same(await nextDueAt(next), T0 + 50, 'due because of a signal that the worker has not seen');
    await register(next, OTHER, T0);
    await next.signals.put(signal(3, 1));
    same(numbers(await claim(next, {}, OTHER)), [2], 'claimed after a signal of another name');
    await next.signals.put(signal(4, 1, { name: 'stop', createdAt: T0 + 70 }));
    same(
      (await claim(next, {}, OTHER)).map(({ epoch, signals }) => [epoch, signals]),
      [[2, 3]],
      'claimed after `stop`',
    );
  });
}
