/** Storage suite: the stored progress of schedules. */

import type { ScheduleChange, Storage } from '../../engine/storage/storage.port.ts';
import { EVERY_KIND, frozen, type StorageCase, same, T0 } from './context.ts';

const NAME = 'orders/0123456789abcdef';

function change(expectedVersion: number, seen: number): ScheduleChange {
  return frozen({ expectedVersion, value: { seen, waiting: [[seen - 1, seen]] }, updatedAt: T0 + seen });
}

/** @returns whether the change was stored */
async function advance(storage: Storage, by: ScheduleChange, name: string = NAME): Promise<boolean> {
  return storage.schedules.advance(name, by);
}

export function scheduleCases(it: StorageCase): void {
  it('read: returns undefined before the first change', async (storage) => {
    same(await storage.schedules.read(NAME), undefined, 'unknown');
    same(await advance(storage, change(1, 5)), false, 'a change that expects version 1');
    same(await storage.schedules.read(NAME), undefined, 'still unknown');
  });

  it('advance: increments the version, and the value comes back unchanged', async (storage) => {
    same(await advance(storage, change(0, 5)), true, 'the first');
    same(await storage.schedules.read(NAME), { value: change(0, 5).value, version: 1, updatedAt: T0 + 5 }, 'version 1');
    same(await advance(storage, change(1, 6)), true, 'the second');
    same(await storage.schedules.read(NAME), { value: change(1, 6).value, version: 2, updatedAt: T0 + 6 }, 'version 2');
  });

  it('advance: a change from another version stores nothing', async (storage) => {
    await advance(storage, change(0, 5));
    await advance(storage, change(1, 6));
    for (const version of [0, 1, 3]) same(await advance(storage, change(version, 9)), false, `from ${version}`);
    same((await storage.schedules.read(NAME))?.value, change(1, 6).value, 'unchanged');
  });

  it('advance: of concurrent changes from one version, exactly one is stored', async (storage) => {
    for (const version of [0, 1]) {
      const made = [1, 2, 3, 4].map((seen) => advance(storage, change(version, seen)));
      const stored = (await Promise.all(made)).filter(Boolean);
      same(stored.length, 1, `stored from ${version}`);
      same((await storage.schedules.read(NAME))?.version, version + 1, 'version');
    }
  });

  it('advance: schedules with different names are independent, whatever the characters', async (storage) => {
    const names = ['a', 'A', 'a/1', 'ä', '"a"', "'; --", '\u0000a'];
    for (const [i, name] of names.entries()) await advance(storage, change(0, i), name);
    for (const [i, name] of names.entries()) {
      same((await storage.schedules.read(name))?.value, change(0, i).value, JSON.stringify(name));
    }
  });
}

/** For stores that outlive their handle. */
export function reopenedScheduleCases(it: StorageCase): void {
  it('reopen: values and versions are unchanged, and the next change expects the stored version', async (storage, reopen) => {
    await advance(storage, change(0, 5));
    await advance(storage, { ...change(1, 6), value: EVERY_KIND });
    await advance(storage, change(0, 7), 'ä/"1"');
    const next = await reopen();
    same(await next.schedules.read(NAME), { value: EVERY_KIND, version: 2, updatedAt: T0 + 6 }, 'value and version');
    same((await next.schedules.read('ä/"1"'))?.value, change(0, 7).value, 'value of another schedule');
    same(await advance(next, change(1, 8)), false, 'a change that expects an earlier version');
    same(await advance(next, change(2, 8)), true, 'a change that expects the stored version');
  });
}
