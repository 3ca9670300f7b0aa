/** How commits become statements and values become parameters, without a database. */

import { describe, expect, it } from 'vitest';
import { statement, toArray } from '../../src/adapters/storage/postgres/drivers/driver.ts';
import { needsTransaction, planWrites } from '../../src/adapters/storage/postgres/executions/plan-writes.ts';
import { toTextColumn } from '../../src/adapters/storage/postgres/tables/columns.ts';
import { readText } from '../../src/adapters/storage/sql/columns.ts';
import {
  change,
  end,
  entry,
  execution,
  retrying,
  starting,
  step,
} from '../../src/conformance/storage-suite/context.ts';
import type { CommitEntry } from '../../src/engine/execution/stored-execution.ts';

const places = (batch: readonly CommitEntry[]) => planWrites(batch).map((write) => write.places);
const wait = { status: 'waiting', dueAt: 1 } as const;

describe('a batch is divided into as few statements as its order allows', () => {
  it.each<[string, CommitEntry[], number[][]]>([
    ['steps of many executions', [1, 2, 3].map((n) => entry(n, { steps: [step('a')] })), [[0, 1, 2]]],
    [
      'starts, steps and ends',
      [starting(execution(1)), entry(2, { steps: [step('a')] }), entry(3, { end: end() })],
      [[0, 1, 2]],
    ],
    ['a step, then the end', [entry(1, { steps: [step('a')] }), entry(1, { end: end() })], [[0, 1]]],
    ['the end, then a step', [entry(1, { end: end() }), entry(1, { steps: [step('a')] })], [[0], [1]]],
    ['a release, then a step', [entry(1, { release: wait }), entry(1, { steps: [step('a')] })], [[0], [1]]],
    ['a start, then a step', [starting(execution(1)), entry(1, { steps: [step('a')] })], [[0], [1]]],
    ['two starts under one id', [starting(execution(1)), starting(execution(1, { seed: 'f'.repeat(32) }))], [[0], [1]]],
    [
      'two changes of one state',
      [1, 2].map((n) => entry(n, { steps: [step('a')], state: change(n - 1, {}) })),
      [[0], [1]],
    ],
    [
      'changes of two states',
      [1, 2].map((n) => entry(n, { steps: [step('a')], state: change(0, {}, `e${n}`) })),
      [[0, 1]],
    ],
    [
      'a step, then a state of one execution',
      [entry(1, { steps: [step('a')] }), entry(1, { steps: [step('b')], state: change(0, {}) })],
      [[0], [1]],
    ],
    [
      'one execution under two epochs',
      [entry(1, { steps: [step('a')] }), entry(1, { epoch: 2, steps: [step('b')] })],
      [[0], [1]],
    ],
    [
      'an entry that writes nothing among others',
      [entry(1, { steps: [step('a')] }), entry(2), entry(3, { steps: [step('a')] })],
      [[0], [1], [2]],
    ],
    [
      'a start that ends at once',
      [starting(execution(1)), starting(execution(2), { end: end() }), starting(execution(3))],
      [[0], [1], [2]],
    ],
  ])('%s', (_, batch, expected) => {
    expect(places(batch)).toEqual(expected);
  });

  it('500 entries, 2,000 steps and eight million characters at most', () => {
    const sizes = (batch: readonly CommitEntry[]) => places(batch).map(({ length }) => length);
    expect(sizes(Array.from({ length: 1200 }, (_, n) => entry(n, { steps: [step('a')] })))).toEqual([500, 500, 200]);
    const many = Array.from({ length: 300 }, (_, i) => step(`s${i}`));
    expect(sizes(Array.from({ length: 13 }, (_, n) => entry(n, { steps: many })))).toEqual([6, 6, 1]);
    const large = step('a', { output: 'x'.repeat(3_000_000) });
    expect(sizes(Array.from({ length: 7 }, (_, n) => entry(n, { steps: [large] })))).toEqual([3, 3, 1]);
  });

  it('of two records of one key, the later one replaces an attempt, but not a result', () => {
    const [write] = planWrites([
      entry(1, { steps: [retrying('a', 1), step('b')] }),
      entry(1, { steps: [step('a', { attempts: 2 }), step('b', { output: 'other' })] }),
    ]);
    expect(write?.steps.map(({ part, json }) => [part.key, part.attempts, json])).toEqual([
      ['a', 2, '{"of":"a"}'],
      ['b', 1, '{"of":"b"}'],
    ]);
  });

  it('only a start with an end or a state change needs a transaction', () => {
    expect(
      [{}, { end: end() }, { state: change(0, {}) }].map((fields) => needsTransaction(starting(execution(1), fields))),
    ).toEqual([false, true, true]);
    expect(needsTransaction(starting(execution(1), { steps: [step('a')], release: wait }))).toBe(false);
    expect(needsTransaction(entry(1, { end: end(), state: change(0, {}) }))).toBe(false);
  });
});

describe('values', () => {
  const TEXTS = [
    'a',
    '',
    '"',
    '"a"',
    'a"b',
    '\\',
    'a\\b',
    '\n',
    'a\tb',
    '\u0000',
    '\ud800',
    'a\udc00b',
    '😀',
    '\ufeffa',
    'a\ufeff',
    '{a,b}',
    'NULL',
    "it's",
  ];

  it.each(TEXTS)('text %j is read as it was written, and contains nothing that Postgres or a driver alters', (text) => {
    const column = toTextColumn(text);
    expect(readText({ column }, 'column', 'a row')).toBe(text);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern must find control characters
    expect(column).not.toMatch(/[\u0000-\u001f]|\p{Surrogate}|^\ufeff/u);
  });

  it('different texts stay different', () => {
    const all = [...TEXTS, ...TEXTS.map((text) => JSON.stringify(text))];
    expect(new Set(all.map(toTextColumn)).size).toBe(new Set(all).size);
  });

  it('an array is written as Postgres reads it', () => {
    expect(toArray(['a', 'b c', null, 1, 2.5, '{"x":"\\n"}'])).toBe('{"a","b c",null,1,2.5,"{\\"x\\":\\"\\\\n\\"}"}');
    expect(toArray([])).toBe('{}');
    const alike = [
      ['a"\\', 'a"\\', 'b', 'a"\\', null],
      [null, null, 'null', null],
      [1, 1, 1, 2.5],
      ['', '', 'a'],
    ];
    for (const values of alike)
      expect(toArray(values)).toBe(`{${values.map((value) => JSON.stringify(value)).join()}}`);
  });

  it("a statement's name depends on its text", () => {
    expect(statement('SELECT 1').name).toBe(statement('SELECT 1').name);
    expect(statement('SELECT 1').name).not.toBe(statement('SELECT 2').name);
    expect(statement('SELECT 1').name).toMatch(/^ensemble_[0-9a-f]{16}$/);
  });
});
