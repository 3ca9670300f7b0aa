/**
 * Claims executions that run under limits, from the queues in which they wait. It is written once for both databases: each step is an
 * answer or a promise of one (`wait`), so that SQLite does all of them in one turn of the event loop.
 *
 * - A queue is `ready` if its first execution may be due and may find free slots. `arrivals` makes queues ready again. A claim looks at
 *   ready queues in the order of their ids, after the one that it looked at last, so that queues take turns.
 * - A claim locks its queues, then their limits in the order of their ids, and counts the slots that are taken after that. Nobody else
 *   takes one meanwhile, and an end that gives one back needs no lock.
 * - A queue whose limit is full is `blocked_by` it, until an execution under that limit is freed, or until more may begin under a rate.
 */

import { isPromise, type MaybePromise } from '../../../../engine/base/maybe-promise.ts';
import { type FlowLimit, type ListedExecution, limitId, RATE } from '../../../../engine/execution/limits/flow-limit.ts';
import {
  closeRate,
  freeOfRate,
  nextOfRate,
  type RateUse,
  UNUSED,
  useRate,
} from '../../../../engine/execution/limits/rate-window.ts';
import { type LimitState, namedId } from './limit-state.ts';
import { limitsOfQueue, takeTurns, type WaitingQueue } from './take-turns.ts';

/** Which queue is to be looked at. */
export interface Arrival {
  readonly queue: string;
  readonly limits: readonly FlowLimit[];
  /** An execution of the queue gave its slots back, or more may begin under a rate. Otherwise one of the queue is due. */
  readonly freed: boolean;
  /** The id of an execution that should have begun by now. */
  readonly late?: string | undefined;
}

/** The next executions of a queue. */
export interface QueueTurn {
  readonly id: string;
  /** How many of them are asked for. */
  readonly most: number;
}

/** How many queues that a limit blocks are made ready. */
export interface Wake {
  readonly limit: string;
  readonly count: number;
}

/** A limit of a queue. */
export interface QueueLimit {
  readonly queue: string;
  readonly limit: string;
  /** Whether other queues may have the limit. */
  readonly isShared: boolean;
}

export interface TakenSlot {
  readonly limit: string;
  readonly execution: string;
  /** 0: the execution is queued, and only listed. */
  readonly epoch: number;
  /** It keeps the slot while it waits. */
  readonly held?: boolean | undefined;
  /** See `isListed`. */
  readonly listed?: boolean | undefined;
}

/** What the database does. Ids are as they are, not as columns hold them. @param Row - of an execution */
export interface QueueTables<Row> {
  /** Removes up to 1,000 arrivals that are due. */
  takeArrivals(now: number): MaybePromise<readonly Arrival[]>;
  /** Makes queues ready that no limit blocks, and creates them. In the order of their ids. */
  putQueues(ids: readonly string[]): MaybePromise<unknown>;
  /** Stores numbers of limits, or of their names, unless a newer one is stored. In the order of their ids. @returns the ids of those that changed */
  putLimits(limits: readonly FlowLimit[], areNamed?: boolean): MaybePromise<readonly string[]>;
  /** Locks limits in the order of their ids. A claim that is under way has ended then, and what it has blocked can be seen. */
  lock(limits: readonly string[]): MaybePromise<unknown>;
  /** Makes queues ready that a limit blocks, those first that are blocked longest. */
  wake(wakes: readonly Wake[]): MaybePromise<unknown>;
  /** Locks ready queues that nobody else has locked, after one, in the order of their ids. */
  lockReady(after: string, most: number): MaybePromise<readonly string[]>;
  /** Makes queues ready that limits of these names block. */
  wakeNamed(names: readonly string[]): MaybePromise<unknown>;
  /**
   * Locks limits in the order of their ids, removes slots that are taken no more, and counts the others. The number of the name counts
   * if it is newer.
   */
  readLimits(limits: readonly string[]): MaybePromise<Map<string, LimitState>>;
  /** Stores what was used of rates. */
  putUses(uses: ReadonlyMap<string, RateUse>): MaybePromise<unknown>;
  /** What waits for rates is looked at again at an instant (Unix ms). */
  wakeLater(wakes: readonly { readonly limit: FlowLimit; readonly at: number }[]): MaybePromise<unknown>;
  /** The executions under limits that list them, which have not ended and are not cancelled, in the order of their acceptance. */
  list(limits: readonly string[]): MaybePromise<ReadonlyMap<string, readonly ListedExecution[]>>;
  /** Requests the cancellation of executions. Those that nobody holds leave their queues, and are due at once. */
  cancel(executions: readonly string[], now: number): MaybePromise<unknown>;
  /** Those of these executions that have not begun leave their queues, and are due at once. */
  expire(executions: readonly string[], now: number): MaybePromise<unknown>;
  /** The next executions that are due, without those of versions that the worker can't run. */
  heads(
    turns: readonly QueueTurn[],
    now: number,
  ): MaybePromise<readonly { readonly queue: string; readonly row: Row }[]>;
  /** Those queues in which something is due, or whose limit blocks a queue; of those that share a limit also if any queue is ready. */
  waitedFor(asked: readonly QueueLimit[], now: number): MaybePromise<ReadonlySet<string>>;
  /** Whether the caller of an execution has a free slot, which it takes then. */
  hasCallerSlot(row: Row): boolean;
  /** @returns the executions as a claim returns them */
  claim(rows: readonly Row[], now: number): MaybePromise<readonly Row[]>;
  /** An execution that was claimed: the queue from which it was, and the limits whose slots it keeps until its end, as `keptUntilEnd`. */
  idOf(
    row: Row,
  ): Pick<TakenSlot, 'execution' | 'epoch'> & { readonly queue: string; readonly kept?: string | undefined };
  putSlots(slots: readonly TakenSlot[]): MaybePromise<unknown>;
  /** Queues that are blocked, or in which nothing is due any more, are not ready any more. One in which nothing is due is not blocked. */
  settle(
    queues: readonly { readonly id: string; readonly blockedBy: string | null }[],
    now: number,
  ): MaybePromise<unknown>;
}

