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

import type { MaybePromise } from '../../../../engine/base/maybe-promise.ts';
import type { StepOfExecution } from '../../../../engine/execution/execution-store.port.ts';
import { type FlowLimit, isFair, limitId, RATE } from '../../../../engine/execution/limits/flow-limit.ts';
import {
  closeRate,
  freeOfRate,
  nextOfRate,
  type RateUse,
  UNUSED,
  useRate,
} from '../../../../engine/execution/limits/rate-window.ts';
import { type LimitState, namedId } from './limit-state.ts';
import { type KnownLimits, MAX_KNOWN, type QueueCursor } from './queue-cursor.ts';
import type { Arrival, QueueTables, QueueTurn, TakenHead, TakenSlot, Wake } from './queue-tables.ts';
import { MAX_QUEUES, nextQueues, unitOf, wakeQueues } from './queue-turns.ts';
import { type Steps, wait } from './steps.ts';
import { limitsOfQueue, takeTurns, type WaitingQueue } from './take-turns.ts';

const MIN_QUEUES = 16;

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
  const woken = [...counts.keys()].filter((id) => id.startsWith(RATE_ID));
  if (woken.length > 0) yield* wait(on.forgetWakes(woken));
  yield* wakeQueues(
    on,
    stored,
    [...counts].map(([limit, count]) => ({ limit, count })),
  );
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

type StateTables = Pick<QueueTables<never>, 'putLimits' | 'readLimits'>;

/**
 * Reads limits, and locks them. Those that were deleted, because nothing used them, are stored again.
 * @param given - their numbers; of two, and of that which the process knows, the newest counts
 */
export function* readStates(
  on: StateTables,
  stored: KnownLimits,
  ids: readonly string[],
  given: () => MaybePromise<readonly FlowLimit[]>,
): Steps<Map<string, LimitState>> {
  if (ids.length === 0) return new Map();
  const states = yield* wait(on.readLimits(ids));
  const missing = new Set(ids.filter((id) => !states.has(id)));
  if (missing.size === 0) return states;
  const limits = [...(yield* wait(given())), ...[...missing].flatMap((id) => stored.known.get(id) ?? [])];
  for (const id of missing) stored.known.delete(id);
  yield* putNewLimits(on, stored, [{ limits: limits.filter((limit) => missing.has(limitId(limit))) }]);
  return yield* wait(on.readLimits(ids));
}

/** Uses a rate for an execution. @param uses - gets what is used of it @returns false if the limit counts slots */
function isUsed(states: Map<string, LimitState>, uses: Map<string, RateUse>, limit: string, now: number): boolean {
  const state = states.get(limit);
  if (!state?.rate) return false;
  const use = useRate(state.rate, state.use, 1, now);
  states.set(limit, { ...state, use });
  uses.set(limit, use);
  return true;
}

