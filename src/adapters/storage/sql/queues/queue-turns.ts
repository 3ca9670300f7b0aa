/** Which queues are next: queues without a group and groups take turns, and so do the queues of a group. */

import { AFTER_GROUP, FAIR_QUEUES, groupOf } from '../../../../engine/execution/limits/flow-limit.ts';
import type { KnownLimits, QueueCursor } from './queue-cursor.ts';
import type { QueueTables, Wake } from './queue-tables.ts';
import { type Steps, wait } from './steps.ts';

/** How many queues are looked at, or woken, at once. */
export const MAX_QUEUES = 256;

/** Makes queues ready that limits block. Those of groups take turns. @returns whether any became ready */
export function* wakeQueues(
  on: Pick<QueueTables<never>, 'wake' | 'groups' | 'lockOfGroups' | 'makeReady'>,
  stored: KnownLimits,
  wakes: readonly Wake[],
): Steps<boolean> {
  const { turns } = stored;
  const { limits, isAny } = yield* wait(on.wake(wakes));
  let areWoken = isAny;
  for (const limit of limits) {
    const count = Math.min(wakes.find((wake) => wake.limit === limit)?.count ?? 1, MAX_QUEUES);
    const after = turns.get(limit) ?? '';
    const later = yield* groupsAfter(on, limit, after, count);
    const groups = after === '' ? later : [...later, ...(yield* firstGroups(on, limit, later, count - later.length))];
    const ids = yield* queuesOfGroups(on, stored, groups, limit, Math.ceil(count / Math.max(groups.length, 1)));
    // Each group is looked at once before one is for the second time.
    const woken = ids.slice(0, count);
    stored.forgetTurns();
    for (const id of woken) {
      const group = groupOf(id) ?? '';
      turns.set(limit, group + AFTER_GROUP);
      turns.set(limit + group, id);
    }
    if (woken.length === 0) continue;
    areWoken = true;
    yield* wait(on.makeReady(woken));
  }
  return areWoken;
}

/** Groups after a place, in order. */
function* groupsAfter(
  on: Pick<QueueTables<never>, 'groups'>,
  blockedBy: string | undefined,
  after: string,
  most: number,
): Steps<readonly string[]> {
  if (most <= 0) return [];
  return (yield* wait(on.groups(blockedBy, after, most))).map((id) => groupOf(id) ?? '');
}

/** Groups from the first one on, without those that are known. */
function* firstGroups(
  on: Pick<QueueTables<never>, 'groups'>,
  blockedBy: string | undefined,
  known: readonly string[],
  most: number,
): Steps<readonly string[]> {
  if (most <= 0) return [];
  const first = yield* groupsAfter(on, blockedBy, '', known.length + most);
  return first.filter((group) => !known.includes(group)).slice(0, most);
}

/** Locks queues of groups. @returns one of each group, then a second one of each, and so on */
function* queuesOfGroups(
  on: Pick<QueueTables<never>, 'lockOfGroups'>,
  { turns }: KnownLimits,
  groups: readonly string[],
  blockedBy: string | undefined,
  most: number,
): Steps<readonly string[]> {
  if (groups.length === 0) return [];
  const asked = groups.map((group) => ({ group, after: turns.get((blockedBy ?? '') + group) ?? '' }));
  const found = new Map<string, string[]>(groups.map((group) => [group, []]));
  for (const id of yield* wait(on.lockOfGroups(blockedBy, asked, most))) found.get(groupOf(id) ?? '')?.push(id);
  return Array.from({ length: most }, (_, nr) => [...found.values()].flatMap((ids) => ids[nr] ?? [])).flat();
}

/** What has one turn: a queue, or the group of a queue. */
export function unitOf(queue: string): string {
  return groupOf(queue) ?? queue;
}

/** Locks the ready queues that are next: those after the last turn, then from the first one on. */
export function* nextQueues<Row>(on: QueueTables<Row>, cursor: QueueCursor, size: number): Steps<readonly string[]> {
  const { after } = cursor;
  const plain = yield* wait(on.lockReady(after, size));
  const hasGroups = plain.at(-1) === FAIR_QUEUES;
  const found = hasGroups ? plain.slice(0, -1) : [...plain];
  const later = hasGroups ? yield* groupsAfter(on, undefined, after, size - found.length) : [];
  const left = size - found.length - later.length;
  const again = left > 0 && after !== '' ? yield* wait(on.lockReady('', left)) : [];
  const first = hasGroups && after > FAIR_QUEUES ? yield* firstGroups(on, undefined, later, left - again.length) : [];
  const groups = [...later, ...first];
  const each = Math.max(1, Math.floor(size / (found.length + groups.length)));
  const ids = yield* queuesOfGroups(on, cursor, groups, undefined, each);
  const before = new Set(first);
  const [ofLater, ofFirst] = [false, true].map((isFirst) => ids.filter((id) => before.has(unitOf(id)) === isFirst));
  const plainAgain = again.filter((id) => id !== FAIR_QUEUES);
  return [...new Set([...found, ...(ofLater ?? []), ...plainAgain, ...(ofFirst ?? [])])];
}
