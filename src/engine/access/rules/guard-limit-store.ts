/** A limit store that fails: requests are counted by this process alone, or are refused. It never fails a request with its own error. */

import { OrchestratorError } from '../../base/errors.ts';
import { isPromise } from '../../base/maybe-promise.ts';
import type { Clock } from '../../host/clock.port.ts';
import type { Logger } from '../../host/logger.port.ts';
import type { MaybePromise } from '../../operation/operation.port.ts';
import type { LimitStore, RateAnswer } from '../limit-store.port.ts';

/** A store that says nothing for this long, while the process has time to listen, is away. A long queue before it is not. */
const SILENCE_MS = 2_000;
/** The silence is counted in these steps: a process that is held up counts one step, however long it lasts. */
const STEP_MS = 250;
/** While the store is away, one request asks it this often. The others don't wait. */
const PROBE_MS = 1_000;

export interface GuardDependencies {
  readonly store: LimitStore;
  /** Counts what this process lets pass: alone while the store is away. */
  readonly fallback: LimitStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** What happens to a request that the store can't count: this process counts it, or it is refused with OVERLOADED. */
  readonly onStoreFailure: 'open' | 'closed';
}

/** @throws OVERLOADED when the store fails or says nothing for 2 s, and requests are refused then */
export function guardLimitStore({ store, fallback, clock, logger, onStoreFailure }: GuardDependencies): LimitStore {
  const isOpen = onStoreFailure === 'open';
  /** The monotonic instant from which on the store is asked again. Undefined: it is not away. */
  let probeAt: number | undefined;
  /** The questions without an answer, by the function that gives them up. */
  const waiting = new Set<() => void>();
  let silentSteps = 0;
  let isWatching = false;

  const watch = () => {
    if (isWatching) return;
    isWatching = true;
    silentSteps = 0;
    const step = () => {
      silentSteps += 1;
      if (silentSteps >= SILENCE_MS / STEP_MS) for (const giveUp of waiting) giveUp();
      if (waiting.size > 0) clock.setTimer(STEP_MS, step, { background: true });
      else isWatching = false;
    };
    clock.setTimer(STEP_MS, step, { background: true });
  };

  const inTime = <T>(answer: Promise<T>): Promise<T> => {
    watch();
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        waiting.delete(giveUp);
        reject(new Error(`the limit store said nothing for ${SILENCE_MS} ms`));
      };
      waiting.add(giveUp);
      const settle = () => {
        silentSteps = 0;
        waiting.delete(giveUp);
      };
      answer.finally(settle).then(resolve, reject);
    });
  };

  const onAnswer = <T>(answer: T): T => {
    probeAt = undefined;
    return answer;
  };
  // One line for each time that the store is away, not for each request.
  const onFailure = (err: unknown) => {
    if (probeAt === undefined) {
      if (isOpen) logger.warn({ err }, 'the limit store failed; this process counts its requests alone');
      else logger.warn({ err }, 'the limit store failed; requests are refused');
    }
    probeAt = clock.monotonic() + PROBE_MS;
  };
  const ask = <T>(call: () => MaybePromise<T>, failed: (cause?: unknown) => MaybePromise<T>): MaybePromise<T> => {
    if (probeAt !== undefined) {
      if (clock.monotonic() < probeAt) return failed();
      probeAt = clock.monotonic() + PROBE_MS;
    }
    const onThrown = (thrown: unknown) => {
      onFailure(thrown);
      return failed(thrown);
    };
    let answer: MaybePromise<T>;
    try {
      answer = call();
    } catch (thrown) {
      return onThrown(thrown);
    }
    return isPromise(answer) ? inTime(answer).then(onAnswer, onThrown) : onAnswer(answer);
  };

  const refuse = (cause?: unknown): never => {
    const message = 'the limits of the caller could not be read; try again';
    throw new OrchestratorError('OVERLOADED', message, { cause, retryable: true });
  };
  const take: LimitStore['take'] = (windows, now) => {
    const answer = store.take(windows, now);
    if (!isOpen || !isPromise(answer)) return answer;
    return answer.then((late) => {
      if (late.taken) fallback.take(windows, now);
      return late;
    });
  };
  return {
    take: (windows, now) =>
      ask<RateAnswer>(
        () => take(windows, now),
        (cause) => (isOpen ? fallback.take(windows, now) : refuse(cause)),
      ),
    peek: (windows, now) => ask(() => store.peek(windows, now), refuse),
  };
}
