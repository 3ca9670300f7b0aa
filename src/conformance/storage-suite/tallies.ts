/** Storage suite: counts of ends. */

import { lineOfEnd, MINUTE } from '../../engine/events/tallies/end-line.ts';
import { statsOf } from '../../engine/events/tallies/stats.ts';
import { DAY, HOUR, HOURS_FOR, MINUTES_FOR } from '../../engine/events/tallies/tally.ts';
import type { TallyQuery } from '../../engine/events/tallies/tally-store.port.ts';
import type { FinalStatus } from '../../engine/execution/execution.ts';
import type { CommitEntry, ExecutionEnd, NewExecution } from '../../engine/execution/stored-execution.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import {
  accept,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  register,
  type StorageCase,
  same,
  starting,
  T0,
  WORKER,
} from './context.ts';

const ALL: TallyQuery = { since: T0 - DAY, until: T0 + 400 * DAY };

async function numbers(storage: Storage, query = ALL) {
  return statsOf(await storage.tallies.read(query), { ...query, length: DAY });
}

/** How many ended, and how: `completed 2, failed 1`. */
async function counts(storage: Storage, query = ALL): Promise<string> {
  const { counts } = await numbers(storage, query);
  return Object.entries(counts)
    .flatMap(([status, count]) => (count > 0 ? [`${status} ${count}`] : []))
    .join(', ');
}

async function foldAll(storage: Storage, now: number): Promise<void> {
  while (await storage.tallies.fold(now));
}

/** The end of an execution that began when it was accepted. */
function ending(number: number, fields: Partial<ExecutionEnd> = {}, more: Partial<NewExecution> = {}): CommitEntry {
  const [started, ended] = [execution(number, more), end(fields)];
  return entry(number, { end: ended, counted: lineOfEnd(started, started.createdAt, ended) });
}

/** Accepts an execution and ends it. */
async function ends(
  storage: Storage,
  number: number,
  status: FinalStatus,
  {
    at = T0 + 500,
    message = 'no answer',
    ...more
  }: { readonly at?: number; readonly message?: string } & Partial<NewExecution> = {},
): Promise<void> {
  await accept(storage, execution(number, more));
  const error = { code: 'AGENT_FAILED', message };
  const ended = ending(number, { status, finishedAt: at, ...(status !== 'completed' && { error }) }, more);
  same(await commitOne(storage, ended), 'stored', `the end of ${number}`);
}

