/** Compiles `retry` to the waits between the attempts of an agent. */

import { toMs } from '../../base/time/duration.ts';
import { oneOf } from '../../base/wording.ts';
import type { RetryPolicy } from '../../compiled/compiled-ensemble.ts';
import type { RetryDefinition } from '../../ensemble/ensemble.ts';
import type { Report } from '../forms/check-shape.ts';
import type { Path } from '../source/problem.ts';

const FIRST_DELAY_MS = 1000;
const MAX_EXPONENTIAL_MS = 60_000;
const MAX_LINEAR_MS = 86_400_000;
const ONCE: RetryPolicy = { maxAttempts: 1, jitter: 0, delayAfter: () => 0 };

/** The options that only some ways to wait have. */
const BACKOFFS = {
  maxDelay: ['exponential', 'linear'],
  factor: ['exponential'],
} as const;

/** @param path - the path of `retry` in the definition */
export function compileRetry(retry: RetryDefinition | undefined, path: Path, report: Report): RetryPolicy {
  if (!retry) return ONCE;
  const { maxAttempts, backoff = 'exponential', factor = 2, jitter = 0 } = retry;
  for (const [key, backoffs] of Object.entries(BACKOFFS)) {
    if (retry[key as keyof typeof BACKOFFS] === undefined || (backoffs as readonly string[]).includes(backoff))
      continue;
    const ways = backoffs.map((one) => `backoff: ${one}`);
    const message = retry.backoff
      ? `\`${key}\` is for ${oneOf(ways, 'and')}; ${WAITS[backoff]}`
      : `\`${key}\` needs another way to wait: add ${oneOf(ways)}`;
    report({ path: [...path, key], key: true, message });
  }
  const delay = toMs(retry.delay ?? FIRST_DELAY_MS);
  const max = toMs(retry.maxDelay ?? (backoff === 'linear' ? MAX_LINEAR_MS : MAX_EXPONENTIAL_MS));
  switch (backoff) {
    case 'exponential':
      return { maxAttempts, jitter, delayAfter: (attempt) => Math.min(max, delay * factor ** (attempt - 1)) };
    case 'fixed':
      return { maxAttempts, jitter, delayAfter: () => delay };
    case 'linear':
      return { maxAttempts, jitter, delayAfter: (attempt) => Math.min(max, delay * attempt) };
  }
}

const WAITS = {
  exponential: '`exponential` waits `delay`, then `factor` times as long, and so on',
  fixed: '`fixed` always waits `delay`',
  linear: '`linear` waits `delay` times the attempt',
} as const;
