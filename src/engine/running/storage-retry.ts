/** Retries calls of the storage that fail: a database that restarts must not stop a run. */

import pRetry from 'p-retry';
import { isOrchestratorError, messageOf, OrchestratorError } from '../base/errors.ts';
import type { Clock } from '../host/clock.port.ts';
import type { Logger } from '../host/logger.port.ts';
import type { MaybePromise } from '../operation/operation.port.ts';
import { isCodeError } from './write-failure.ts';

/**
 * Makes a call, and retries transient failures after growing pauses.
 * @throws OVERLOADED when the call failed until the time for retries was over; a permanent failure at once, as it is
 */
export interface StorageRetry {
  <T>(call: () => MaybePromise<T>): MaybePromise<T>;
  /** Retries a call that was made once and threw. @param retryUntil - a monotonic instant; by default a lease from now */
  again<T>(call: () => MaybePromise<T>, thrown: unknown, retryUntil?: number): Promise<T>;
  /** The monotonic instant until which a call that fails now is retried. */
  retryUntil(): number;
}

const FIRST_PAUSE_MS = 10;
const MAX_PAUSE_MS = 1000;

/**
 * @param retryForMs - how long a call is retried
 * @param isRetried - which failures are transient
 */
export function createStorageRetry(
  clock: Clock,
  logger: Logger,
  retryForMs: number,
  isRetried: (thrown: unknown) => boolean = isTransient,
): StorageRetry {
  /** The failure that was logged last: each failure is logged once, and again after a call that succeeded. */
  let logged: string | undefined;
  const limit = () => clock.monotonic() + retryForMs;
  const again = async <T>(call: () => MaybePromise<T>, thrown: unknown, retryUntil = limit()): Promise<T> => {
    let pauseMs = FIRST_PAUSE_MS;
    let failure = thrown;
    // The pauses use the clock, so that tests control them.
    const pause = async (): Promise<boolean> => {
      if (!isRetried(failure) || clock.monotonic() >= retryUntil) return false;
      const text = messageOf(failure);
      if (text !== logged) logger.warn({ err: failure }, 'the storage failed; it is tried again');
      logged = text;
      await clock.sleep(pauseMs);
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
      return true;
    };
    const attempt = async () => {
      try {
        const answer = await call();
        logged = undefined;
        return answer;
      } catch (error) {
        failure = error;
        // p-retry does not retry a TypeError that it does not know.
        throw new Error('not yet');
      }
    };
    try {
      if (!(await pause())) throw failure;
      return await pRetry(attempt, { retries: Number.POSITIVE_INFINITY, minTimeout: 0, shouldRetry: pause });
    } catch {
      throw isRetried(failure) ? toFailure(failure) : failure;
    }
  };
  const withRetry = <T>(call: () => MaybePromise<T>): MaybePromise<T> => {
    try {
      const answer = call();
      return answer instanceof Promise ? answer.catch((thrown) => again(call, thrown)) : answer;
    } catch (thrown) {
      return again(call, thrown);
    }
  };
  return Object.assign(withRetry, { again, retryUntil: limit });
}

/**
 * Whether the same call may succeed later. Two kinds of failures are permanent: what the library refused on purpose, and errors in
 * code, such as a string that is too long.
 */
export function isTransient(thrown: unknown): boolean {
  return isOrchestratorError(thrown) ? thrown.retryable : !isCodeError(thrown);
}

/** Whether a call had no answer within its time limit: the call may have been too large. */
export function isLate(thrown: unknown): boolean {
  return isOrchestratorError(thrown, 'OVERLOADED') && thrown.details.timeoutMs !== undefined;
}

function toFailure(thrown: unknown): OrchestratorError {
  const message = 'the storage failed for a while; the log has the cause. Try again later';
  return new OrchestratorError('OVERLOADED', message, { cause: thrown, retryable: true });
}
