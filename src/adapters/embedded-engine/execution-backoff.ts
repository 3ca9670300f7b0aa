/** Growing pauses between the attempts to do something with one execution: each failure of the same execution doubles the pause. */

import { messageOf } from '../../engine/base/errors.ts';
import type { Clock } from '../../engine/host/clock.port.ts';

/** What follows from one failure. */
export interface BackoffStep {
  /** How long to wait before the next attempt, ms. */
  readonly pauseMs: number;
  /** How many failures there were in a row, this one included. */
  readonly times: number;
  /** Whether this failure differs from the one before it. Log it only then. */
  readonly isNew: boolean;
  /** Time since the first failure in the row, ms. */
  readonly sinceMs: number;
}

export interface ExecutionBackoff {
  /** Counts a failure of an execution. */
  next(id: string, thrown: unknown): BackoffStep;
  forget(id: string): void;
}

interface Failures {
  readonly since: number;
  readonly until: number;
  readonly times: number;
  readonly text: string;
}

/** The largest number of executions that are remembered; the oldest are forgotten first. */
const MAX_EXECUTIONS = 10_000;
/** An execution without another failure for this long after its pause starts anew. */
const FORGET_AFTER_MS = 60_000;

export function createExecutionBackoff(clock: Clock, firstMs: number, maxMs: number): ExecutionBackoff {
  const failures = new Map<string, Failures>();
  return {
    next(id, thrown) {
      const now = clock.monotonic();
      const found = failures.get(id);
      const before = found && now - found.until < FORGET_AFTER_MS ? found : undefined;
      const times = (before?.times ?? 0) + 1;
      const since = before?.since ?? now;
      const pauseMs = Math.min(maxMs, firstMs * 2 ** Math.min(times - 1, 30));
      const text = messageOf(thrown);
      failures.delete(id);
      if (failures.size >= MAX_EXECUTIONS) failures.delete(failures.keys().next().value as string);
      failures.set(id, { since, until: now + pauseMs, times, text });
      return { pauseMs, times, isNew: before?.text !== text, sinceMs: now - since };
    },
    forget: (id) => void failures.delete(id),
  };
}
