/** The storage suite's cases of what executions wait for: a signal that nobody waits for makes nothing due. */

import { NEVER } from '../../../engine/model/stored-execution.ts';
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
} from './context.ts';

export function awaitedSignalCases(it: StorageCase): void {
  it('waitsFor: a signal of another name leaves it waiting, one of a name that it waits for makes it due', async (storage) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    const wait = { status: 'waiting', dueAt: NEVER, signals: 0 } as const;
    await release(storage, 1, { ...wait, waitsFor: ['go', 'say "hi"', 'ü'] });
    await release(storage, 2, { ...wait, waitsFor: [] });
    await release(storage, 3, wait);
    for (const name of ['g', 'goo', 'hi', 'say', '"', 'stop']) {
      const id = `sig_${name}`;
      same(await storage.putSignal(signal(1, 1, { name, id })), 'stored', `answer to ${name}`);
      same(await storage.putSignal(signal(1, 2, { name, id })), 'stored', `answer to ${name}`);
    }
    same(await nextDueAt(storage), NEVER, 'when the next one is due');
    same(await claim(storage), [], 'what is claimed');
    await storage.putSignal(signal(2, 3, { name: 'stop' }));
    same(numbers(await claim(storage)), [3], 'one that waits for any');
    for (const name of ['go', 'say "hi"', 'ü']) {
      same(await storage.putSignal(signal(3, 1, { name, id: `sig_${name}` })), 'stored', `answer to ${name}`);
      same(await nextDueAt(storage), T0 + 50, `when it is due after ${name}`);
    }
    same(
      (await claim(storage)).map(({ signals }) => signals),
      [9],
      'how many signals had come when it is claimed',
    );
  });

  it('waitsFor: what it waited for before counts no more once it waits for something else', async (storage) => {
    await accept(storage, execution(1));
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 5, signals: 0, waitsFor: ['go'] });
    const [first] = await claim(storage);
    const epoch = first?.epoch ?? 0;
    await release(storage, 1, { status: 'waiting', dueAt: NEVER, signals: 0, waitsFor: ['stop'] }, { epoch });
    await storage.putSignal(signal(1, 1));
    same(await claim(storage), [], 'after the old name');
    await storage.putSignal(signal(2, 1, { name: 'stop' }));
    same(numbers(await claim(storage)), [1], 'after the new one');
  });

  it('waitsFor: one that came before its owner heard of it makes the execution due, whatever its name', async (storage) => {
    await accept(storage, execution(1));
    await storage.putSignal(signal(1, 1, { name: 'other' }));
    await release(storage, 1, { status: 'waiting', dueAt: NEVER, signals: 0, waitsFor: ['go'] });
    same(numbers(await claim(storage)), [1], 'what is claimed');
  });

  it('waitsFor: a signal that an entry sends to another execution is waited for or not as any other', async (storage) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    for (const number of [1, 2])
      await release(storage, number, { status: 'waiting', dueAt: NEVER, signals: 0, waitsFor: ['go'] });
    const signals = [signal(1, 1, { name: 'other' }), signal(2, 2)];
    same(await commitOne(storage, entry(3, { signals })), 'stored', 'answer');
    same(numbers(await claim(storage)), [2], 'what is claimed');
  });
}
