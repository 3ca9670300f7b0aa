/** The instants of cron patterns, across clock changes, leap days and years, from vectors. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createTicks } from '../../src/engine/base/time/cron.ts';

interface Vector {
  readonly why: string;
  readonly cron: string;
  readonly timezone: string;
  readonly after: string;
  readonly due: readonly string[];
}

const vectors: readonly Vector[] = JSON.parse(
  readFileSync(new URL('../vectors/schedules.json', import.meta.url), 'utf8'),
);
const show = (instant: number | undefined) => (instant === undefined ? 'never' : new Date(instant).toISOString());

describe('a pattern is due', () => {
  it.each(vectors)('$why', ({ cron, timezone, after, due }) => {
    const ticks = createTicks(cron, timezone);
    const found: string[] = [];
    let at: number | undefined = Date.parse(after);
    for (let i = 0; i < due.length && at !== undefined; i++) {
      at = ticks.next(at);
      found.push(show(at));
    }
    expect(found).toEqual(due.map((text) => show(Date.parse(text))));
  });
});

/** Patterns with a year in which the clocks change at their instants, or a day is missing. */
const ODD = [
  ['30 2 * * *', 'Europe/Berlin', '2026-01-01'],
  ['0 2-3 * * *', 'Europe/Berlin', '2026-01-01'],
  ['*/20 1-2 * * *', 'America/New_York', '2026-01-01'],
  ['15 2 * * *', 'Australia/Lord_Howe', '2026-01-01'],
  ['45 1 * * *', 'Australia/Lord_Howe', '2026-01-01'],
  ['0 0 * * *', 'Africa/Cairo', '2026-01-01'],
  ['0 0 * * *', 'Pacific/Apia', '2011-06-01'],
  ['0 9 * * 1', 'UTC', '2026-01-01'],
] as const;

describe('last() finds the instants of next()', () => {
  it.each(ODD)('%s in %s', (cron, timezone, from) => {
    const ticks = createTicks(cron, timezone);
    let at = ticks.next(Date.parse(`${from}T00:00:00Z`)) as number;
    for (let i = 0; i < 800; i++) {
      const next = ticks.next(at) as number;
      expect(next).toBeGreaterThan(at);
      expect(show(ticks.last(next))).toBe(show(next));
      expect(show(ticks.last(next - 1))).toBe(show(at));
      at = next;
    }
  });
});
