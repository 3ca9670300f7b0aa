/** What `retry` says, as the waits between attempts. */

import type { RetryDefinition } from '../model/ensemble.ts';
import type { Report } from './check-shape.ts';
import type { RetryPolicy } from './compiled-ensemble.ts';
import type { Path } from './problem.ts';

const MAX_EXPONENTIAL_MS = 60_000;
const MAX_DELAY_MS = 86_400_000;
const DEFAULT_DELAY_MS = 1000;

/** @param path - where `retry` stands */
export function retryPolicy(retry: RetryDefinition | undefined, path: Path, report: Report): RetryPolicy {
  if (!retry) return { maxAttempts: 1, delayAfter: () => 0 };
  const { maxAttempts, backoff = 'exponential', delay = DEFAULT_DELAY_MS } = retry;
  if (backoff === 'exponential') {
    if (retry.delay !== undefined) {
      const message = '`delay` is for `backoff: fixed` and `backoff: linear`; `exponential` waits 1, 2, 4 s and so on';
      report({ path: [...path, 'delay'], key: true, message });
    }
    return { maxAttempts, delayAfter: (attempt) => Math.min(MAX_EXPONENTIAL_MS, 1000 * 2 ** (attempt - 1)) };
  }
  if (backoff === 'fixed') return { maxAttempts, delayAfter: () => delay };
  return { maxAttempts, delayAfter: (attempt) => Math.min(MAX_DELAY_MS, delay * attempt) };
}
