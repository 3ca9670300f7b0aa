/** Storage suite: the names of the signals that an execution waits for. A signal of another name makes nothing due. */

import { NEVER } from '../../../engine/execution/stored-execution.ts';
import {
  accept,
  claim,
  commitOne,
  entry,
  execution,
  nextDueAt,
  numbers,
  release,
  type StorageCase,
  same,
  signal,
  T0,
} from '../context.ts';

export function awaitedSignalCases(it: StorageCase): void {
  it('waitsFor: a signal makes the execution due only if its name is listed', async (storage) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    const wait = { status: 'waiting', dueAt: NEVER, signals: 0 } as const;
    await release(storage, 1, { ...wait, waitsFor: ['go', 'say "hi"', 'ü'] });
    await release(storage, 2, { ...wait, waitsFor: [] });
    await release(storage, 3, wait);
    for (const name of ['g', 'goo', 'hi', 'say', '"', 'stop']) {
      const id = `sig_${name}`;
      same(await storage.signals.put(signal(1, 1, { name, id })), 'stored', `answer to ${name}`);
      same(await storage.signals.put(signal(1, 2, { name, id })), 'stored', `answer to ${name}`);
    }
    same(await nextDueAt(storage), NEVER, 'the next `dueAt`');
    same(await claim(storage), [], 'claimed');
    await storage.signals.put(signal(2, 3, { name: 'stop' }));
    same(numbers(await claim(storage)), [3], 'claimed: the execution that waits for any signal');
    for (const name of ['go', 'say "hi"', 'ü']) {
      same(await storage.signals.put(signal(3, 1, { name, id: `sig_${name}` })), 'stored', `answer to ${name}`);
      same(await nextDueAt(storage), T0 + 50, `due after ${name}`);
    }
    same(
      (await claim(storage)).map(({ signals }) => signals),
      [9],
      'number of signals at the claim',
    );
  });

  it('waitsFor: a later release replaces the names of an earlier release', async (storage) => {
    await accept(storage, execution(1));
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 5, signals: 0, waitsFor: ['go'] });
    const [first] = await claim(storage);
    const epoch = first?.epoch ?? 0;
    await release(storage, 1, { status: 'waiting', dueAt: NEVER, signals: 0, waitsFor: ['stop'] }, { epoch });
    await storage.signals.put(signal(1, 1));
    same(await claim(storage), [], 'claimed after a signal of the old name');
    await storage.signals.put(signal(2, 1, { name: 'stop' }));
    same(numbers(await claim(storage)), [1], 'claimed after a signal of the new name');
  });

  it('waitsFor: a signal that the worker has not seen makes the execution due, whatever the name of the signal', async (storage) => {
    await accept(storage, execution(1));
    await storage.signals.put(signal(1, 1, { name: 'other' }));
    await release(storage, 1, { status: 'waiting', dueAt: NEVER, signals: 0, waitsFor: ['go'] });
    same(numbers(await claim(storage)), [1], 'claimed');
  });

  it('waitsFor: applies also to signals that an entry sends to other executions', async (storage) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    for (const number of [1, 2])
      await release(storage, number, { status: 'waiting', dueAt: NEVER, signals: 0, waitsFor: ['go'] });
    const signals = [signal(1, 1, { name: 'other' }), signal(2, 2)];
    same(await commitOne(storage, entry(3, { signals })), 'stored', 'answer');
    same(numbers(await claim(storage)), [2], 'claimed');
  });
}
