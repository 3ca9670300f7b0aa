/** What a process knows of limits and queues. */

import { isPromise, type MaybePromise } from '../../../../engine/base/maybe-promise.ts';
import { AFTER_GROUP, type FlowLimit, groupOf } from '../../../../engine/execution/limits/flow-limit.ts';

export const MAX_KNOWN = 20_000;

/** The numbers of limits that a process knows to be stored. */
export class KnownLimits {
  readonly known = new Map<string, FlowLimit>();
  /** By a group, or by a limit that blocks groups: where the next turn begins. */
  readonly turns = new Map<string, string>();

  /** The limit up to which the process has looked for those that nothing uses. */
  purgedTo = '';

  /** Before more are added. */
  forgetTurns(): void {
    if (this.turns.size > MAX_KNOWN) this.turns.clear();
  }

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
  /** The last claim has made other queues ready. */
  hasMore = false;
  #hasOddPlace = false;
  #isRestEmpty = false;

  /** How many of the places of a claim are for the queues: half, and the odd one every second time. All, if the last claim found nothing else. */
  share(places: number): number {
    if (this.#isRestEmpty) {
      this.#isRestEmpty = false;
      return places;
    }
    this.#hasOddPlace = !this.#hasOddPlace;
    return this.#hasOddPlace ? Math.ceil(places / 2) : Math.floor(places / 2);
  }

  /** @param count - how many executions without limits a claim has found */
  foundRest(count: number): void {
    this.#isRestEmpty = count === 0;
  }

  /**
   * @param served - the queues that had a turn, in order @param last - the last one that the claim has come to
   * @param blocked - by the id of a queue, the limit that blocks it now
   */
  continueAfter(served: readonly string[], last: string | undefined, blocked: ReadonlyMap<string, string>): void {
    this.forgetTurns();
    for (const id of served) {
      const group = groupOf(id);
      if (group === undefined) continue;
      this.turns.set(group, id);
      // The first queue that is woken for the limit is not one that had its turn already.
      const limit = blocked.get(id);
      if (limit !== undefined && !this.turns.has(limit + group)) this.turns.set(limit + group, id);
    }
    const group = last === undefined ? undefined : groupOf(last);
    this.after = group === undefined ? (last ?? '') : group + AFTER_GROUP;
  }

  /** @param claimed - how many executions a claim found in the queues at this instant (Unix ms) */
  found(claimed: number, now: number): void {
    this.quietUntil = claimed > 0 || this.hasMore ? 0 : now + QUIET_MS;
  }
}
