/** Parsing of durations, and suggestions for wrong ones. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nearestDuration, parseDuration } from '../../src/engine/base/time/duration.ts';
import { scaled } from '../slowdown.ts';

describe('durations', () => {
  test.each([
    ['0s', 0],
    ['250ms', 250],
    ['90s', 90_000],
    ['1.5m', 90_000],
    ['1h30m', 5_400_000],
    ['1 h 30 m', 5_400_000],
    [' 2d ', 172_800_000],
    ['1w', 604_800_000],
    ['1m1ms', 60_001],
    ['0.4ms', 0],
  ])('%j is %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each([
    '',
    ' ',
    '5',
    's',
    '5 5s',
    '5s 5',
    '-5s',
    '+5s',
    '.5s',
    '5.s',
    '5S',
    '5 m s',
    '1e3s',
    'PT5M',
    '5mo',
    '5y',
    '5s\n',
  ])('%j is not a duration', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  test.each([
    ['5 minutes', '5m'],
    ['1 Hour 30 mins', '1h30m'],
    ['10 sec', '10s'],
    ['3 Days', '3d'],
    ['2 weeks', '2w'],
    ['20 milliseconds', '20ms'],
    ['5S', '5s'],
    ['1 hour and 30 minutes', undefined],
    ['5 months', undefined],
    ['5', undefined],
    ['PT5M', undefined],
    ['soon', undefined],
  ])('for %j the suggestion is %j', (text, suggestion) => {
    expect(nearestDuration(text)).toBe(suggestion);
  });

  test('parts in any order are added up, with and without spaces', () => {
    const unit = fc.constantFrom(['ms', 1], ['s', 1000], ['m', 60_000], ['h', 3_600_000], ['d', 86_400_000] as const);
    const part = fc.tuple(fc.nat(10_000), unit);
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), fc.constantFrom('', ' '), (parts, space) => {
        const text = parts.map(([amount, [name]]) => `${amount}${space}${name}`).join(space);
        const sum = parts.reduce((ms, [amount, [, each]]) => ms + amount * Number(each), 0);
        expect(parseDuration(text)).toBe(sum);
      }),
    );
  });

  test('a long text that is not a duration is refused at once', () => {
    const start = performance.now();
    expect(parseDuration(`${'1s '.repeat(100_000)}x`)).toBeUndefined();
    expect(parseDuration('1'.repeat(300_000))).toBeUndefined();
    expect(performance.now() - start).toBeLessThan(scaled(1000));
  });
});
