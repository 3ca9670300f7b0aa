/** The memory storage: the published suite, answers at once or later, and how many finished executions it keeps. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory-storage.ts';
import { end, entry, execution, executionId, step } from '../../src/adapters/testing/storage-suite/context.ts';
import { storageSuite } from '../../src/adapters/testing/storage-suite.ts';
import type { Storage } from '../../src/engine/ports/storage.ts';
import { laterStorage } from './later-storage.ts';

storageSuite({ name: 'memoryStorage', create: () => memoryStorage(), test: { describe, it } });
storageSuite({
  name: 'memoryStorage behind promises',
  create: () => laterStorage(memoryStorage()),
  test: { describe, it },
});

const finish = (storage: Storage, number: number) => {
  storage.accept(execution(number));
  storage.commit([entry(number, { steps: [step('flow[0]')], end: end() })]);
};
const kept = async (storage: Storage) =>
  (await storage.listExecutions({ limit: 250 })).map(({ id }) => Number(id.slice(5)));

describe('memoryStorage({ keep })', () => {
  it('keeps the newest finished executions, and those at work always', async () => {
    const storage = memoryStorage({ keep: 3 });
    storage.accept(execution(0));
    for (let number = 1; number <= 10; number++) finish(storage, number);
    expect(await kept(storage)).toEqual([10, 9, 8, 0]);
    expect(storage.commit([entry(0, { steps: [step('flow[0]')] })])).toEqual(['stored']);
    expect(await storage.getExecution(executionId(7))).toBeUndefined();
    expect(await storage.listSteps(executionId(7), { after: 0, limit: 10 })).toEqual([]);
  });

  it('newest means finished last, not accepted last', async () => {
    const storage = memoryStorage({ keep: 2 });
    for (const number of [1, 2, 3]) storage.accept(execution(number));
    for (const number of [3, 2, 1]) storage.commit([entry(number, { end: end() })]);
    expect(await kept(storage)).toEqual([2, 1]);
  });

  it('goes round many times and forgets what it dropped', async () => {
    const storage = memoryStorage({ keep: 4 });
    for (let number = 1; number <= 103; number++) finish(storage, number);
    expect(await kept(storage)).toEqual([103, 102, 101, 100]);
    expect(storage.commit([entry(5, { end: end() })])).toEqual(['fenced']);
  });

  it('keep: 0 keeps none of the finished ones', async () => {
    const storage = memoryStorage({ keep: 0 });
    storage.accept(execution(0));
    finish(storage, 1);
    expect(await kept(storage)).toEqual([0]);
  });

  it('keeps 10,000 by default', async () => {
    const storage = memoryStorage();
    for (let number = 0; number <= 10_000; number++) finish(storage, number);
    expect(await storage.getExecution(executionId(0))).toBeUndefined();
    expect((await storage.getExecution(executionId(1)))?.status).toBe('completed');
  });

  it('keep may be as large as a number can be: room is taken as it is needed', async () => {
    const storage = memoryStorage({ keep: Number.MAX_SAFE_INTEGER });
    for (const number of [1, 2, 3]) finish(storage, number);
    expect(await kept(storage)).toEqual([3, 2, 1]);
  });

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5'])('keep: %s is a TypeError', (keep) => {
    expect(() => memoryStorage({ keep: keep as number })).toThrow(
      TypeError(`memoryStorage: keep must be a whole number of at least 0, not ${keep}`),
    );
  });
});
