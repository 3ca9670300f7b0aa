/** The storage suite's cases of how far schedules have come, and of starts that several processes make. */

import type { ScheduleChange, Storage } from '../../../engine/ports/storage.ts';
import {
  claim,
  commitOne,
  end,
  entry,
  everything,
  execution,
  frozen,
  type HandlesCase,
  join,
  type StorageCase,
  same,
  starting,
  T0,
} from './context.ts';

const NAME = 'orders/0123456789abcdef';

function change(expectedVersion: number, seen: number): ScheduleChange {
  return frozen({ expectedVersion, value: { seen, waiting: [[seen - 1, seen]] }, updatedAt: T0 + seen });
}

/** Makes the change, and says whether it was stored. */
async function advance(storage: Storage, by: ScheduleChange, name: string = NAME): Promise<boolean> {
  return storage.advanceSchedule(name, by);
}

export function scheduleCases(it: StorageCase): void {
  it('schedules: nothing is stored before the first change', async (storage) => {
    same(await storage.readSchedule(NAME), undefined, 'unknown');
    same(await advance(storage, change(1, 5)), false, 'a change of what is not there');
    same(await storage.readSchedule(NAME), undefined, 'still unknown');
  });

  it('schedules: a change counts the version up, and is read as it was handed in', async (storage) => {
    same(await advance(storage, change(0, 5)), true, 'the first');
    same(await storage.readSchedule(NAME), { value: change(0, 5).value, version: 1, updatedAt: T0 + 5 }, 'version 1');
    same(await advance(storage, change(1, 6)), true, 'the second');
    same(await storage.readSchedule(NAME), { value: change(1, 6).value, version: 2, updatedAt: T0 + 6 }, 'version 2');
  });

  it('schedules: a change from another version stores nothing', async (storage) => {
    await advance(storage, change(0, 5));
    await advance(storage, change(1, 6));
    for (const version of [0, 1, 3]) same(await advance(storage, change(version, 9)), false, `from ${version}`);
    same((await storage.readSchedule(NAME))?.value, change(1, 6).value, 'unchanged');
  });

  it('schedules: of changes made at once from one version, one is stored', async (storage) => {
    for (const version of [0, 1]) {
      const made = [1, 2, 3, 4].map((seen) => advance(storage, change(version, seen)));
      const stored = (await Promise.all(made)).filter(Boolean);
      same(stored.length, 1, `stored from ${version}`);
      same((await storage.readSchedule(NAME))?.version, version + 1, 'version');
    }
  });

  it('schedules: each is on its own, whatever its name is', async (storage) => {
    const names = ['a', 'A', 'a/1', 'ä', '"a"', "'; --", '\u0000a'];
    for (const [i, name] of names.entries()) await advance(storage, change(0, i), name);
    for (const [i, name] of names.entries()) {
      same((await storage.readSchedule(name))?.value, change(0, i).value, JSON.stringify(name));
    }
  });

  it('a queued start again, made by another process a while later, changes nothing', async (storage) => {
    const queued = (createdAt: number, version: string) =>
      starting(execution(1, { createdAt, version }), { release: { status: 'queued', dueAt: createdAt } });
    const again = queued(T0 + 9000, 'f'.repeat(32));
    same(await commitOne(storage, queued(T0, '0'.repeat(32)), ''), 'stored', 'the first');
    await join(storage);
    const unclaimed = await everything(storage, 1);
    same(await commitOne(storage, again, ''), 'stored', 'while it is queued');
    same(await everything(storage, 1), unclaimed, 'still queued');
    await claim(storage);
    const running = await everything(storage, 1);
    same(await commitOne(storage, again, ''), 'stored', 'while it runs');
    same(await everything(storage, 1), running, 'still running');
    await commitOne(storage, entry(1, { end: end() }));
    const ended = await everything(storage, 1);
    same(await commitOne(storage, again, ''), 'stored', 'when it has ended');
    same(await everything(storage, 1), ended, 'still ended');
    same(await claim(storage), [], 'nothing to claim');
  });
}

/** For stores that outlive their handle. */
export function durableScheduleCases(it: HandlesCase): void {
  it('schedules: what one handle stored, the next one reads', async (storage, reopen) => {
    await advance(storage, change(0, 5));
    await storage.close();
    const later = await reopen();
    same((await later.readSchedule(NAME))?.value, change(0, 5).value, 'value');
    same(await advance(later, change(1, 6)), true, 'goes on');
  });
}