export function tallyCases(it: StorageCase): void {
  it('commit and read: each end is counted once, however often it is sent, with its duration and how long it waited', async (storage) => {
    await ends(storage, 1, 'completed');
    const again = ending(1);
    same(await commitOne(storage, again), 'stored', 'the same end again');
    await accept(storage, execution(2));
    await accept(storage, execution(3));
    const batch: CommitEntry[] = [
      ending(2, { duration: 1000 }),
      { ...ending(3), epoch: 7 },
      again,
      { ...starting(execution(4)), ...ending(4, { duration: 1000 }), start: execution(4) },
    ];
    same(await storage.commit(WORKER, batch), ['stored', 'fenced', 'stored', 'stored'], 'answers');
    const { counts, ensembles, duration, wait } = await numbers(storage);
    same(counts, { completed: 3, failed: 0, timed_out: 0, cancelled: 0 }, 'counts');
    same(
      ensembles.map(({ ensemble, versions }) => [ensemble, versions[0]?.ended]),
      [['orders', 3]],
      'ensembles',
    );
    same(wait, { p50: 0, p95: 0, p99: 0 }, 'waited');
    same(Math.abs((duration?.p50 ?? 0) - 1000) <= 100, true, `p50 ${duration?.p50} is a tenth off at most`);
  });

  it('read: an execution that is cancelled before it began is counted, and one that its caller cancels later at its end', async (storage) => {
    await register(storage);
    await enqueue(storage, execution(1));
    await accept(storage, execution(2));
    for (const number of [1, 2, 1])
      await storage.executions.requestCancel(executionId(number), T0 + 9, end({ status: 'cancelled', duration: 400 }));
    same(await counts(storage), 'cancelled 1', 'after the requests');
    const { duration, wait } = await numbers(storage);
    const isAbout = (ms: number | undefined, wanted: number) => Math.abs((ms ?? 0) / wanted - 1) <= 0.1;
    same(
      [isAbout(duration?.p50, 400), isAbout(wait?.p50, 499)],
      [true, true],
      'a duration of 400 ms, and a wait of 499',
    );
    await commitOne(storage, ending(2, { status: 'cancelled' }));
    same(await counts(storage), 'cancelled 2', 'after the end');
  });

  it('read and fold: errors are grouped by ensemble, code and message, without the numbers, ids and quoted texts in it', async (storage) => {
    await ends(storage, 1, 'failed', { message: 'order "a\tb" of 17 failed\nat once', at: T0 + 100 });
    await ends(storage, 2, 'failed', {
      ...{ message: 'order "c" of 4 failed\nat once', at: T0 + 300, version: 'f'.repeat(32) },
      trigger: { type: 'ensemble', parentId: executionId(9), rootId: executionId(9) },
    });
    await ends(storage, 3, 'timed_out', { message: 'order "c" of 4 failed\nat once', ensemble: 'refunds' });
    await ends(storage, 4, 'failed', { message: 'other' });
    await foldAll(storage, T0 + 1000);
    await ends(storage, 5, 'failed', { message: "order 'd' of 2.5 failed\nat once", at: T0 + 200 });
    const { errors } = await numbers(storage);
    const [first] = errors;
    same(
      errors.map(({ ensemble, message, count }) => `${ensemble}: ${message} ${count}`).sort(),
      [
        'orders: order ‹text› of ‹number› failed\nat once 3',
        'orders: other 1',
        'refunds: order ‹text› of ‹number› failed\nat once 1',
      ],
      'groups',
    );
    same(
      [first?.firstSeen, first?.lastSeen, first?.children],
      [T0 + 100, T0 + 300, 1],
      'first and last seen, children',
    );
    same([first?.firstId, first?.lastId], [executionId(1), executionId(2)], 'the first and the last');
    same(first?.version, execution(1).version, 'the version of the first');
  });

  it('read: dry runs are not counted, and executions that are deleted are', async (storage) => {
    await ends(storage, 1, 'completed', { trigger: { type: 'call', dryRun: {} } });
    await ends(storage, 2, 'failed');
    await storage.executions.delete([executionId(2)]);
    same(await counts(storage), 'failed 1', 'counts');
  });

  it('fold: minutes become hours and hours become days when they are old, and no end is lost or counted twice', async (storage) => {
    const at = [0, 30_000, MINUTE, HOUR, HOUR + MINUTE, DAY];
    for (const [i, offset] of at.entries()) await ends(storage, i + 1, 'completed', { at: T0 + offset });
    const lengths = async () =>
      [...new Set((await storage.tallies.read(ALL)).tallies.map(({ length }) => length))].sort((a, b) => a - b);
    same([await counts(storage), await lengths()], ['completed 6', []], 'before they are added up');
    await foldAll(storage, T0 + DAY);
    same([await counts(storage), await lengths()], ['completed 6', [MINUTE, HOUR]], 'after a day');
    same(await counts(storage, { since: T0, until: T0 + HOUR }), 'completed 3', 'in the first hour');
    await foldAll(storage, T0 + DAY + MINUTES_FOR + HOUR);
    await foldAll(storage, T0 + 2 * DAY + HOURS_FOR);
    same([await counts(storage), await lengths()], ['completed 6', [DAY]], 'after weeks');
    await ends(storage, 9, 'completed', { at: T0 + 100 });
    await foldAll(storage, T0 + 2 * DAY + HOURS_FOR + HOUR);
    same([await counts(storage), await lengths()], ['completed 7', [DAY]], 'with an end that comes late');
    same(await counts(storage, { since: T0, until: T0 + DAY }), 'completed 6', 'on the first day');
  });

  it('read: those of one ensemble are read alone, before they are added up and after', async (storage) => {
    await ends(storage, 1, 'completed');
    await ends(storage, 2, 'failed', { ensemble: 'refunds' });
    same(await counts(storage, { ...ALL, ensemble: 'refunds' }), 'failed 1', 'before they are added up');
    await foldAll(storage, T0 + 1000);
    same(await counts(storage, { ...ALL, ensemble: 'refunds' }), 'failed 1', 'after that');
    same(await counts(storage, { ...ALL, ensemble: 'other' }), '', 'of another one');
  });
}

/** For stores on which several workers may work at the same time. */
export function sharedTallyCases(it: StorageCase): void {
  it('commit and fold: what is ended and added up at the same time is counted once', async (storage) => {
    await register(storage);
    await Promise.all(
      Array.from({ length: 40 }, async (_, number) => {
        await ends(storage, number, number % 4 === 0 ? 'failed' : 'completed');
        await storage.tallies.fold(T0 + 1000);
      }),
    );
    same(await counts(storage), 'completed 30, failed 10', 'counts');
    await Promise.all([foldAll(storage, T0 + 1000), foldAll(storage, T0 + 1000)]);
    same(await counts(storage), 'completed 30, failed 10', 'counts at last');
  });
}

/** For stores that outlive their handle. */
export function reopenedTallyCases(it: StorageCase): void {
  it('reopen: counts are unchanged', async (storage, reopen) => {
    await ends(storage, 1, 'completed');
    await foldAll(storage, T0 + 1000);
    await ends(storage, 2, 'failed');
    same(await counts(await reopen()), 'completed 1, failed 1', 'counts');
  });
}
