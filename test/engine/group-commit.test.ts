/** Group commit: what is written together, how many writes are on their way, and in what order an execution's records come. */

import { describe, expect, it } from 'vitest';
import { OrchestratorError } from '../../src/engine/errors.ts';
import type { CommitEntry } from '../../src/engine/model/stored-execution.ts';
import type { Storage } from '../../src/engine/ports/storage.ts';
import { memoryStorage } from '../../src/index.ts';
import { code, deferred, ok, scene, turns } from './scene.ts';

/** A storage that answers a commit when it is told to. */
function slowStorage() {
  const inner = memoryStorage();
  const sent: (readonly CommitEntry[])[] = [];
  const gates: ReturnType<typeof deferred<void>>[] = [];
  let isOpen = false;
  const storage: Storage = {
    ...inner,
    capabilities: { ...inner.capabilities, groupedCommits: true },
    async commit(owner, batch) {
      sent.push(batch);
      const gate = deferred<void>();
      gates.push(gate);
      if (!isOpen) await gate.promise;
      return inner.commit(owner, batch);
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
    /** From now on it waits to be told. */
    hold() {
      isOpen = false;
      sent.length = 0;
      gates.length = 0;
    },
  };
}

describe('issue 4, item 3: the steps of many executions go into one write', () => {
  it('two writes are on their way, each with a half; what comes up meanwhile waits', async () => {
    const slow = slowStorage();
    const many = scene([ok('a'), ok('b')], { storage: slow.storage });
    // That it answers later is known from its first answer.
    await slow.open();
    await many.run();
    slow.hold();
    const runs = Array.from({ length: 40 }, () => many.run());
    await turns();
    expect(slow.sizes()).toEqual([20, 20]);
    const more = Array.from({ length: 5 }, () => many.run());
    await turns();
    expect(slow.sizes()).toEqual([20, 20]);
    await slow.answer(0);
    // The first steps of those that were stored, and the five starts: as many as there are, while the other half is on its way.
    expect(slow.sizes()).toEqual([20, 20, 25]);
    await slow.open();
    expect((await Promise.all([...runs, ...more])).every(({ status }) => status === 'completed')).toBe(true);
  });

  it('a storage that does its work at once is given all that came up: two writes would be two commits', async () => {
    const inner = memoryStorage();
    const sizes: number[] = [];
    const storage: Storage = {
      ...inner,
      capabilities: { ...inner.capabilities, groupedCommits: true },
      commit(owner, batch) {
        sizes.push(batch.length);
        return inner.commit(owner, batch);
      },
    };
    const { run } = scene([ok('a'), ok('b')], { storage });
    await run();
    sizes.length = 0;
    await Promise.all(Array.from({ length: 40 }, () => run()));
    expect(sizes).toEqual([40, 40, 40]);
  });

  it('a few that come up beside a write wait for it: a second write would cost more than it brings', async () => {
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

  it('no execution writes by two writes at a time, so that its records are stored in the order in which they were made', async () => {
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
    // and what comes up beside it waits.
    expect(slow.sizes()).toEqual([1, 20]);
    await slow.answer(1);
    expect(slow.sizes()).toEqual([1, 20, 20]);
    await slow.open();
    expect((await held).output).toEqual({ all: items });
  });
});

describe('what an execution begins with is stored once', () => {
  it('fifty first starts of a process store its definition once, and one that failed is stored by the next start', async () => {
    const inner = memoryStorage();
    let puts = 0;
    let refuses = true;
    let gate = deferred<void>();
    const storage: Storage = {
      ...inner,
      async putDefinition(definition) {
        puts += 1;
        await gate.promise;
        if (refuses) throw new OrchestratorError('NOT_CONFIGURED', 'read only');
        return inner.putDefinition(definition);
      },
    };
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