/** The numbers of limits that a process knows to be stored. */
export class KnownLimits {
  readonly known = new Map<string, FlowLimit>();

  /** Does work that stores numbers of limits. If it fails, they are not stored. */
  during<T extends MaybePromise<unknown>>(work: () => T): T {
    const forget = (error: unknown): never => {
      this.known.clear();
      throw error;
    };
    try {
      const done = work();
      return isPromise(done) ? (done.catch(forget) as T) : done;
    } catch (error) {
      return forget(error);
    }
  }
}

/** How long queues that are ready are left alone when they had nothing for a process, in ms. */
const QUIET_MS = 50;

/** A process that claims from queues: where it stands. */
export class QueueCursor extends KnownLimits {
  /** The last queue that it looked at. */
  after = '';
  /** Unix ms: until then, the queues that are ready have nothing for the process. */
  quietUntil = 0;
  #hasOddPlace = false;

  /** How many of the places of a claim are for the queues: half, and the odd one every second time. */
  share(places: number): number {
    this.#hasOddPlace = !this.#hasOddPlace;
    return this.#hasOddPlace ? Math.ceil(places / 2) : Math.floor(places / 2);
  }

  /** @param claimed - how many executions a claim found in the queues at this instant (Unix ms) */
  found(claimed: number, now: number): void {
    this.quietUntil = claimed > 0 ? 0 : now + QUIET_MS;
  }
}

const MIN_QUEUES = 16;
const MAX_QUEUES = 256;
const MAX_KNOWN = 20_000;

export type Steps<T> = Generator<MaybePromise<unknown>, T, unknown>;

export function* wait<T>(value: MaybePromise<T>): Steps<T> {
  return (yield value) as T;
}

/** Runs steps whose answers are all there at once. */
export function runNow<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (!step.done) step = steps.next(step.value);
  return step.value;
}

export async function runLater<T>(steps: Steps<T>): Promise<T> {
  let step = steps.next();
  while (!step.done) step = steps.next(isPromise(step.value) ? await step.value : step.value);
  return step.value;
}

