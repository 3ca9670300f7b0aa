/** What the dashboard computes: addresses, durations, rows, time scales, differences, YAML. */

import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { linkTo, readAddress } from '../../src/dashboard/address.ts';
import { toRows } from '../../src/dashboard/execution/step-tree.ts';
import { toTimeScale } from '../../src/dashboard/execution/time-scale.ts';
import { formatDuration, oneLine } from '../../src/dashboard/format.ts';
import { compareLines } from '../../src/dashboard/parts/code-lines.tsx';
import { toYaml } from '../../src/dashboard/parts/yaml-text.ts';
import type { ExecutionStep } from '../../src/index.ts';

const step = (key: string, startedAt: number, duration = 1, kind = 'agent') =>
  ({ key, kind, name: key, status: 'completed', attempts: 1, startedAt, duration }) as ExecutionStep;
const DAY = 86_400_000;

describe('an address', () => {
  it('has the path and the query of a screen, whatever they contain', () => {
    const link = linkTo(['executions', 'a/b?c#d'], { status: 'failed', tag: 'a&b=c ü', none: undefined });
    expect(readAddress(link)).toEqual({ path: ['executions', 'a/b?c#d'], query: { status: 'failed', tag: 'a&b=c ü' } });
    expect(readAddress('#/executions/%E0%A4%A')).toEqual({ path: ['executions', '%E0%A4%A'], query: {} });
  });
});

describe('a duration', () => {
  it.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [1_234, '1.2 s'],
    [59_999, '59 s'],
    [3_600_000, '1 h'],
    [2 * DAY + 4 * 3_600_000, '2 d 4 h'],
  ])('%i ms is %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

describe('a text of anyone', () => {
  it('shows what could hide or move a part of it', () => {
    expect(oneLine('a\u202eb\u0000c\nd')).toBe('a\\u{202e}b\\u{0}c d');
    expect(oneLine('x'.repeat(300), 10)).toBe(`${'x'.repeat(10)}...`);
  });
});

describe('the rows of a time line', () => {
  it('are below the step that contains them, in the order in which they began', () => {
    const rows = toRows([
      ...[step('flow[1]', 5), step('flow[0]', 1), step('flow[1].foreach[1].steps[0]', 7)],
      ...[step('flow[1].foreach[0].steps[0]', 6), step('flow[1].foreach[0].steps[0].model[1]', 6)],
      ...[step('flow[2].cases.a.b[0]', 9), step('flow[3]', 10), step('flow[3].writer', 11)],
    ]);
    expect(rows.map(({ step: { key }, depth }) => `${'  '.repeat(depth)}${key}`)).toEqual([
      'flow[0]',
      'flow[1]',
      '  flow[1].foreach[0].steps[0]',
      '    flow[1].foreach[0].steps[0].model[1]',
      '  flow[1].foreach[1].steps[0]',
      // Its `switch` is not in the list.
      'flow[2].cases.a.b[0]',
      'flow[3]',
      '  flow[3].writer',
    ]);
  });
});

describe('a time scale', () => {
  it('folds the time in which nothing worked, so that work of milliseconds is seen in days', () => {
    const steps = [step('a', 0, 100), step('w', 100, 2 * DAY, 'wait'), step('b', 2 * DAY + 100, 100)];
    const { pieces, at } = toTimeScale(steps, 0, 2 * DAY + 200);
    expect(pieces.map(({ from, to, isFolded }) => [from, to, isFolded])).toEqual([
      [0, 100, false],
      [100, 2 * DAY + 100, true],
      [2 * DAY + 100, 2 * DAY + 200, false],
    ]);
    expect(at(0)).toBe(0);
    expect(at(100)).toBeCloseTo(0.47);
    expect(at(2 * DAY + 100)).toBeCloseTo(0.53);
    expect(at(2 * DAY + 200)).toBeCloseTo(1);
  });

  it('folds no short pause, and has a piece when there is no work at all', () => {
    expect(toTimeScale([step('a', 0, 100), step('b', 600, 100)], 0, 700).pieces).toHaveLength(1);
    expect(toTimeScale([], 5, 5).pieces).toMatchObject([{ from: 5, to: 6, left: 0, right: 1 }]);
    expect(toTimeScale([step('w', 0, DAY, 'wait')], 0, DAY).pieces).toMatchObject([{ isFolded: true, right: 1 }]);
  });
});

describe('the difference of two texts', () => {
  it('has the lines that are new, gone and equal', () => {
    const lines = compareLines('a\nb\nc\nd', 'a\nc\nx\nd').map(({ text, change }) => `${change} ${text}`);
    expect(lines).toEqual(['same a', 'removed b', 'same c', 'added x', 'same d']);
    expect(compareLines('a', 'a')).toEqual([{ text: 'a', change: 'same' }]);
    expect(compareLines('a\n', 'a')).toEqual([
      { text: 'a', change: 'same' },
      { text: '', change: 'removed' },
    ]);
    const long = (word: string) => Array.from({ length: 4_000 }, (_, i) => `${word} ${i}`).join('\n');
    expect(compareLines(long('a'), long('b'))).toHaveLength(8_000);
  });
});

describe('a value as YAML', () => {
  it.each([
    [{ name: 'order', flow: [{ agent: 'a', config: { x: [1, [2, { y: null }]] } }], empty: {}, none: [] }],
    [{ '': 1, 'a: b': '# no', yes: 'yes', n: '007', time: '12:30', multi: 'a\n  b\n\nc\n', end: 'x ', tab: '\t' }],
    ['- not a list'],
    [[]],
    [[{ a: 1, b: [{ c: 'd' }] }, 'x']],
    [{ text: '${input.a}', star: '*a', block: '\n a', del: '\u007f', sep: 'a\u2028b' }],
  ])('%j is the same when it is read', (value) => {
    expect(parse(toYaml(value))).toEqual(value);
  });
});
