/** Which limits hold an execution up. */

import { type LimitWait, MAX_POSITION } from '../../../../engine/execution/execution-store.port.ts';
import { freeOfAll } from './claim-queues.ts';
import type { LimitState } from './limit-state.ts';
import { limitsOfQueue } from './take-turns.ts';

/** How many executions before another one are counted. */
export const MAX_AHEAD = MAX_POSITION - 1;

/** @param place - of the execution in its queue @param now - Unix ms */
export function fullLimits(
  queue: string,
  states: ReadonlyMap<string, LimitState>,
  place: Pick<LimitWait, 'position' | 'since'>,
  now: number,
): readonly LimitWait[] {
  const free = freeOfAll(states, now);
  return limitsOfQueue(queue).flatMap((id) => {
    if ((free.get(id) ?? 1) > 0) return [];
    const [name, key] = JSON.parse(id) as [string, string];
    return [{ name, key, ...place }];
  });
}
