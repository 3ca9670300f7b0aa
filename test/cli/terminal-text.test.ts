/** Durations as the command line prints them. */

import { expect, it } from 'vitest';
import { formatDuration } from '../../src/cli/terminal/text.ts';

it.each([
  [0, '0ms'],
  [1500, '1.5s'],
  [59_960, '1m 00s'],
  [3_599_400, '59m 59s'],
  [3_599_600, '1h 00m'],
  [7_200_000, '2h 00m'],
  [86_400_000, '24h 00m'],
])('%i ms are %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
