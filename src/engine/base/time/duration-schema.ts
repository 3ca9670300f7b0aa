/** The schema of a duration, for the forms of the language and the configs of operations. */

import * as z from 'zod/mini';
import { DURATION, MAX_SLEEP_MS, parseDuration, type WrittenDuration } from './duration.ts';

/** Every message about a wrong duration begins with this text. */
export const DURATION_MESSAGE = 'must be a duration such as `30s` or `5m`';

/**
 * Accepts whole milliseconds and text such as `30s`. `toMs` reads the value.
 *
 * @param minMs - the shortest duration
 * @param maxMs - the longest duration
 * @param range - the range in words, for the message
 */
export function durationSchema(
  minMs = 1,
  maxMs = MAX_SLEEP_MS,
  range = 'above 0 and at most ten years',
): z.ZodMiniType<WrittenDuration> {
  const error = `${DURATION_MESSAGE}, or a whole number of milliseconds, ${range}`;
  const form = minMs > 0 ? new RegExp(`(?=.*[1-9])${DURATION.source}`) : DURATION;
  const isInRange = (text: string) => {
    const ms = parseDuration(text) ?? minMs;
    return ms >= minMs && ms <= maxMs;
  };
  return z.union(
    [
      z.int({ error }).check(z.gte(minMs, { error }), z.lte(maxMs, { error })),
      z.string().check(z.regex(form, { error }), z.refine(isInRange, { error })),
    ],
    { error },
  ) as unknown as z.ZodMiniType<WrittenDuration>;
}
