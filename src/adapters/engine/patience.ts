/** Tries a call of the storage again until it answers: a database that restarts is no reason to give a run up. */

import pRetry from 'p-retry';
import { isOrchestratorError, messageOf, OrchestratorError } from '../../engine/errors.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import type { Logger } from '../../engine/ports/logger.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';

/**
 * Makes the call, again after growing pauses while it fails.
 * @throws OVERLOADED when it failed for as long as patience lasts; at once what trying again is of no use for
 */
export interface Patience {
  <T>(call: () => MaybePromise<T>): MaybePromise<T>;
  /** The same for a call that was made once, and threw. @param givesUpAt - a monotonic instant; by default a lease from now */
  again<T>(call: () => MaybePromise<T>, thrown: unknown, givesUpAt?: number): Promise<T>;
  /** The monotonic instant at which it gives up a call that fails now. */
  givesUpAt(): number;
}

const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 1000;

/** @param patienceMs - for how long a call is tried again */
export function createPatience(clock: Clock, logger: Logger, patienceMs: number): Patience {
  /** What the log was told last: once for each failure, and again when a call passed meanwhile. */
  let told: string | undefined;
  const limit = () => clock.monotonic() + patienceMs;
  const again = async <T>(call: () => MaybePromise<T>, thrown: unknown, givesUpAt = limit()): Promise<T> => {
    let pauseMs = FIRST_PAUSE_MS;
    let failure = thrown;
    // The clock drives the pauses, so that a test's time does.
    const pause = async (): Promise<boolean> => {
      if (!mayPass(failure) || clock.monotonic() >= givesUpAt) return false;
      const text = messageOf(failure);
      if (text !== told) logger.warn({ err: failure }, 'the storage failed; it is tried again');
      told = text;
      await clock.sleep(pauseMs);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      return true;
    };
    const attempt = async () => {
      try {
        const answer = await call();
        told = undefined;
        return answer;
      } catch (error) {
        failure = error;
        // p-retry gives up at once on a TypeError that it does not know.
        throw new Error('not yet');
      }
    };
    try {
      if (!(await pause())) throw failure;
      return await pRetry(attempt, { retries: Number.POSITIVE_INFINITY, minTimeout: 0, shouldRetry: pause });
    } catch {
      throw toFailure(failure);
    }
  };
  const patiently = <T>(call: () => MaybePromise<T>): MaybePromise<T> => {
    try {
      const answer = call();
      return answer instanceof Promise ? answer.catch((thrown) => again(call, thrown)) : answer;
    } catch (thrown) {
      return again(call, thrown);
    }
  };
  return Object.assign(patiently, { again, givesUpAt: limit });
}

/**
 * Whether the same call may pass when it is tried again: all may, but for what the library refused on purpose, and for errors of
 * code, such as a text that is too long to be made.
 */
export function mayPass(thrown: unknown): boolean {
  return isOrchestratorError(thrown) ? thrown.retryable : !isOfCode(thrown);
}

/** Whether what was to be stored is what is wrong, and not the storage: no storage would take it. */
export function isUnstorable(thrown: unknown): boolean {
  return (
    isOfCode(thrown) || isOrchestratorError(thrown, 'INVALID_OUTPUT') || isOrchestratorError(thrown, 'INVALID_INPUT')
  );
}

/** Whether a call had no answer in the time that it was given: it may have been too large for it. */
export function isLate(thrown: unknown): boolean {
  return isOrchestratorError(thrown, 'OVERLOADED') && thrown.details.timeoutMs !== undefined;
}

function isOfCode(thrown: unknown): boolean {
  return thrown instanceof RangeError || thrown instanceof TypeError;
}

function toFailure(thrown: unknown): unknown {
  if (!mayPass(thrown)) return thrown;
  const message = 'the storage failed for a while; the log has its cause. Try again later';
  return new OrchestratorError('OVERLOADED', message, { cause: thrown, retryable: true });
}
