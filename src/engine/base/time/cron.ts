/** Computes when a cron pattern is due in a time zone. No other file imports the cron package. */

import { Cron } from 'croner';

/** The instants of a pattern, in whole Unix milliseconds. The methods read no clock and set no timer. */
export interface Ticks {
  /** The first instant later than `after`, or undefined when there is none for a thousand years. */
  next(after: number): number | undefined;
  /** The last instant that is not later than `upTo`, or undefined when there was none. */
  last(upTo: number): number | undefined;
}

/** What is wrong with a pattern, and the part of the pattern that is wrong. */
export interface CronProblem {
  readonly message: string;
  readonly offset: number;
  readonly length: number;
}

const NICKNAMES: readonly string[] = [
  ...['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'],
];
const SECOND = 'a second (`0` to `59`)';
const FIELDS: readonly string[] = [
  'a minute (`0` to `59`)',
  'an hour (`0` to `23`)',
  'a day of the month (`1` to `31`, `L` for the last, `15W` for the nearest weekday)',
  'a month (`1` to `12`, or `JAN` to `DEC`)',
  'a day of the week (`0` to `7`, or `SUN` to `SAT`; `5#2` is the second Friday, `5L` the last)',
];
const FORM = 'minute, hour, day of the month, month and day of the week, with seconds before them if you like';
const MAX_LENGTH = 500;
/** Any instant works here: a pattern that is never due after it is never due at all. */
const ANY_INSTANT = Date.UTC(2024, 0, 1);

/** @returns what is wrong with a pattern, or undefined when it is valid and is due at some time */
export function cronProblem(pattern: string): CronProblem | undefined {
  const whole = { offset: 0, length: Math.max(1, pattern.length) };
  if (pattern.length > MAX_LENGTH) return { ...whole, message: `must have at most ${MAX_LENGTH} characters` };
  const fields = [...pattern.matchAll(/\S+/g)].map((match) => ({ text: match[0], offset: match.index }));
  const [first] = fields;
  if (fields.length === 1 && first?.text.startsWith('@')) {
    if (NICKNAMES.includes(first.text.toLowerCase())) return undefined;
    return { message: `must be one of ${NICKNAMES.join(' ')}, or 5 fields: ${FORM}`, ...whole };
  }
  if (fields.length !== 5 && fields.length !== 6) {
    return { message: `must have 5 or 6 fields, not ${fields.length}: ${FORM}`, ...whole };
  }
  const expected = fields.length === 6 ? [SECOND, ...FIELDS] : FIELDS;
  for (const [i, { text, offset }] of fields.entries()) {
    if (canParse(fields.map((_, other) => (other === i ? text : '*')).join(' '))) continue;
    const forms = 'a list `1,2`, a range `1-5`, steps `*/15` or `0-30/10`, or `*`';
    return { message: `\`${text}\` must be ${expected[i]}, ${forms}`, offset, length: text.length };
  }
  if (!canParse(pattern)) return { message: `must be a cron pattern: ${FORM}`, ...whole };
  if (createTicks(pattern, 'UTC').next(ANY_INSTANT) !== undefined) return undefined;
  return { message: 'is never due: no year has such a day', ...whole };
}

/** Whether this runtime knows a time zone by this IANA name. */
export function isTimeZone(name: string): boolean {
  // Newer runtimes accept an offset too. An offset is not a time zone: it has no daylight saving time.
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** The names of time zones that a suggestion can choose from. */
export function timeZones(): readonly string[] {
  return ['UTC', ...Intl.supportedValuesOf('timeZone')];
}

/**
 * Creates the ticks of a pattern. When the clocks are set forward, a time of day that does not exist is due once, right after
 * the gap. When they are set back, a time of day that occurs twice is due once, at its first occurrence. Patterns with `*` or
 * with steps in the seconds, minutes or hours follow elapsed time: they are not due in the gap, and are due twice in the
 * repeated hour.
 *
 * @param pattern - a pattern for which `cronProblem` returns undefined
 * @param timezone - an IANA name for which `isTimeZone` returns true
 */
export function createTicks(pattern: string, timezone: string): Ticks {
  // An offset avoids the calendar of the runtime, which is slow.
  const zone = /^(Etc\/)?(UTC|GMT)$/i.test(timezone) ? { utcOffset: 0 } : { timezone };
  const cron = new Cron(pattern, { ...OPTIONS, ...zone });
  // A schedule asks for the same two neighbouring instants again and again, and the calendar of the runtime is slow.
  let cached: { readonly after: number; readonly next: number | undefined }[] = [];
  return {
    next(after) {
      const known = cached.find((entry) => entry.after === after);
      if (known) return known.next;
      const next = cron.nextRun(new Date(after))?.getTime();
      cached = [{ after, next }, ...cached.slice(0, 1)];
      return next;
    },
    last: (upTo) => cron.previousRuns(1, new Date(upTo + 1))[0]?.getTime(),
  };
}

const OPTIONS = { mode: '5-or-6-parts', fixedTimeRule: 'no-wildcard' } as const;

function canParse(pattern: string): boolean {
  try {
    new Cron(pattern, { ...OPTIONS, utcOffset: 0 });
    return true;
  } catch {
    return false;
  }
}
