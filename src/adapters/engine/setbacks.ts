/** What goes wrong with single executions: each is tried again after pauses that grow, and the log hears of each state once. */

import { messageOf } from '../../engine/errors.ts';
import type { Clock } from '../../engine/ports/clock.ts';

export interface Setback {
  /** How long to leave the execution alone, ms. */
  readonly pauseMs: number;
  /** How many there were in a row, this one included. */
  readonly times: number;
  /** Whether the last one was another one. */
  readonly isNew: boolean;
  /** Since the first one, ms. */
  readonly sinceMs: number;
}

export interface Setbacks {
  /** Something went wrong with an execution, perhaps again. */
  add(id: string, thrown: unknown): Setback;
  forget(id: string): void;
}

interface Known {
  readonly since: number;
  readonly until: number;
  readonly times: number;
  readonly text: string;
}

/** Executions of which it is known; the ones that it was told of first are forgotten first. */
const MOST_KNOWN = 10_000;
/** So long after its pause, one that has had no other setback counts as one that never had any. */
const FORGIVEN_MS = 60_000;

export function createSetbacks(clock: Clock, firstMs: number, longestMs: number): Setbacks {
  const known = new Map<string, Known>();
  return {
    add(id, thrown) {
      const now = clock.monotonic();
      const found = known.get(id);
      const before = found && now - found.until < FORGIVEN_MS ? found : undefined;
      const times = (before?.times ?? 0) + 1;
      const since = before?.since ?? now;
      const pauseMs = Math.min(longestMs, firstMs * 2 ** Math.min(times - 1, 30));
      const text = messageOf(thrown);
      known.delete(id);
      if (known.size >= MOST_KNOWN) known.delete(known.keys().next().value as string);
      known.set(id, { since, until: now + pauseMs, times, text });
      return { pauseMs, times, isNew: before?.text !== text, sinceMs: now - since };
    },
    forget: (id) => void known.delete(id),
  };
}
