/** A pause that a signal can end. */

import { setTimeout as wait } from 'node:timers/promises';

/** Resolves after a time, or when the signal aborts. @param ms - at most `2 ** 31 - 1` */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => {});
}
