/** Parses and formats instants in the same way on every runtime, which `Date.parse` does not. */

import { EvaluationProblem } from '../evaluation-problem.ts';

// Years 0 to 9999, which ISO text writes with four digits.
const EARLIEST = -62_167_219_200_000;
const LATEST = 253_402_300_799_999;

// Includes spaces around the instant.
const MAX_INSTANT_LENGTH = 64;

const ISO = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(Z|[+-]\d{2}:?\d{2})?)?$/;

/**
 * @param value - Unix ms, or `YYYY-MM-DD`, optionally with `THH:mm[:ss[.SSS]]` and `Z` or an offset; without one it is UTC
 * @returns Unix ms
 * @throws EvaluationProblem
 */
export function parseInstant(value: number | string): number {
  if (typeof value === 'number') return inRange(Math.trunc(value));
  const match = value.length > MAX_INSTANT_LENGTH ? null : ISO.exec(value.trim());
  if (!match)
    throw new EvaluationProblem('the text is not an instant: write 2026-01-31, 2026-01-31T08:00:00Z or Unix ms');
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part) => Number(part ?? 0));
  const ms = Number((match[7] ?? '').slice(0, 3).padEnd(3, '0'));
  const offset = parseOffset(match[8]);
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  // `Date` moves a day that does not exist to another month.
  if (date.getUTCMonth() !== month - 1 || hour > 23 || minute > 59 || second > 59) {
    throw new EvaluationProblem('the text names a day or a time that does not exist');
  }
  return inRange(date.getTime() + ((hour * 60 + minute - offset) * 60 + second) * 1_000 + ms);
}

function parseOffset(text: string | undefined): number {
  if (!text || text === 'Z') return 0;
  const hours = Number(text.slice(1, 3));
  const minutes = Number(text.slice(-2));
  if (hours > 23 || minutes > 59) throw new EvaluationProblem('the offset from UTC does not exist');
  return (text[0] === '-' ? -1 : 1) * (hours * 60 + minutes);
}

/** @returns text such as `2026-01-31T08:00:00.000Z` @throws EvaluationProblem outside the years 0 to 9999 */
export function toIsoText(instant: number): string {
  return new Date(inRange(instant)).toISOString();
}

const TOKENS: Readonly<Record<string, (date: Date) => string>> = {
  YYYY: (date) => pad(date.getUTCFullYear(), 4),
  MM: (date) => pad(date.getUTCMonth() + 1, 2),
  M: (date) => String(date.getUTCMonth() + 1),
  DD: (date) => pad(date.getUTCDate(), 2),
  D: (date) => String(date.getUTCDate()),
  HH: (date) => pad(date.getUTCHours(), 2),
  H: (date) => String(date.getUTCHours()),
  mm: (date) => pad(date.getUTCMinutes(), 2),
  ss: (date) => pad(date.getUTCSeconds(), 2),
  SSS: (date) => pad(date.getUTCMilliseconds(), 3),
};

/**
 * Formats an instant in UTC. Text in `[brackets]`, the letters T and Z, and characters that are not letters stay as they are.
 * @throws EvaluationProblem for other letters that are not a token
 */
export function formatInstant(instant: number, format: string): string {
  if (format.length > 200) throw new EvaluationProblem('a date format has at most 200 characters');
  const date = new Date(inRange(instant));
  return format.replace(/\[([^\]]*)\]|([A-Za-z])\2*/g, (run: string, quoted: string | undefined) => {
    if (quoted !== undefined) return quoted;
    if (Object.hasOwn(TOKENS, run)) return (TOKENS[run] as (date: Date) => string)(date);
    if (run === 'T' || run === 'Z') return run;
    throw new EvaluationProblem(
      `${run} is not part of a date format: use YYYY MM M DD D HH H mm ss SSS, text in [brackets]`,
    );
  });
}

function pad(value: number, length: number): string {
  return String(value).padStart(length, '0');
}

function inRange(instant: number): number {
  if (instant >= EARLIEST && instant <= LATEST) return instant;
  throw new EvaluationProblem('the instant is outside the years 0 to 9999; Unix time is counted in milliseconds here');
}
