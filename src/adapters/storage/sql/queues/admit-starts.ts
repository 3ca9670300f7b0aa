/** What becomes of executions that begin under limits: they take slots, are queued, or are too many. */

import {
  type FlowLimit,
  groupOf,
  isFair,
  isListed,
  isQueueFull,
  limitId,
  queueAfterBegin,
  queueOf,
  SHARED,
  tooMany,
} from '../../../../engine/execution/limits/flow-limit.ts';
import type { CommitEntry } from '../../../../engine/execution/stored-execution.ts';
import { freeOfAll, putNewLimits, readStates, storeSlots } from './claim-queues.ts';
import type { LimitState } from './limit-state.ts';
import type { KnownLimits } from './queue-cursor.ts';
import type { QueueLimit, QueueTables, TakenSlot } from './queue-tables.ts';
import { wakeQueues } from './queue-turns.ts';
import { type Steps, wait } from './steps.ts';

/** An execution that is started. */
export interface LimitedStart {
  readonly id: string;
  /** Without those that limit nothing. */
  readonly limits: readonly FlowLimit[];
  readonly queue: string;
  /** It is queued also if there are slots. */
  readonly isQueued: boolean;
}

export type Admission = 'begins' | 'queued' | 'slots-taken' | 'queue-full';

/** What was decided about starts, with their limits locked. */
export interface Admitted {
  readonly answers: readonly Admission[];
  readonly states: Map<string, LimitState>;
}

type StartTables = Omit<QueueTables<never>, 'heads' | 'claim'>;

/** @returns undefined for an entry about which no limit decides: it starts nothing under limits, or it is queued and never one too many */
export function limitedStart({ executionId: id, start, release }: CommitEntry): LimitedStart | undefined {
  const { limits } = start ?? {};
  if (!limits || (release && !limits.some(isListed))) return undefined;
  const counted = limits.filter((limit) => !isFair(limit));
  if (counted.length === 0) return undefined;
  return { id, limits: counted, queue: queueOf(limits), isQueued: release !== undefined };
}

/**
 * Decides about starts, in the transaction that stores them. One begins if all its limits have a free slot for which nobody waits. What
 * they take is stored after them, by {@link storeStarts}.
 * @param starts - in the order in which they take slots
 */
export function* admitStarts(
  on: StartTables,
  stored: KnownLimits,
  starts: readonly LimitedStart[],
  now: number,
): Steps<Admitted> {
  const changed = yield* putNewLimits(on, stored, starts);
  const all = starts.flatMap(({ limits }) => limits);
  const states = yield* readStates(on, stored, [...new Set(all.map(limitId))].sort(), () => all);
  const free = freeOfAll(states, now);
  if (changed.length > 0)
    yield* wakeQueues(
      on,
      stored,
      changed.map(({ id, max }) => ({ limit: id, count: max })),
    );
  const asked = new Map<string, QueueLimit>();
  for (const { limits, isQueued, queue } of starts) {
    if (isQueued) continue;
    const isShared =
      limits.length > 1 || groupOf(queue) !== undefined || limits.some(({ name }) => name.startsWith(SHARED));
    for (const one of limits) asked.set(`${queue} ${limitId(one)}`, { queue, limit: limitId(one), isShared });
  }
  const waitedFor = asked.size > 0 ? yield* wait(on.waitedFor([...asked.values()], now)) : NONE;
  const listedIds = [...new Set(all.filter(isListed).map(limitId))];
  const listed = new Map(listedIds.length > 0 ? yield* wait(on.list(listedIds)) : []);
  const answers = starts.map(({ id, limits, queue, isQueued }): Admission => {
    const isFree = limits.every((limit) => (free.get(limitId(limit)) ?? 0) > 0);
    const begins = !isQueued && isFree && !waitedFor.has(queue);
    const isFull = ({ limit, at }: { readonly limit: FlowLimit; readonly at: string }) =>
      isQueueFull(limit, free.get(at) ?? 0, listed.get(at) ?? []);
    const known = limits.map((limit) => ({ limit, at: limitId(limit) }));
    if (!begins && known.some(isFull)) return 'queue-full';
    if (!begins && !isQueued) return 'slots-taken';
    for (const { limit, at } of known) {
      if (begins) free.set(at, (free.get(at) ?? 0) - 1);
      if (isListed(limit)) listed.set(at, [...(listed.get(at) ?? []), { id, isQueued: !begins }]);
    }
    return begins ? 'begins' : 'queued';
  });
  return { answers, states };
}

const NONE: ReadonlySet<string> = new Set();

/** Stores what starts take that were stored, and cancels those executions that are too many now. @returns whether it cancelled any */
export function* storeStarts(
  on: StartTables,
  states: Map<string, LimitState>,
  starts: readonly (LimitedStart & { readonly begins: boolean })[],
  now: number,
): Steps<boolean> {
  const slots = starts.flatMap(({ id, limits, begins }) =>
    limits.flatMap((limit): readonly TakenSlot[] => {
      const listed = isListed(limit);
      const one = { limit: limitId(limit), execution: id, epoch: begins ? 1 : 0, listed, held: limit.hold };
      return begins || listed ? [one] : [];
    }),
  );
  if (slots.length > 0) yield* storeSlots(on, states, slots, now);
  const rules = new Map(
    starts.flatMap(({ limits }) =>
      limits.filter(({ over }) => over && over !== 'refuse').map((one) => [limitId(one), one]),
    ),
  );
  if (rules.size === 0) return false;
  const ids = [...rules.keys()].sort();
  const free = freeOfAll(yield* wait(on.readLimits(ids)), now);
  const listed = yield* wait(on.list(ids));
  const gone = ids.flatMap((id) => tooMany(rules.get(id) as FlowLimit, free.get(id) ?? 0, listed.get(id) ?? []));
  if (gone.length === 0) return false;
  yield* wait(on.cancel([...new Set(gone)].sort(), now));
  return true;
}

/** The queue of an execution under limits when it is started. @param begins - it takes its slots at once */
export function queueAtStart(limits: readonly FlowLimit[], begins: boolean): string | undefined {
  return begins ? queueAfterBegin(limits) : queueOf(limits);
}

/** The queue after its begin, if that differs. Empty: none. */
export function laterQueue(limits: readonly FlowLimit[]): string | undefined {
  const later = queueAfterBegin(limits) ?? '';
  return later === queueOf(limits) ? undefined : later;
}