/** Stores the slots that executions take which begin, and what they use of rates. */
export function* storeSlots(
  on: Pick<QueueTables<never>, 'putSlots' | 'putUses'>,
  states: Map<string, LimitState>,
  slots: readonly TakenSlot[],
  now: number,
): Steps<void> {
  const uses = new Map<string, RateUse>();
  for (const { limit, epoch } of slots) if (epoch > 0) isUsed(states, uses, limit, now);
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

/** Stores numbers of limits that are newer than those that the process knows. @returns those that changed */
export function* putNewLimits(
  on: Pick<QueueTables<never>, 'putLimits'>,
  { known }: KnownLimits,
  arrivals: readonly Pick<Arrival, 'limits'>[],
): Steps<readonly { readonly id: string; readonly max: number }[]> {
  const newer = new Map<string, FlowLimit>();
  for (const limit of arrivals.flatMap(({ limits }) => limits)) {
    if (isFair(limit)) continue;
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

/** Takes a slot for a step. In a transaction. @returns false if none is free, or if nobody holds the execution */
export function* takeStepSlot(
  on: StateTables & Pick<QueueTables<never>, 'putStepSlot'>,
  stored: KnownLimits,
  limit: FlowLimit,
  step: StepOfExecution,
  now: number,
): Steps<boolean> {
  yield* putNewLimits(on, stored, [{ limits: [limit] }]);
  const id = limitId(limit);
  const state = (yield* readStates(on, stored, [id], () => [limit])).get(id);
  return state !== undefined && (yield* wait(on.putStepSlot(id, step, freeOf(state, now) <= 0)));
}

/** Closes rates until an instant (Unix ms). In a transaction. */
export function* closeRates(
  on: StateTables & Pick<QueueTables<never>, 'putUses'>,
  stored: KnownLimits,
  limits: readonly FlowLimit[],
  until: number,
): Steps<void> {
  const uses = new Map<string, RateUse>();
  for (const [id, { rate, use }] of yield* readStates(on, stored, limits.map(limitId).sort(), () => limits)) {
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
  cursor.hasMore = false;
  const ids = yield* nextQueues(on, cursor, Math.min(Math.max(most, MIN_QUEUES), MAX_QUEUES));
  if (ids.length === 0) return [];
  const limitsOf = new Map(ids.map((id) => [id, limitsOfQueue(id)]));
  const limits = [...new Set([...limitsOf.values()].flat())].sort();
  const states = yield* readStates(on, cursor, limits, () => on.limitsIn(ids));
  const free = freeOfAll(states, now);
  const freeFor = (id: string) => Math.min(...(limitsOf.get(id) ?? []).map((limit) => free.get(limit) ?? 0));
  const sizes = new Map<string, number>();
  for (const id of ids) sizes.set(unitOf(id), (sizes.get(unitOf(id)) ?? 0) + 1);
  const share = Math.ceil(most / sizes.size);
  const turns = ids.flatMap((id): QueueTurn[] => {
    const slots = Math.min(freeFor(id), Math.ceil(share / (sizes.get(unitOf(id)) ?? 1)));
    return slots > 0 ? [{ id, most: slots }] : [];
  });
  const found = turns.length > 0 ? yield* wait(on.heads(turns, now)) : [];
  const rows = new Map<string, Row[]>(ids.map((id) => [id, []]));
  for (const { queue, row } of found) rows.get(queue)?.push(row);
  const queues = ids.map(
    (id): WaitingQueue<Row> => ({ id, group: unitOf(id), limits: limitsOf.get(id) ?? [], heads: rows.get(id) ?? [] }),
  );
  const { taken, blocked } = takeTurns(queues, free, most, on.hasCallerSlot);
  cursor.continueAfter(
    taken.map(({ queue }) => queue.id),
    taken.length < most ? ids.at(-1) : taken.at(-1)?.queue.id,
    blocked,
  );
  const settled = ids.map((id) => ({ id, blockedBy: blocked.get(id) ?? null }));
  if (taken.length === 0) yield* wait(on.settle(settled, now));
  const uses = new Map<string, RateUse>();
  const heads = taken.map(({ queue, head }): TakenHead<Row> => {
    const kept = on.keptOf(head);
    const keeps = kept === undefined ? undefined : limitsOfQueue(kept);
    const counted = queue.limits.filter((limit) => !isUsed(states, uses, limit, now));
    return { row: head, slots: counted.map((limit) => ({ limit, held: keeps?.includes(limit) })) };
  });
  const claimed = taken.length > 0 ? yield* wait(on.claim(heads, settled, now)) : [];
  // The worker is not registered any more: the slots that it did not take are free, and the queues stay ready.
  if (claimed.length < taken.length) return claimed;
  if (uses.size > 0) yield* wait(on.putUses(uses));
  yield* wakeForRates(on, states, blocked, now);
  // A queue that was woken for a free slot may have nothing to run: then the slot is for another queue.
  const served = new Set(taken.map(({ queue }) => queue));
  if (queues.some((queue) => queue.limits.length > 1 || !served.has(queue))) {
    // If none of them could use it, more are looked at than could: all others may wait for another limit, too.
    const least = claimed.length === 0 ? MIN_QUEUES : 1;
    const wakes = limits.flatMap((limit): Wake[] => {
      const slots = free.get(limit) ?? 0;
      return slots > 0 ? [{ limit, count: Math.max(slots, least) }] : [];
    });
    if (wakes.length > 0) cursor.hasMore = yield* wakeQueues(on, cursor, wakes);
  }
  return claimed;
}