/** Makes the queues ready in which something has become due. In a transaction of its own. */
export function* readArrivals<Row>(on: QueueTables<Row>, stored: KnownLimits, now: number): Steps<void> {
  const arrivals = yield* wait(on.takeArrivals(now));
  if (arrivals.length === 0) return;
  const late = arrivals.flatMap((one) => one.late ?? []);
  if (late.length > 0) yield* wait(on.expire(late, now));
  const due = arrivals.filter(({ freed, late }) => !freed && late === undefined);
  if (due.length > 0) yield* wait(on.putQueues([...new Set(due.map(({ queue }) => queue))].sort()));
  const counts = new Map<string, number>();
  for (const { queue, freed, limits } of arrivals) {
    if (!freed) continue;
    for (const limit of limitsOfQueue(queue)) {
      const rate = limit.startsWith(RATE_ID) ? limits.find((one) => limitId(one) === limit) : undefined;
      counts.set(limit, rate ? Math.min(rate.max, MAX_QUEUES) : (counts.get(limit) ?? 0) + 1);
    }
  }
  const changed = yield* putNewLimits(on, stored, due);
  for (const { id, max } of changed) counts.set(id, max);
  if (counts.size === 0) return;
  yield* wait(on.lock([...counts.keys()]));
  yield* wait(on.wake([...counts].map(([limit, count]) => ({ limit, count }))));
}

/** What the ids of rates begin with. */
const RATE_ID = JSON.stringify([RATE]).slice(0, -2);

/** How many executions may begin under a limit. */
function freeOf({ max, rate, use, taken }: LimitState, now: number): number {
  return rate ? freeOfRate(rate, use, now) : max - taken;
}

export function freeOfAll(states: ReadonlyMap<string, LimitState>, now: number): Map<string, number> {
  return new Map([...states].map(([id, state]) => [id, freeOf(state, now)]));
}

/** Stores the slots that executions take which begin or continue, and what they use of rates. */
export function* storeSlots(
  on: Pick<QueueTables<never>, 'putSlots' | 'putUses'>,
  states: Map<string, LimitState>,
  slots: readonly TakenSlot[],
  now: number,
): Steps<void> {
  const uses = new Map<string, RateUse>();
  for (const { limit, epoch } of slots) {
    const state = states.get(limit);
    if (epoch === 0 || !state?.rate) continue;
    const use = useRate(state.rate, state.use, 1, now);
    states.set(limit, { ...state, use });
    uses.set(limit, use);
  }
  if (uses.size > 0) yield* wait(on.putUses(uses));
  const taken = slots.filter(({ limit, listed }) => listed || !uses.has(limit));
  if (taken.length > 0) yield* wait(on.putSlots(taken));
}

/** Queues that a rate blocks are ready again when more may begin under it. */
function* wakeForRates<Row>(
  on: QueueTables<Row>,
  states: ReadonlyMap<string, LimitState>,
  blocked: ReadonlyMap<string, string>,
  now: number,
): Steps<void> {
  const wakes = [...new Set(blocked.values())].flatMap((id) => {
    const { rate, use = UNUSED, max = 1 } = states.get(id) ?? {};
    if (!rate || use.wakesAt > now) return [];
    const at = Math.max(nextOfRate(rate, use, now), now + 1);
    const [name, key] = JSON.parse(id) as [string, string];
    return [{ id, at, use: { ...use, wakesAt: at }, limit: { name, key, max, since: 0 } }];
  });
  if (wakes.length === 0) return;
  yield* wait(on.putUses(new Map(wakes.map(({ id, use }) => [id, use]))));
  yield* wait(on.wakeLater(wakes));
}

export function* putNewLimits(
  on: Pick<QueueTables<never>, 'putLimits'>,
  { known }: KnownLimits,
  arrivals: readonly Pick<Arrival, 'limits'>[],
): Steps<readonly { readonly id: string; readonly max: number }[]> {
  const newer = new Map<string, FlowLimit>();
  for (const limit of arrivals.flatMap(({ limits }) => limits)) {
    const id = limitId(limit);
    const before = newer.get(id) ?? known.get(id);
    if (!before || before.since < limit.since) newer.set(id, limit);
  }
  if (newer.size === 0) return [];
  const sorted = [...newer.keys()].sort();
  const changed = yield* wait(on.putLimits(sorted.map((id) => newer.get(id) as FlowLimit)));
  if (known.size > MAX_KNOWN) known.clear();
  for (const [id, limit] of newer) known.set(id, limit);
  return changed.map((id) => ({ id, max: newer.get(id)?.max ?? 1 }));
}

