/** The limit store port: counts requests in sliding windows. */

import type { WithReady } from '../host/with-ready.port.ts';
import type { MaybePromise } from '../operation/operation.port.ts';
import type { RateAnswer, RateUse, RateWindow } from './request-log.ts';

export type { RateAnswer, RateUse, RateWindow } from './request-log.ts';

/**
 * Counts requests. No span of `windowMs` ever has more requests than the limit, whatever the clocks do: a request is never counted
 * earlier than a request that was counted before, and instants that lie in the future count. An adapter may count a request for up to
 * a sixtieth of the window longer if the limit is above 1,000.
 *
 * The counts need not survive the end of all processes.
 */
export interface LimitStore extends WithReady {
  /** Counts one request in all windows, or in none. Atomic, also for calls of several processes. @param now - Unix ms */
  take(windows: readonly RateWindow[], now: number): MaybePromise<RateAnswer>;
  /** What is used, without counting. */
  peek(windows: readonly RateWindow[], now: number): MaybePromise<readonly RateUse[]>;
}
