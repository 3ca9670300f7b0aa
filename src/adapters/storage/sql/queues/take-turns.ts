/** Which of the executions that wait in queues are claimed: the queues take turns, and each execution needs a free slot of all its limits. */

import { isFair, limitId } from '../../../../engine/execution/limits/flow-limit.ts';

export interface WaitingQueue<Head> {
  readonly id: string;
  /** Queues of a group have one turn together. */
  readonly group: string;
  /** The ids of its limits. */
  readonly limits: readonly string[];
  /** The executions at its front that are due, in order. */
  readonly heads: readonly Head[];
}

export interface Turns<Head> {
  readonly taken: readonly { readonly queue: WaitingQueue<Head>; readonly head: Head }[];
  /** By the id of a queue: the limit that has no free slot for its next execution. */
  readonly blocked: ReadonlyMap<string, string>;
}

/** The ids of the limits of a queue, by its id, without those that limit nothing. */
export function limitsOfQueue(id: string): readonly string[] {
  return (JSON.parse(`[${id}]`) as [string, string][]).flatMap(([name, key]) =>
    isFair({ name }) ? [] : [limitId({ name, key })],
  );
}

interface Turn<Head> {
  readonly queue: WaitingQueue<Head>;
  next: number;
}

/**
 * @param free - the free slots by limit. What is taken is subtracted
 * @param most - how many executions are taken at most
 * @param accept - whether an execution may be taken for other reasons. One that may not is passed over
 */
export function takeTurns<Head>(
  queues: readonly WaitingQueue<Head>[],
  free: Map<string, number>,
  most: number,
  accept: (head: Head) => boolean,
): Turns<Head> {
  const taken: Turns<Head>['taken'][number][] = [];
  const blocked = new Map<string, string>();
  const isFull = (limit: string) => (free.get(limit) ?? 0) <= 0;
  const take = (turn: Turn<Head>): boolean => {
    const { queue } = turn;
    if (queue.limits.some(isFull)) return false;
    let head = queue.heads[turn.next++];
    while (head !== undefined && !accept(head)) head = queue.heads[turn.next++];
    if (head === undefined) return false;
    taken.push({ queue, head });
    for (const limit of queue.limits) free.set(limit, (free.get(limit) ?? 0) - 1);
    return true;
  };
  const groups = new Map<string, Turn<Head>[]>();
  for (const queue of queues) {
    const turn = { queue, next: 0 };
    const same = groups.get(queue.group);
    if (same) same.push(turn);
    else groups.set(queue.group, [turn]);
  }
  let open = [...groups.values()];
  while (open.length > 0 && taken.length < most) {
    open = open.filter((turns) => {
      // The first queue of the group that has an execution. It is the last one at the next turn.
      for (let turn = turns.shift(); turn && taken.length < most; turn = turns.shift()) {
        if (!take(turn)) continue;
        turns.push(turn);
        return true;
      }
      return false;
    });
  }
  for (const { id, limits } of queues) {
    const full = limits.find(isFull);
    if (full !== undefined) blocked.set(id, full);
  }
  return { taken, blocked };
}