/** Stores numbers for all keys of limits. In a transaction. */
export function* putNamedLimits(
  on: Pick<QueueTables<never>, 'putLimits' | 'wakeNamed'>,
  limits: readonly FlowLimit[],
): Steps<void> {
  const named = [...new Map(limits.map((limit) => [limit.name, limit])).values()].sort((a, b) =>
    a.name < b.name ? -1 : 1,
  );
  const changed = yield* wait(on.putLimits(named, true));
  const names = named.filter(({ name }) => changed.includes(namedId(name))).map(({ name }) => name);
  if (names.length > 0) yield* wait(on.wakeNamed(names));
}

/** Closes rates until an instant (Unix ms). In a transaction. */
export function* closeRates(
  on: Pick<QueueTables<never>, 'readLimits' | 'putUses'>,
  limits: readonly Pick<FlowLimit, 'name' | 'key'>[],
  until: number,
): Steps<void> {
  const uses = new Map<string, RateUse>();
  for (const [id, { rate, use }] of yield* wait(on.readLimits(limits.map(limitId).sort()))) {
    const closed = rate && closeRate(use, until);
    if (closed) uses.set(id, closed);
  }
  if (uses.size > 0) yield* wait(on.putUses(uses));
}

/** Claims up to `most` executions. In a transaction, which is repeated if it fails. @returns the rows of {@link QueueTables.claim} */
export function* claimFromQueues<Row>(
  on: QueueTables<Row>,
  cursor: QueueCursor,
  now: number,
  most: number,
): Steps<readonly Row[]> {
  const size = Math.min(Math.max(most, MIN_QUEUES), MAX_QUEUES);
  let ids = yield* wait(on.lockReady(cursor.after, size));
  if (ids.length < size && cursor.after !== '') {
    const before = yield* wait(on.lockReady('', size - ids.length));
    const first = new Set(ids);
    ids = [...ids, ...before.filter((id) => !first.has(id))];
  }
  cursor.after = ids.at(-1) ?? '';
  if (ids.length === 0) return [];
  const limitsOf = new Map(ids.map((id) => [id, limitsOfQueue(id)]));
  const limits = [...new Set([...limitsOf.values()].flat())].sort();
  const states = yield* wait(on.readLimits(limits));
  const free = freeOfAll(states, now);
  const freeFor = (id: string) => Math.min(...(limitsOf.get(id) ?? []).map((limit) => free.get(limit) ?? 0));
  const share = Math.ceil(most / ids.length);
  const turns = ids.flatMap((id): QueueTurn[] => {
    const slots = Math.min(freeFor(id), share);
    return slots > 0 ? [{ id, most: slots }] : [];
  });
  const found = turns.length > 0 ? yield* wait(on.heads(turns, now)) : [];
  const heads = new Map<string, Row[]>(ids.map((id) => [id, []]));
  for (const { queue, row } of found) heads.get(queue)?.push(row);
  const queues = ids.map(
    (id): WaitingQueue<Row> => ({ id, limits: limitsOf.get(id) ?? [], heads: heads.get(id) ?? [] }),
  );
  const { taken, blocked } = takeTurns(queues, free, most, on.hasCallerSlot);
  const claimed =
    taken.length > 0
      ? yield* wait(
          on.claim(
            taken.map(({ head }) => head),
            now,
          ),
        )
      : [];
  const slots = claimed.flatMap((row) => {
    const { queue, kept, ...one } = on.idOf(row);
    const keeps = kept === undefined ? undefined : limitsOfQueue(kept);
    return limitsOfQueue(queue).map((limit): TakenSlot => ({ limit, ...one, held: keeps?.includes(limit) }));
  });
  if (slots.length > 0) yield* storeSlots(on, states, slots, now);
  // The worker is not registered any more: the slots that it did not take are free, and the queues stay ready.
  if (claimed.length < taken.length) return claimed;
  yield* wait(
    on.settle(
      ids.map((id) => ({ id, blockedBy: blocked.get(id) ?? null })),
      now,
    ),
  );
  yield* wakeForRates(on, states, blocked, now);
  // A queue that was woken for a free slot may have nothing to run: then the slot is for another queue.
  const served = new Set(taken.map(({ queue }) => queue));
  if (queues.some((queue) => queue.limits.length > 1 || !served.has(queue))) {
    const wakes = limits
      .map((limit): Wake => ({ limit, count: free.get(limit) ?? 0 }))
      .filter(({ count }) => count > 0);
    if (wakes.length > 0) yield* wait(on.wake(wakes));
  }
  return claimed;
}
