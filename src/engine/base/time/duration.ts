/** Reads durations as people write them: milliseconds, or text such as `90s`, `1h30m` and `7d`. */

/** A duration: milliseconds, or text with a unit (`500ms`, `30s`, `5m`, `1h30m`, `1d`). */
export type Duration = number | string;

type Unit = 'ms' | 's' | 'm' | 'h' | 'd' | 'w';
/** A text with an expression. */
export type Expression = `${string}\${${string}`;
/** A duration in a definition: milliseconds, text with a unit, or an expression. A text of another form is a type error. */
export type WrittenDuration =
  | number
  | `${number}${Unit}`
  | `${number} ${Unit}`
  | `${number}${Exclude<Unit, 'ms'>}${number}${string}`
  | `${number}${Exclude<Unit, 'ms'>} ${number}${string}`
  | Expression;

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
/** The longest wait: ten years. */
export const MAX_SLEEP_MS = 315_360_000_000;

/** One or more amounts, each followed by its unit. */
export const DURATION = /^(?: *\d+(?:\.\d+)? *(?:ms|s|m|h|d|w))+ *$/;
const PART = /(\d+(?:\.\d+)?) *(ms|s|m|h|d|w)/g;

/** @returns milliseconds, or undefined when the text is not a duration */
export function parseDuration(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  let ms = 0;
  for (const [, amount, unit] of text.matchAll(PART)) ms += Number(amount) * (UNIT_MS[unit as string] as number);
  return Math.round(ms);
}

/** What a message says about a wrong duration of a caller. */
export const DURATION_RULE = 'must be a duration such as `30s` or `5m`, or milliseconds';

/** Whether the value of a caller is a duration above 0. */
export function isDuration(given: unknown): boolean {
  const ms = typeof given === 'string' ? toMs(given) : given;
  return typeof ms === 'number' && Number.isFinite(ms) && ms > 0;
}

/** Milliseconds of a duration; NaN when its text is wrong. */
export function toMs(duration: Duration): number {
  return typeof duration === 'number' ? duration : (parseDuration(duration) ?? Number.NaN);
}

/** @returns the duration for a text with full unit names, such as `5m` for `5 minutes`; undefined when there is none */
export function nearestDuration(text: string): string | undefined {
  const short = text
    .toLowerCase()
    .replaceAll(' ', '')
    .replace(/millis?(?:econds?)?|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?/g, (unit) =>
      unit.startsWith('milli') ? 'ms' : (unit[0] as string),
    );
  return parseDuration(short) === undefined ? undefined : short;
}
