/** A limit store that fails: requests pass uncounted, or are refused. It never fails a request with its own error. */

import { OrchestratorError } from '../base/errors.ts';
import { isPromise } from '../base/maybe-promise.ts';
import { withTimeout } from '../base/with-timeout.ts';
import type { Clock } from '../ports/clock.ts';
import type { LimitStore, RateAnswer, RateWindow } from '../ports/limit-store.ts';
import type { Logger } from '../ports/logger.ts';
import type { MaybePromise } from '../ports/operation.ts';

/** Longer than a store takes that is not away. */
const MAX_ANSWER_MS = 2_000;

export interface GuardParts {
  readonly store: LimitStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** What happens to a request that can't be counted: it passes, or it is refused with OVERLOADED. */
  readonly onStoreFailure: 'open' | 'closed';
}

/** @throws OVERLOADED when the store fails or takes more than 2 s, and requests are refused then */
export function guardLimitStore({ store, clock, logger, onStoreFailure }: GuardParts): LimitStore {
  let isAway = false;

  const withinTime = async <T>(answer: Promise<T>): Promise<T> => {
    const found = await withTimeout(answer, MAX_ANSWER_MS, (ms, callback) => clock.setTimer(ms, callback));
    if (found === undefined) throw new Error(`the limit store did not answer within ${MAX_ANSWER_MS} ms`);
    return found;
  };
  const refusal = (cause: unknown) =>
    new OrchestratorError('OVERLOADED', 'the limits of the caller could not be read; try again', {
      cause,
      retryable: true,
    });
  // One line for each time that the store is away, not for each request.
  const warnOnce = (err: unknown) => {
    if (isAway) return;
    isAway = true;
    if (onStoreFailure === 'open') logger.warn({ err }, 'the limit store failed; requests pass without being counted');
    else logger.warn({ err }, 'the limit store failed; requests are refused');
  };
  const onFailure = (thrown: unknown, windows: readonly RateWindow[], now: number): RateAnswer => {
    warnOnce(thrown);
    if (onStoreFailure === 'closed') throw refusal(thrown);
    return { taken: true, uses: windows.map(({ windowMs }) => ({ used: 0, resetAt: now + windowMs })) };
  };
  const onAnswer = <T>(answer: T): T => {
    isAway = false;
    return answer;
  };
  const ask = <T>(call: () => MaybePromise<T>, failed: (thrown: unknown) => T): MaybePromise<T> => {
    let answer: MaybePromise<T>;
    try {
      answer = call();
    } catch (thrown) {
      return failed(thrown);
    }
    return isPromise(answer) ? withinTime(answer).then(onAnswer, failed) : onAnswer(answer);
  };

  return {
    take: (windows, now) =>
      ask(
        () => store.take(windows, now),
        (thrown) => onFailure(thrown, windows, now),
      ),
    peek: (windows, now) =>
      ask(
        () => store.peek(windows, now),
        (thrown) => {
          throw refusal(thrown);
        },
      ),
  };
}
