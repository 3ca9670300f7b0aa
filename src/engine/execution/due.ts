/**
 * When a free execution is due: the table of the storage port as functions. `src/adapters/storage/sql/due.ts` is the
 * same table as SQL.
 */

import type { NewSignal, Release } from './stored-execution.ts';

/** What is stored of an execution that can make it due before the instant of its release. */
export interface DueFacts {
  /** Unix ms of the first request to cancel it. */
  readonly cancelRequestedAt: number | undefined;
  /** How many signals are stored for it. */
  readonly signals: number;
  /** Unix ms of the first signal since the last claim. */
  readonly signalledAt: number | undefined;
}

/** An execution that no worker holds. */
export interface FreeExecution {
  readonly status: Release['status'] | 'paused';
  readonly dueAt: number;
  /** The names of the signals that it waits for; undefined when it waits for any. */
  readonly waitsFor: readonly string[] | undefined;
}

/**
 * Released: due at `dueAt`. Due at once if its cancellation was requested, or if it waits and its worker has not seen
 * all signals.
 */
export function dueWhenReleased({ status, dueAt, signals: seen = 0 }: Release, facts: DueFacts): number {
  const { cancelRequestedAt = dueAt, signals, signalledAt = dueAt } = facts;
  const hasUnseen = status === 'waiting' && signals > seen;
  return Math.min(dueAt, cancelRequestedAt, hasUnseen ? signalledAt : dueAt);
}

/** Free, and its cancellation is requested: due at once. */
export function dueWhenCancelled(dueAt: number, requestedAt: number): number {
  return Math.min(dueAt, requestedAt);
}

/** Free, and a signal arrives: due at once if it waits for this signal. One that is paused is due then, when it is resumed. */
export function dueWhenSignalled({ status, dueAt, waitsFor }: FreeExecution, { name, createdAt }: NewSignal): number {
  const isAwaited =
    (status === 'waiting' || status === 'paused') && (waitsFor === undefined || waitsFor.includes(name));
  return isAwaited ? Math.min(dueAt, createdAt) : dueAt;
}

/**
 * Whether a free execution is due as a release says that has its epoch and its status. A cancellation request, or a
 * signal to an execution that waits, can have made it due earlier.
 */
export function isDueAsReleased(dueAt: number, release: Release, facts: Omit<DueFacts, 'signalledAt'>): boolean {
  const { cancelRequestedAt = release.dueAt, signals } = facts;
  if (dueAt === dueWhenCancelled(release.dueAt, cancelRequestedAt)) return true;
  return dueAt <= release.dueAt && release.status === 'waiting' && signals > 0;
}
