/** How many times are how long, in steps of a fifth, so that a percentile is at most a tenth off. */

/** By the number of a bucket: how many times are in it. Bucket 0 is below 1 ms; bucket n from 1.2^(n-1) ms to 1.2^n ms. */
export type Histogram = Readonly<Record<string, number>>;

/** In ms. A half, 95 of 100 and 99 of 100 are not longer. */
export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** From one bucket to the next. */
export const RATIO = 1.2;
const LOG_OF_RATIO = Math.log(RATIO);
const MIDDLE = Math.sqrt(RATIO);
/** About 110 days. */
export const LAST_BUCKET = 127;

export function bucketOf(ms: number): number {
  if (!(ms >= 1)) return 0;
  // The logarithm of a bound may be a little too small.
  return Math.min(1 + Math.floor(Math.log(ms) / LOG_OF_RATIO + 1e-9), LAST_BUCKET);
}

export function addCounts(to: Record<string, number>, more: Histogram): void {
  for (const [key, count] of Object.entries(more)) to[key] = (to[key] ?? 0) + count;
}

/** @returns undefined if it is empty */
export function percentilesOf(histogram: Histogram): Percentiles | undefined {
  const buckets = Object.entries(histogram)
    .map(([bucket, count]) => [Number(bucket), count] as const)
    .sort(([a], [b]) => a - b);
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return undefined;
  const at = (share: number): number => {
    let left = Math.ceil(total * share);
    for (const [bucket, count] of buckets) {
      left -= count;
      if (left <= 0) return msOf(bucket);
    }
    return 0;
  };
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

/** The middle of a bucket, in whole ms. */
function msOf(bucket: number): number {
  return bucket === 0 ? 0 : Math.round(RATIO ** (bucket - 1) * MIDDLE);
}
