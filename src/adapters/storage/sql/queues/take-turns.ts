/** Which of the executions that wait in queues are claimed: the queues take turns, and each execution needs a free slot of all its limits. */

import { limitId } from '../../../../engine/execution/limits/flow-limit.ts';

export interface WaitingQueue<Head> {
  readonly id: string;
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

/** The ids of the limits of a queue, by its id. */
export function limitsOfQueue(id: string): readonly string[] {
  return (JSON.parse(`[${id}]`) as [string, string][]).map(([name, key]) => limitId({ name, key }));
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
  let open = queues.map((queue) => ({ queue, next: 0 }));
  while (open.length > 0 && taken.length < most) {
    const again: typeof open = [];
    for (const turn of open) {
      const { queue } = turn;
      if (taken.length >= most) break;
      if (queue.limits.some(isFull)) continue;
      let head = queue.heads[turn.next++];
      while (head !== undefined && !accept(head)) head = queue.heads[turn.next++];
      if (head === undefined) continue;
      taken.push({ queue, head });
      for (const limit of queue.limits) free.set(limit, (free.get(limit) ?? 0) - 1);
      again.push(turn);
    }
    open = again;
  }
  for (const { id, limits } of queues) {
    const full = limits.find(isFull);
    if (full !== undefined) blocked.set(id, full);
  }
  return { taken, blocked };
}
