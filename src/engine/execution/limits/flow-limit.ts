/**
 * The limits that an execution runs under: how many executions with the same limit and key may be held at once, or may begin within a
 * time, over all processes.
 */

import type { Json } from '../../base/json/json.ts';
import { describeValue } from '../../base/wording.ts';

/** What becomes of executions that are too many. */
export const OVER: readonly ('queue' | OverLimit)[] = [
  'queue',
  'refuse',
  'cancel-running',
  'keep-newest',
  'keep-oldest',
];
/** The same for a limit: without it, they are queued. */
export type OverLimit = 'refuse' | 'cancel-running' | 'keep-newest' | 'keep-oldest';

/** A limit, as an execution was accepted with it. */
export interface FlowLimit {
  /** Of the ensemble, or `shared/` and that of the shared limit. An ensemble with several limits adds their place, such as `orders[1]`. */
  readonly name: string;
  /** Executions with different keys don't count together. Empty: all count together. */
  readonly key: string;
  /** How many may be held at once, or may begin within `period`: 1 or more. */
  readonly max: number;
  /** Unix ms at which the process that gave `max` read the definition: of two processes, the later one decides. */
  readonly since: number;
  /** ms. Absent: the limit is for executions that are held. */
  readonly period?: number | undefined;
  /** With `period`: how many may begin at the same time. After that, they begin at equal intervals. Absent: `max`. */
  readonly burst?: number | undefined;
  /** With `period`: an answer that asks to wait closes it until then. */
  readonly learn?: true | undefined;
  /** An execution keeps its slot while it waits, until it ends. */
  readonly hold?: true | undefined;
  readonly over?: OverLimit | undefined;
  /** How many executions may be queued for the limit. Absent: any number. */
  readonly queued?: number | undefined;
}

/** What the names of shared limits begin with, which the name of no ensemble does. */
export const SHARED = 'shared/';
/** What the names of the limits of single agents begin with. */
export const AGENT = 'agent/';
/** What the names of rates begin with. */
export const RATE = 'rate/';

/**
 * What the names begin with that say in whose turn an execution begins. They limit nothing. As the first ones of a queue they make the
 * queues of a group, such as a tenant, follow each other; and those of all groups follow the other queues.
 */
export const FAIR = '~fair/';
/** What the ids of queues in groups begin with. */
export const FAIR_QUEUES = JSON.stringify([FAIR]).slice(0, -2);

export function isFair({ name }: Pick<FlowLimit, 'name'>): boolean {
  return name.startsWith(FAIR);
}

/** The group of a queue: what its id and those of the others in the group begin with. Undefined: none. The keys of groups have no quotes. */
export function groupOf(queue: string): string | undefined {
  return queue.startsWith(FAIR_QUEUES) ? queue.slice(0, queue.indexOf(GROUP_END) + GROUP_END.length) : undefined;
}
/** What the name of a group ends with. */
export const GROUP_END = '"],';
/** Follows the name of a group in a text that comes after all ids of the group: there, an id has `[`. */
export const AFTER_GROUP = '\\';

/** The name of a limit for people: that of its ensemble, or of the shared limit. */
export function shownName(name: string): string {
  for (const kind of [SHARED, AGENT, RATE]) if (name.startsWith(kind)) return name.slice(kind.length);
  return name;
}

/** The longest key. */
const MAX_KEY = 256;

/** @throws what is wrong with the value of a key, as text */
export function readKey(value: Json): string {
  if (value === null || value === '' || typeof value === 'object')
    throw `must be a text, a number or a boolean for each execution, not ${describeValue(value)}`;
  const key = String(value);
  if (key.length > MAX_KEY) throw `has ${key.length} characters; a key has at most ${MAX_KEY}`;
  return key;
}
/** The largest number that may be held at once under one key. */
export const MAX_HELD_AT_ONCE = 100_000;
/** How many starts one execution takes at most. */
export const MAX_BATCH = 1000;
/** The highest priority. */
export const MAX_PRIORITY = 10;
/** How much one level of priority counts, in ms of waiting. */
export const PRIORITY_MS = 60_000;
/** The largest number that may be queued under a limit that bounds it. */
export const MAX_QUEUE_LIMIT = 10_000;

/** Identifies a limit with its key in a store. */
export function limitId({ name, key }: Pick<FlowLimit, 'name' | 'key'>): string {
  return JSON.stringify([name, key]);
}

/** The queue of an execution: those with the same limits and keys wait in one, the longest due first. */
export function queueOf(limits: readonly Pick<FlowLimit, 'name' | 'key'>[]): string {
  return limits.map(limitId).join();
}

/**
 * The queue of an execution that has begun: it has used its rates, and has the slots that it keeps. Undefined without any other limit:
 * it needs none.
 */
export function queueAfterBegin(limits: readonly FlowLimit[]): string | undefined {
  const needed = limits.filter(({ period, hold }) => period === undefined && !hold);
  return needed.length === 0 ? undefined : queueOf(needed);
}

/** The limits whose slots an execution keeps until its end, in the form of a queue. Undefined: none. */
export function keptUntilEnd(limits: readonly FlowLimit[]): string | undefined {
  const kept = limits.filter(({ hold }) => hold);
  return kept.length === 0 ? undefined : queueOf(kept);
}

/** Whether a store lists the executions under a limit that have not ended: what is too many is found among them. */
export function isListed({ over, queued }: FlowLimit): boolean {
  return over !== undefined || queued !== undefined;
}

/** An execution under a limit, which has not ended and is not cancelled. */
export interface ListedExecution {
  readonly id: string;
  /** It has not begun. */
  readonly isQueued: boolean;
}

/** Whether a start that is one too many is refused. */
export function mayRefuse({ over, queued }: FlowLimit): boolean {
  return queued !== undefined && (over === undefined || over === 'refuse');
}

/** Whether one more execution may neither begin nor be queued. @param free - how many could begin now */
export function isQueueFull(limit: FlowLimit, free: number, listed: readonly ListedExecution[]): boolean {
  const { queued = 0 } = limit;
  return mayRefuse(limit) && listed.filter(({ isQueued }) => isQueued).length >= Math.max(free, 0) + queued;
}

/**
 * The ids of the executions that are cancelled, now that one more was accepted.
 * @param free - how many could begin now @param listed - in the order in which they were accepted, with the new one
 */
export function tooMany({ max, over, queued = 1 }: FlowLimit, free: number, listed: readonly ListedExecution[]) {
  const ids = (of: readonly ListedExecution[]) => of.map(({ id }) => id);
  if (over === 'cancel-running') return ids(listed.slice(0, Math.max(listed.length - max, 0)));
  if (over !== 'keep-newest' && over !== 'keep-oldest') return [];
  const waiting = listed.filter(({ isQueued }) => isQueued);
  const most = Math.max(free, 0) + queued;
  if (waiting.length <= most) return [];
  return ids(over === 'keep-newest' ? waiting.slice(0, waiting.length - most) : waiting.slice(most));
}
