/** Deletes limits that nothing uses any more: each value of a key has a row. */

import type { MaybePromise } from '../../../../engine/base/maybe-promise.ts';
import { isUnused } from '../../../../engine/execution/limits/rate-window.ts';
import { sweepSometimes } from '../../sweep-sometimes.ts';
import type { KnownLimits } from './queue-cursor.ts';
import type { QueueTables } from './queue-tables.ts';
import { type Steps, wait } from './steps.ts';

/** How many limits are looked at in a transaction. */
const MAX_LIMITS = 500;
/** A number that is newer is kept, in ms: during a deployment, processes may have different ones. */
const NEW_MS = 3_600_000;

/** @param purge - runs {@link purgeLimits} @returns a function for other calls of the store, see {@link sweepSometimes}. If half of the limits were deleted, the next ones are looked at at once */
export function sweepLimits(purge: (now: number) => MaybePromise<number>): (now: number) => void {
  return sweepSometimes(MAX_LIMITS / 2, purge);
}

/**
 * Looks at the next limits, and deletes those without slots and without anything that still counts under a rate. In a transaction of its
 * own: it locks them. @returns how many were deleted
 */
export function* purgeLimits(
  on: Pick<QueueTables<never>, 'limitsAfter' | 'readLimits' | 'deleteLimits'>,
  stored: KnownLimits,
  now: number,
): Steps<number> {
  const found = yield* wait(on.limitsAfter(stored.purgedTo, now - NEW_MS, MAX_LIMITS));
  stored.purgedTo = found.length === MAX_LIMITS ? (found.at(-1) as string) : '';
  const ids = found.filter((id) => !isForAllKeys(id));
  if (ids.length === 0) return 0;
  const states = yield* wait(on.readLimits(ids));
  const idle = [...states].flatMap(([id, { taken, rate, use }]) =>
    taken === 0 && (!rate || isUnused(rate, use, now)) ? [id] : [],
  );
  if (idle.length === 0) return 0;
  const deleted = yield* wait(on.deleteLimits(idle));
  for (const id of deleted) stored.known.delete(id);
  return deleted.length;
}

/** Whether a row has the number for all keys of a limit. */
function isForAllKeys(id: string): boolean {
  return (JSON.parse(id) as readonly string[]).length === 1;
}
