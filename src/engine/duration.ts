/** Durations as people write them: `90s`, `1h30m`, `7d`. */

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
/** The longest wait: ten years. */
export const LONGEST_SLEEP_MS = 315_360_000_000;

/** Amounts with their units, one behind the other. */
export const DURATION = /^(?: *\d+(?:\.\d+)? *(?:ms|s|m|h|d|w))+ *$/;
const PART = /(\d+(?:\.\d+)?) *(ms|s|m|h|d|w)/g;

/** @returns milliseconds; undefined for what is no duration */
export function parseDuration(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  let ms = 0;
  for (const [, amount, unit] of text.matchAll(PART)) ms += Number(amount) * (UNIT_MS[unit as string] as number);
  return Math.round(ms);
}

/** The duration that was meant where its units are written out, such as `5 minutes`; undefined for what means none. */
export function nearestDuration(text: string): string | undefined {
  const short = text
    .toLowerCase()
    .replaceAll(' ', '')
    .replace(/millis?(?:econds?)?|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?/g, (unit) =>
      unit.startsWith('milli') ? 'ms' : (unit[0] as string),
    );
  return parseDuration(short) === undefined ? undefined : short;
}
