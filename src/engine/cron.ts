/** When a cron pattern is due in a time zone: the only file that knows the package which works it out. */

import { Cron } from 'croner';

/** The instants of a pattern, in whole milliseconds (Unix). Pure: no clock is read and no timer is set. */
export interface Ticks {
  /** The first instant behind `after`; undefined when there is none for a thousand years. */
  next(after: number): number | undefined;
  /** The last instant that is not behind `upTo`; undefined when there was none. */
  last(upTo: number): number | undefined;
}

/** What is wrong with a pattern, and which part of it. */
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
const LONGEST = 500;
/** Any instant will do: what is never due behind it was not due before. */
const SOME_INSTANT = Date.UTC(2024, 0, 1);

/** What is wrong with a pattern; undefined when it is right and is due now and then. */
export function cronProblem(pattern: string): CronProblem | undefined {
  const whole = { offset: 0, length: Math.max(1, pattern.length) };
  if (pattern.length > LONGEST) return { ...whole, message: `must have at most ${LONGEST} characters` };
  const fields = [...pattern.matchAll(/\S+/g)].map((match) => ({ text: match[0], offset: match.index }));
  const [first] = fields;
  if (fields.length === 1 && first?.text.startsWith('@')) {
    if (NICKNAMES.includes(first.text.toLowerCase())) return undefined;
    return { message: `must be one of ${NICKNAMES.join(' ')}, or 5 fields: ${FORM}`, ...whole };
  }
  if (fields.length !== 5 && fields.length !== 6) {
    return { message: `must have 5 or 6 fields, not ${fields.length}: ${FORM}`, ...whole };
  }
  const meant = fields.length === 6 ? [SECOND, ...FIELDS] : FIELDS;
  for (const [i, { text, offset }] of fields.entries()) {
    if (reads(fields.map((_, other) => (other === i ? text : '*')).join(' '))) continue;
    const forms = 'a list `1,2`, a range `1-5`, steps `*/15` or `0-30/10`, or `*`';
    return { message: `\`${text}\` must be ${meant[i]}, ${forms}`, offset, length: text.length };
  }
  if (!reads(pattern)) return { message: `must be a cron pattern: ${FORM}`, ...whole };
  if (createTicks(pattern, 'UTC').next(SOME_INSTANT) !== undefined) return undefined;
  return { message: 'is never due: no year has such a day', ...whole };
}

/** Whether this runtime knows a time zone under an IANA name. */
export function isTimeZone(name: string): boolean {
  // Newer runtimes take an offset too, which is no zone: it knows no summer.
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Names of time zones that somebody may have meant. */
export function timeZones(): readonly string[] {
  return ['UTC', ...Intl.supportedValuesOf('timeZone')];
}

/**
 * The instants of a pattern. A time of the day that the clocks leave out on a day is due once, when they have gone on; one that
 * they go through twice is due once, at the first. Patterns with `*` or steps in seconds, minutes or hours are due as time
 * passes: not in what is left out, twice in what is repeated.
 *
 * @param pattern - in which `cronProblem` finds nothing wrong
 * @param timezone - an IANA name that `isTimeZone` knows
 */
export function createTicks(pattern: string, timezone: string): Ticks {
  // An offset in place of a name needs no calendar of the runtime, which is slow.
  const zone = /^(Etc\/)?(UTC|GMT)$/i.test(timezone) ? { utcOffset: 0 } : { timezone };
  const cron = new Cron(pattern, { ...OPTIONS, ...zone });
  // Whoever serves a schedule goes to and fro between two neighbours, and the calendar of the runtime is slow.
  let asked: { readonly after: number; readonly next: number | undefined }[] = [];
  return {
    next(after) {
      const known = asked.find((one) => one.after === after);
      if (known) return known.next;
      const next = cron.nextRun(new Date(after))?.getTime();
      asked = [{ after, next }, ...asked.slice(0, 1)];
      return next;
    },
    last: (upTo) => cron.previousRuns(1, new Date(upTo + 1))[0]?.getTime(),
  };
}

const OPTIONS = { mode: '5-or-6-parts', fixedTimeRule: 'no-wildcard' } as const;

function reads(pattern: string): boolean {
  try {
    new Cron(pattern, { ...OPTIONS, utcOffset: 0 });
    return true;
  } catch {
    return false;
  }
}
