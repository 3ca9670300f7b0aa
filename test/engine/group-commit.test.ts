/** Group commit: which entries are written together, how many writes are in progress, and the order of an execution's records. */

import { describe, expect, it } from 'vitest';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import type { CommitEntry } from '../../src/engine/execution/stored-execution.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { memoryStorage } from '../../src/index.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';
import { code, deferred, ok, scene, turns } from './scene.ts';

/** A storage whose commits are answered by the test. */
function slowStorage() {
  const inner = memoryStorage();
  const sent: (readonly CommitEntry[])[] = [];
  const gates: ReturnType<typeof deferred<void>>[] = [];
  let isOpen = false;
  const storage: Storage = {
    ...inner,
    capabilities: { ...inner.capabilities, groupedCommits: true },
    async commit(worker, batch) {
      sent.push(batch);
      const gate = deferred<void>();
      gates.push(gate);
      if (!isOpen) await gate.promise;
      return inner.commit(worker, batch);
    },
  };
  return {
    storage,
    sent,
    sizes: () => sent.map((batch) => batch.length),
    async answer(nr: number) {
      gates[nr]?.resolve();
      await turns();
    },
    async open() {
      isOpen = true;
      for (const gate of gates) gate.resolve();
      await turns();
    },
    /** From now on, commits wait for the test. */
    hold() {
      isOpen = false;
      sent.length = 0;
      gates.length = 0;
    },
  };
}

describe('the steps of many executions are written together', () => {
  it('a write takes all entries that wait; while it is in progress, a second one takes the next if there are eight', async () => {
    const slow = slowStorage();
    const many = scene([ok('a'), ok('b')], { storage: slow.storage });
    // The first answer shows that the storage answers asynchronously.
    await slow.open();
    await many.run();
    slow.hold();
    const runs = Array.from({ length: 40 }, () => many.run());
    await turns();
    expect(slow.sizes()).toEqual([40]);
    const more = Array.from({ length: 5 }, () => many.run());
    await turns();
    expect(slow.sizes()).toEqual([40]);
    more.push(...Array.from({ length: 5 }, () => many.run()));
    await turns();
    expect(slow.sizes()).toEqual([40, 10]);
    await slow.answer(0);
    // The first steps of the stored executions, while the other write is in progress.
    expect(slow.sizes()).toEqual([40, 10, 40]);
    await slow.open();
    expect((await Promise.all([...runs, ...more])).every(({ status }) => status === 'completed')).toBe(true);
  });

  it('a storage that answers at once gets all entries in one write', async () => {
    const inner = memoryStorage();
    const sizes: number[] = [];
    const storage: Storage = {
      ...inner,
      capabilities: { ...inner.capabilities, groupedCommits: true },
      commit(worker, batch) {
        sizes.push(batch.length);
        return inner.commit(worker, batch);
      },
    };
    const { run } = scene([ok('a'), ok('b')], { storage });
    await run();
    sizes.length = 0;
    await Promise.all(Array.from({ length: 40 }, () => run()));
    expect(sizes).toEqual([40, 40, 40]);
  });

  it('a few new entries wait for the write in progress', async () => {
    const slow = slowStorage();
    const { run } = scene([ok('a')], { storage: slow.storage });
    const first = run();
    await turns();
    const runs = Array.from({ length: 7 }, () => run());
    await turns();
    expect(slow.sizes()).toEqual([1]);
    await slow.answer(0);
    expect(slow.sizes()).toEqual([1, 8]);
    await slow.open();
    await Promise.all([first, ...runs]);
  });

  it('no execution has entries in two writes at a time, so that its records are stored in the order in which they were made', async () => {
    const slow = slowStorage();
    let later = deferred<void>();
    const items = Array.from({ length: 40 }, (_, i) => i);
    const all = { foreach: items, concurrency: 40, name: 'all', steps: [code('x', 'late', { input: '${item}' })] };
    const { run } = scene(
      { flow: [all], outputs: { all: '${all.output}' } },
      {
        storage: slow.storage,
        scripts: {
          async late({ input }) {
            if ((input as number) >= 20) await later.promise;
            return input;
          },
        },
      },
    );
    later.resolve();
    await slow.open();
    await run();
    slow.hold();
    later = deferred<void>();
    const held = run();
    await turns();
    await slow.answer(0);
    // Not halved,
    expect(slow.sizes()).toEqual([1, 20]);
    later.resolve();
    await turns();
    // and new entries wait.
    expect(slow.sizes()).toEqual([1, 20]);
    await slow.answer(1);
    expect(slow.sizes()).toEqual([1, 20, 20]);
    await slow.open();
    expect((await held).output).toEqual({ all: items });
  });
});

describe('the definition of an execution', () => {
  it('is stored once by the first fifty starts of a process, and after a failure by the next start', async () => {
    const inner = memoryStorage();
    let puts = 0;
    let refuses = true;
    let gate = deferred<void>();
    const storage = changeStorage(inner, {
      definitions: {
        async put(definition) {
          puts += 1;
          await gate.promise;
          if (refuses) throw new OrchestratorError('NOT_CONFIGURED', 'read only');
          return inner.definitions.put(definition);
        },
      },
    });
    const { run } = scene([ok('a')], { storage });
    const first = Promise.allSettled(Array.from({ length: 50 }, () => run()));
    await turns();
    gate.resolve();
    const refused = await first;
    expect(refused.every(({ status }) => status === 'rejected')).toBe(true);
    expect(puts).toBe(1);
    refuses = false;
    gate = deferred<void>();
    const second = Array.from({ length: 50 }, () => run());
    await turns();
    gate.resolve();
    const runs = await Promise.all(second);
    expect(runs.every(({ status }) => status === 'completed')).toBe(true);
    expect(puts).toBe(2);
  });
});
