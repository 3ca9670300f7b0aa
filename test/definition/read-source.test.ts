/** The text of a definition becomes exact JSON data with places, and a hostile text is refused fast. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Document, isScalar, parseDocument, Scalar, stringify, visit } from 'yaml';
import type { DefinitionIssue } from '../../src/engine/base/errors.ts';
import type { Json } from '../../src/engine/base/json/json.ts';
import { readSource, type SourceMap } from '../../src/engine/definition/source/read-source.ts';
import { scaled } from '../slowdown.ts';

function dataOf(text: string): Json {
  const result = readSource(text);
  if (!result.ok) throw new Error(`refused: ${result.issues.map((issue) => issue.message).join('; ')}`);
  return result.value;
}

function mapOf(text: string): SourceMap {
  const result = readSource(text);
  if (!result.ok) throw new Error(`refused: ${result.issues.map((issue) => issue.message).join('; ')}`);
  return result.map;
}

function issuesOf(text: string): readonly DefinitionIssue[] {
  const result = readSource(text);
  if (result.ok) throw new Error(`accepted as ${JSON.stringify(result.value)?.slice(0, 200)}`);
  return result.issues;
}

function brief(text: string): string[] {
  return issuesOf(text).map(({ line, column, path, message }) => `${line}:${column} ${path}: ${message}`);
}

/**
 * The milliseconds of the fastest of several runs, because the machine may be busy. A slow function is slow in every run.
 *
 * @param boundMs - the first run below it is enough
 */
function fastest(run: () => unknown, boundMs: number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 30 && best >= boundMs; i++) {
    const start = performance.now();
    run();
    best = Math.min(best, performance.now() - start);
  }
  return best;
}

/** The fastest of several runs stays below a bound that counts for a quiet machine. */
function expectFast(run: () => unknown, boundMs: number): void {
  const best = fastest(run, boundMs);
  if (best >= boundMs) expect(best).toBeLessThan(scaled(boundMs));
}

const TOO_DEEP = 'the document is nested deeper than 64 levels';

describe('hostile texts', () => {
  test('a nine-level alias bomb is refused in less than 50 ms', () => {
    const names = 'abcdefghi';
    const bomb = [...names]
      .map(
        (name, i) =>
          `${name}: &${name} [${Array(9)
            .fill(i === 0 ? 'x' : `*${names[i - 1]}`)
            .join(',')}]`,
      )
      .join('\n');
    expect(bomb.length).toBeLessThan(400);
    expect(brief(bomb)).toEqual([
      '6:17 f[3]: the aliases of the document expand to more than 1048576 characters; use fewer aliases',
    ]);
    expectFast(() => readSource(bomb), 50);
  });

  test('a few aliases are replaced by their values', () => {
    const text = 'retry: &r { maxAttempts: 3 }\na: { retry: *r }\nb: { retry: *r }\n';
    expect(dataOf(text)).toEqual({
      retry: { maxAttempts: 3 },
      a: { retry: { maxAttempts: 3 } },
      b: { retry: { maxAttempts: 3 } },
    });
  });

  test('1,000 levels, then 2,000, then half a million in the same process are refused, not fatal', () => {
    for (const opening of ['[', '{', '{a: ', '- ', '? ', '[? ', '{? ', ': ', '&a [', '!!seq [', '- [', '[{', '{a: [']) {
      for (const levels of [1000, 2000, Math.floor((1 << 19) / opening.length)]) {
        const messages = issuesOf(opening.repeat(levels)).map((issue) => issue.message);
        expect(messages, `${opening} x ${levels}`).toEqual([TOO_DEEP]);
      }
    }
  });

  const indented = (levels: number) => Array.from({ length: levels }, (_, i) => `${' '.repeat(i)}a:\n`).join('');
  test.each([
    ['flow lists', (n: number) => '['.repeat(n) + ']'.repeat(n)],
    ['flow maps', (n: number) => `${'{a: '.repeat(n)}1${'}'.repeat(n)}`],
    ['lists in a line', (n: number) => `${'- '.repeat(n)}1`],
    ['indented maps', (n: number) => indented(n)],
    [
      'lists under keys',
      (n: number) =>
        `${Array.from({ length: n / 2 }, (_, i) => `${'  '.repeat(i)}- a:\n`).join('')}${n % 2 ? `${'  '.repeat(n / 2)}- 1` : ''}`,
    ],
    [
      'lists in block maps',
      (n: number) => `${indented(32)}${' '.repeat(32)}${'['.repeat(n - 32)}${']'.repeat(n - 32)}`,
    ],
    [
      'pairs in flow lists',
      (n: number) => `${'[a: '.repeat(Math.floor(n / 2))}${n % 2 ? '[]' : '1'}${']'.repeat(Math.floor(n / 2))}`,
    ],
    [
      'JSON',
      (n: number) => `${'{"a":['.repeat(Math.floor(n / 2))}${n % 2 ? '{}' : ''}${']}'.repeat(Math.floor(n / 2))}`,
    ],
    [
      'aliases',
      (n: number) => `x: &x ${'['.repeat(40)}${']'.repeat(40)}\ny: ${'['.repeat(n - 41)}*x${']'.repeat(n - 41)}`,
    ],
  ])('64 levels of %s are read, 65 are not', (_style, nest) => {
    expect(readSource(nest(64)).ok).toBe(true);
    expect(issuesOf(nest(65))[0]?.message).toMatch(/^the document is nested deeper than 64 levels/);
  });

  test.each([
    ['a single-quoted text', `a: '${'['.repeat(5000)}'`],
    ['a double-quoted text', `a: "\\"${'[{'.repeat(5000)}"`],
    ['a plain text with quotes', `a: it's "so" ${'[{'.repeat(5000)}\nb: 'x'`],
    ['a literal', `a: |\n  ${'['.repeat(5000)}\n  "\nb: 1`],
    ['a folded text with an indicator', `a: >2-\n  ${'- '.repeat(5000)}x`],
    ['a comment', `a: 1 # ${'['.repeat(5000)}\n# '{\nb: 2`],
    ['a text in a flow list', `a: ["${'['.repeat(5000)}", '${'{'.repeat(5000)}']`],
    ['an expression', `a: [${'${f({})}, '.repeat(500)}]`],
    ['a list of siblings', `a: [${'[[]],'.repeat(5000)}]`],
  ])('brackets in %s do not count as nesting', (_what, text) => {
    expect(readSource(text).ok).toBe(true);
  });

  test.each([
    '!!js/function "() => 1"',
    '!!python/object:os.system {}',
    '!foo x',
    '!!binary AAAA',
    '!!set {a}',
    '!e!x y',
  ])('the tag of %s is refused', (value) => {
    const [issue, ...more] = issuesOf(`a: ${value}`);
    expect(more).toEqual([]);
    expect(issue).toMatchObject({ line: 1, column: 4 });
    expect(issue?.message).toMatch(/tag/);
  });

  test('tags of the core schema are read', () => {
    expect(dataOf('a: !!str 5\nb: !!int "12"\nc: !!map {}\nd: !!seq []\ne: !!null ""\nf: !!bool "true"')).toEqual({
      a: '5',
      b: 12,
      c: {},
      d: [],
      e: null,
      f: true,
    });
  });

  test('a merge key and the key __proto__ are refused, in every spelling', () => {
    expect(brief('<<: {__proto__: {x: 1}}')).toEqual([
      '1:1 ["<<"]: YAML 1.2 has no merge keys (`<<`); write the keys out, or put "<<" in quotes for a key of that name',
      '1:6 ["<<"].__proto__: the key `__proto__` is never allowed; use another name',
    ]);
    for (const key of [
      '__proto__',
      '"__proto__"',
      "'__proto__'",
      '"\\u005f_proto__"',
      '? __proto__\n',
      '!!str __proto__',
    ]) {
      expect(issuesOf(`${key}: {polluted: true}`)[0]?.message, key).toMatch(
        /`__proto__` is never allowed|can't be a key/,
      );
    }
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect(dataOf('"<<": 1\nconstructor: 2')).toEqual({ '<<': 1, constructor: 2 });
  });

  test.each([
    ['a list in itself', '&a [*a]', '1:5 [0]: the anchor `&a` contains itself through this alias; JSON has no cycles'],
    [
      'a map in itself',
      'x: &a\n  b:\n    - *a',
      '3:7 x.b[0]: the anchor `&a` contains itself through this alias; JSON has no cycles',
    ],
    ['an alias before its anchor', 'x: *a\ny: &a 1', '1:4 x: there is no anchor `&a` before this alias'],
    ['a duplicate key', 'a: 1\nb: 2\na: 3', '3:1 a: the key `a` is given twice in this map; keep one of the two'],
    [
      'a duplicate in other spelling',
      '{"a": 1, b: {1: x, "1": y}}',
      '1:20 b["1"]: the key `1` is given twice in this map; keep one of the two',
    ],
    [
      'a second document',
      'a: 1\n---\nb: 2',
      '2:1 : the text contains several documents; keep one and move each of the others to its own file',
    ],
    [
      'a second, empty document',
      'a: 1\n---\n',
      '2:1 : the text contains several documents; keep one and move each of the others to its own file',
    ],
    [
      'an older YAML',
      '%YAML 1.1\n---\na: yes',
      '1:1 : the text asks for another version of YAML; only 1.2 is supported, so remove this line',
    ],
  ])('%s is refused', (_what, text, issue) => {
    expect(brief(text)).toEqual([issue]);
  });

  test('integers beyond 2^53, NaN and infinities are refused, not rounded', () => {
    expect(brief('- 9007199254740992\n- -9223372036854775808\n- 0xffffffffffffffff\n- .nan\n- -.inf\n- 1e400')).toEqual(
      [
        '1:3 [0]: the integer `9007199254740992` is beyond 2^53 and would be rounded; put it in quotes for text',
        '2:3 [1]: the integer `-9223372036854775808` is beyond 2^53 and would be rounded; put it in quotes for text',
        '3:3 [2]: the integer `0xffffffffffffffff` is beyond 2^53 and would be rounded; put it in quotes for text',
        "4:3 [3]: JSON can't hold `.nan`; use null, or put it in quotes for text",
        "5:3 [4]: JSON can't hold `-.inf`; use null, or put it in quotes for text",
        "6:3 [5]: JSON can't hold `1e400`; use null, or put it in quotes for text",
      ],
    );
  });

  test('scalars have the types of the core schema of YAML 1.2', () => {
    const text =
      '[9007199254740991, 0o14, 012, 0x1F, 1e3, .5, -0, no, Yes, on, 2001-01-01, 1_000, 12:30:45, ~, Null, TRUE, "1", 1.2.3, ]';
    const value = dataOf(text) as Json[];
    expect(value).toEqual([
      2 ** 53 - 1,
      12,
      12,
      31,
      1000,
      0.5,
      0,
      'no',
      'Yes',
      'on',
      '2001-01-01',
      '1_000',
      '12:30:45',
      null,
      null,
      true,
      '1',
      '1.2.3',
    ]);
    expect(Object.is(value[6], 0)).toBe(true);
  });

  test('keys are text as written, so that the cases of a switch can be numbers', () => {
    expect(dataOf('200: a\n1.0: b\ntrue: c\nnull: d\n"": e')).toEqual({
      200: 'a',
      '1.0': 'b',
      true: 'c',
      null: 'd',
      '': 'e',
    });
    for (const text of ['? [a]\n: 1', '? {a: 1}\n: 1', '{[a]: 1}', 'x: &k a\n*k : 1', 'subject: {{name}}']) {
      expect(issuesOf(text)[0]?.message, text).toMatch(/can't be a key; keys are text/);
    }
    expect(issuesOf(': x')[0]?.message).toBe('expected a key before the `:`; write "" for an empty key');
  });

  test('a byte-order mark is skipped and does not change columns', () => {
    expect(dataOf('\ufeffa: 1')).toEqual({ a: 1 });
    expect(mapOf('\ufeffa: 1').locate(['a'])).toEqual({ line: 1, column: 4 });
  });

  test.each([
    ['NUL', 'a: b\0c', '1:5', /NUL character \(U\+0000\).*UTF-8/],
    ['UTF-16 read as bytes', 'a\0:\0 \0b\0', '1:2', /Save it as UTF-8/],
    ['a C1 character', 'a: 1\nb: "\u0085"', '2:5', /control character U\+0085/],
    ['an escape character', 'a: \u001b[31m', '1:4', /control character U\+001B/],
    ['half a surrogate pair', 'a: \ud83d', '1:4', /surrogate pair \(U\+D83D\)/],
    ['half a pair by an escape', '{"a": "\\ud83d"}', '1:7', /surrogate/],
  ])('%s is refused, and its frame is safe to print', (_what, text, place, message) => {
    const [issue] = issuesOf(text);
    expect(`${issue?.line}:${issue?.column}`).toBe(place);
    expect(issue?.message).toMatch(message);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be printed
    expect(issue?.frame).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  });

  test('escaped surrogate pairs, as in JSON, are characters', () => {
    expect(dataOf('{"a": "\\ud83d\\ude00"}')).toEqual({ a: '😀' });
  });

  test('1 MiB is read; one byte more, or a comment of 10 MB, is refused', () => {
    const text = (bytes: number) => `a: ${'é'.repeat((bytes - 4) / 2)}x`;
    expect(readSource(text(1 << 20)).ok).toBe(true);
    for (const large of [`${text(1 << 20)}y`, `a: 1 #${'x'.repeat(10_000_000)}`]) {
      expect(issuesOf(large)).toEqual([{ path: '', message: 'the document is larger than 1048576 bytes; split it' }]);
    }
  });

  test.each(['', ' \n\n', '# only a comment\n', '---\n', '\ufeff'])('%j is an empty document', (text) => {
    expect(issuesOf(text)).toEqual([{ path: '', message: 'the document is empty' }]);
  });

  test('a text full of mistakes is refused in linear time, and the first hundred are reported', () => {
    for (const text of ['[,', '- {', 'a: b: c\n', '"\\q', '@ \n', ']']) {
      const read = (length: number) => () => readSource(text.repeat(length / text.length));
      // The fastest of 30 runs.
      const boundMs = 40 * fastest(read(8_000), 0) + 50;
      expect(fastest(read(64_000), boundMs), text).toBeLessThan(boundMs);
    }
    const issues = issuesOf('a: @\n'.repeat(500));
    expect(issues).toHaveLength(101);
    expect(issues[100]).toEqual({ path: '', message: 'only the first 100 problems are shown; fix these first' });
  });

  test('a map of 50,000 keys is read fast', () => {
    const text = Array.from({ length: 50_000 }, (_, i) => `k${i}: 1\n`).join('');
    expect(Object.keys(dataOf(text) as object)).toHaveLength(50_000);
    expectFast(() => readSource(text), 5000);
  });
});

describe('problems', () => {
  test('all problems of a text are reported at once, in order, with their places and frames', () => {
    const text = 'name: x\nflow:\n  - agent: !custom a\n    retry: 12345678901234567890\n    retry: 2\n? [k]\n: 1\n';
    expect(brief(text)).toEqual([
      "3:12 : unknown tag: !custom; only the tags of YAML's core schema (!!str, !!int, ...) are read",
      '4:12 flow[0].retry: the integer `12345678901234567890` is beyond 2^53 and would be rounded; put it in quotes for text',
      '5:5 flow[0].retry: the key `retry` is given twice in this map; keep one of the two',
      "6:3 : a list, a map, an alias or a tagged value can't be a key; keys are text (put text that starts with { or [ in quotes)",
    ]);
    expect(issuesOf(text)[1]?.frame).toBe(
      [
        '   2 | flow:',
        '   3 |   - agent: !custom a',
        '   4 |     retry: 12345678901234567890',
        `     |            ${'^'.repeat(20)}`,
      ].join('\n'),
    );
  });

  test.each([
    ['a deeper key', 'a: 1\n b: 2', '1:4', 'this value continues into another `key:`'],
    ['a stray bracket', 'a: 1\n]', '2:1', 'Unexpected flow-seq-end token'],
    ['an open list, without the errors that follow from it', 'a: [1\na: 2\na: 3', '2:1', 'expected the closing ]'],
    ['a tab', 'a:\n\t- b', '2:1', 'a tab is used as indentation; use spaces'],
    ['a colon in a text', 'a: b: c', '1:4', 'this value continues into another `key:`'],
    ['a missing colon', 'a: 1\nb\nc: 2', '2:1', 'expected `key: value`, but there is no `:` after the key'],
    ['an open quote', "a: 'x", '1:6', "expected the closing quote ' before this place"],
    ['an open list', 'a: [1, 2\nb: 3', '2:1', 'expected the closing ] before this place'],
    ['a wrong indentation', 'a:\n  - b\n c: 1', '3:2', 'All mapping items must start at the same column'],
    [
      'a reserved character',
      'a: @x',
      '1:4',
      'Plain value cannot start with reserved character @; put the text in quotes',
    ],
    ['a list next to a map', '- a\nb: 1\nc: 2', '2:1', 'expected the end of the value here'],
  ])('%s is one issue of one line', (_what, text, place, message) => {
    const [issue, ...more] = issuesOf(text);
    expect(more).toEqual([]);
    expect(`${issue?.line}:${issue?.column}`).toBe(place);
    expect(issue?.message).toContain(message);
    expect(issue?.message).toMatch(/^not valid YAML: [^\n]+$/);
  });

  test('two mistakes in two places are two issues', () => {
    expect(brief('a: @x\na: 1').map((text) => text.slice(0, 4))).toEqual(['1:4 ', '2:1 ']);
    expect(brief('a: @x\nb: 1\nc: "\\q"\nd: b: c').map((text) => text.slice(0, 4))).toEqual(['1:4 ', '3:5 ', '4:4 ']);
  });
});

describe('unquoted expressions', () => {
  test.each([
    ['a: { id: ${input.id} }', { a: { id: '${input.id}' } }],
    ['a: { id: ${x.y}, b: pre ${y} post, c: 1 }', { a: { id: '${x.y}', b: 'pre ${y} post', c: 1 } }],
    ['a: [${x}, ${f([1, 2])}, ${ {b: "}"} }]', { a: ['${x}', '${f([1, 2])}', '${ {b: "}"} }'] }],
    ['a: ${x ? 1 : 2}\nb: 1', { a: '${x ? 1 : 2}', b: 1 }],
    ['- ${x ? 1 : 2}', ['${x ? 1 : 2}']],
    ['a: [${ {k: ${b}} }, c]', { a: ['${ {k: ${b}} }', 'c'] }],
    ["a: { b: ${headers['X-A, b']} }", { a: { b: "${headers['X-A, b']}" } }],
    ['{ "${a}": 1, ${b}: 2 }', { '${a}': 1, '${b}': 2 }],
    ["a: ${b == ' #'} # comment ${c", { a: "${b == ' #'}" }],
    ['a: | # ${\n  ${x ? 1 : 2} {\nb: "${c: d}"', { a: '${x ? 1 : 2} {\n', b: '${c: d}' }],
  ])('%j keeps its expressions whole', (text, value) => {
    expect(dataOf(text)).toEqual(value);
  });

  test('places after expressions and inside expressions are exact', () => {
    const map = mapOf('a: { id: ${input.id}, b: x ${ {k: 1}.k } }');
    expect(map.locate(['a', 'id'], { offset: 8 })).toEqual({ line: 1, column: 18 });
    expect(map.locate(['a', 'b'], { offset: 5 })).toEqual({ line: 1, column: 31 });
    expect(mapOf('{ ${b}: 2 }').locate(['${b}'], { key: true })).toEqual({ line: 1, column: 3 });
  });

  test('YAML reads an expression that is not closed on its line, and issues show the text as written', () => {
    expect(dataOf('a: ${b')).toEqual({ a: '${b' });
    expect(dataOf('a: ${b\nc: d}')).toEqual({ a: '${b', c: 'd}' });
    const [issue] = issuesOf('a: { b: ${c} ${d: @ }');
    expect(JSON.stringify(issue)).not.toMatch(/[\ue000-\uf8ff]/);
    expect(brief('a: {${x}: 1, ${x}: 2}')).toEqual([
      '1:14 a["${x}"]: the key `${x}` is given twice in this map; keep one of the two',
    ]);
  });

  test('characters of the private use area pass unchanged', () => {
    expect(dataOf('a: "\uf620 ${b}"')).toEqual({ a: '\uf620 ${b}' });
    // The stand-ins of expressions are in this area, so a text with these characters is not masked.
    expect(dataOf('a: { b: "${c}", d: "\\uf620" }')).toEqual({ a: { b: '${c}', d: '\uf620' } });
    expect(issuesOf('a: { b: ${c}, d: "\\uf620" }')[0]?.message).toContain('whether it needs quotes');
  });
});

describe('places', () => {
  const text = `name: &n orders
flow:
  - agent: a
    input: { id: 1, "odd key": [x, y] }
  - &step
    agent: b
again: [*step]
empty:
word: *n
set: { k }
`;
  test.each<[string, (string | number)[], { key?: boolean; offset?: number }, string]>([
    ['the document', [], {}, '1:1'],
    ['a value', ['name'], {}, '1:10'],
    ['a key', ['name'], { key: true }, '1:1'],
    ['a list', ['flow'], {}, '3:3'],
    ['a nested value', ['flow', 0, 'input', 'id'], {}, '4:18'],
    ['a quoted key', ['flow', 0, 'input', 'odd key'], { key: true }, '4:21'],
    ['an item', ['flow', 0, 'input', 'odd key', 1], {}, '4:36'],
    ['an alias', ['again', 0], {}, '7:9'],
    ['a value inside an alias', ['again', 0, 'agent'], {}, '6:12'],
    ['a key without value', ['empty'], {}, '8:7'],
    ['the nearest ancestor of a missing value', ['flow', 1, 'input', 'id'], {}, '6:5'],
    ['the nearest ancestor of an item past the end', ['flow', 9], {}, '3:3'],
    ['the nearest ancestor of a missing key', ['flow', 'x'], { key: true }, '3:3'],
    ['the start of an ancestor, whatever the offset', ['name', 'x'], { offset: 3 }, '1:10'],
    ['a character of an alias', ['word'], { offset: 2 }, '1:12'],
    ['a key without a colon', ['set', 'k'], {}, '10:8'],
  ])('finds %s', (_what, path, options, place) => {
    const found = mapOf(text).locate(path, options);
    expect(`${found?.line}:${found?.column}`).toBe(place);
  });

  // Each source contains one bad token, BAD. Its offset in the value must lead to its place in the text.
  test.each([
    ['plain', 'k: ${a + BAD}'],
    ['plain over lines', 'k: ${a}\n  and   \n\n   more ${BAD}'],
    ['plain in a flow list', '[x, ab ${BAD}]'],
    ['single-quoted', "k: 'it''s ${x[''y''] + BAD}'"],
    ['single-quoted over lines', "k: 'a  \n  b''\n\n\n  ${BAD} '"],
    ['double-quoted', 'k: "a\\t\\x41\\u00e9\\U0001F600\\" ${BAD}"'],
    ['double-quoted over lines', 'k: "a\\\n     b  \n\n   c\\n ${BAD}"'],
    ['double-quoted after an escaped break', 'k: "a\\\n   BAD"'],
    ['JSON', '{"k": "\\ud83d\\ude00 \\/ ${BAD}"}'],
    ['literal', 'k: |\n    a\n\n      b ${BAD}\n'],
    ['literal with an indicator', 'k:\n  - |2-\n      a\n     ${BAD}'],
    ['literal, CRLF', 'k: |\r\n  a\r\n  ${BAD}\r\n'],
    ['folded', 'k: >-\n  a b\n  ${BAD} c\n  d\n'],
    ['folded with blank and deeper lines', 'k: > # why\n\n  a b\n\n\n    deep\n     er\n\n  back ${BAD}\n'],
    ['folded, CRLF', 'k: >\r\n  a\r\n  b\r\n  ${BAD}\r\n'],
    ['folded with an indicator', 'k: >1\n   a\n  ${BAD}\n'],
  ])('an offset into a string points at its column: %s', (_style, source) => {
    const result = readSource(source);
    if (!result.ok) throw new Error(brief(source).join());
    let path: (string | number)[] = [];
    let value: Json = result.value;
    while (typeof value === 'object' && value !== null) {
      const key: string | number = Array.isArray(value) ? value.length - 1 : 'k';
      path = [...path, key];
      value = (value as Record<string | number, Json>)[key] as Json;
    }
    const found = result.map.locate(path, { offset: String(value).indexOf('BAD') });
    const line = source.split('\n')[(found?.line ?? 0) - 1] ?? '';
    expect(line.slice((found?.column ?? 0) - 1)).toMatch(/^BAD/);
  });

  test('every character of every style is found, in texts that the yaml package writes', () => {
    const texts = fc.string({
      unit: fc.constantFrom('a', 'b', 'c', ' ', '\n', "'", ':', '\u00e9', '${x}'),
      maxLength: 60,
    });
    const styles = fc.constantFrom(
      Scalar.PLAIN,
      Scalar.QUOTE_SINGLE,
      Scalar.QUOTE_DOUBLE,
      Scalar.BLOCK_LITERAL,
      Scalar.BLOCK_FOLDED,
    );
    fc.assert(
      fc.property(texts, styles, fc.integer({ min: 1, max: 4 }), (value, style, indent) => {
        const document = new Document({ k: [value] });
        visit(document, {
          Scalar: (_key, node) => {
            if (isScalar(node) && node.value === value) node.type = style;
          },
        });
        const source = document.toString({ indent: indent + 1, lineWidth: 20, minContentWidth: 5 });
        // The package writes a few texts wrong that begin or end with white space or a colon.
        const written = parseDocument(source);
        fc.pre(written.errors.length === 0 && written.getIn(['k', 0]) === value);
        const result = readSource(source);
        if (!result.ok) throw new Error(`${JSON.stringify(source)} ${brief(source).join()}`);
        expect(result.value).toEqual({ k: [value] });
        const lines = source.split('\n');
        for (let offset = 0; offset < value.length; offset++) {
          if (/\s/.test(value[offset] as string)) continue;
          const found = result.map.locate(['k', 0], { offset });
          const char = lines[(found?.line ?? 0) - 1]?.[(found?.column ?? 0) - 1];
          expect(char, `${JSON.stringify(source)} at ${offset}`).toBe(value[offset]);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

describe('frames', () => {
  const frame = (text: string, path: (string | number)[], length?: number) => {
    const map = mapOf(text);
    const place = map.locate(path);
    return map.frame(place?.line ?? 0, place?.column ?? 0, length).split('\n');
  };

  test('show up to two lines above and mark the length', () => {
    const text = `${'\n'.repeat(9)}flow:\n  # first\n  - agent: notfiy\n  - agent: b\n`;
    expect(frame(text, ['flow', 0, 'agent'], 6)).toEqual([
      '  10 | flow:',
      '  11 |   # first',
      '  12 |   - agent: notfiy',
      '     |            ^^^^^^',
    ]);
  });

  test('never mark past the end of the line', () => {
    expect(frame('a: |\n  x', ['a'], 50).at(-1)).toBe('     |    ^');
    expect(frame(`a: ${'x'.repeat(900)}`, ['a'], 900).at(-1)).toBe(`     |    ${'^'.repeat(97)}`);
  });

  test('keep the marker under the place after tabs and wide characters', () => {
    expect(frame('a:\tx', ['a'])).toEqual(['   1 | a:    x', '     |       ^']);
    expect(frame('漢字: x', ['漢字'])).toEqual(['   1 | 漢字: x', '     |       ^']);
  });

  test('cut a long line around the place', () => {
    const lines = frame(`{"a": "${'x'.repeat(300)}", "b": wrong, "c": "${'y'.repeat(300)}"}`, ['b'], 5);
    expect(lines).toHaveLength(2);
    for (const line of lines) expect(line.length).toBeLessThan(115);
    const at = lines[1]?.indexOf('^') ?? 0;
    expect(lines[0]?.slice(at, at + 5)).toBe('wrong');
    expect(lines[0]).toMatch(/^ {3}1 \| ….*…$/);
  });
});

describe('any text', () => {
  const json = fc.jsonValue({ maxDepth: 6, noUnicodeString: false } as never).filter((value) => {
    const text = JSON.stringify(value);
    return !/__proto__|[\u007f-\u009f\ufffe\uffff]|\\ud[89a-f]/.test(text) && !/e\+?\d|\d{16}/.test(text);
  }) as fc.Arbitrary<Json>;

  test('JSON is read as JSON.parse does', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(0, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(dataOf(text)).toEqual(JSON.parse(text));
      }),
      { numRuns: 500 },
    );
  });

  test('data that the yaml package writes is read unchanged', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(dataOf(stringify(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
      { numRuns: 500 },
    );
  });

  const pieces = fc.constantFrom(
    ...[
      '[',
      ']',
      '{',
      '}',
      ',',
      ': ',
      ':',
      '- ',
      '? ',
      '&a ',
      '*a',
      '!t ',
      '!!str ',
      '|',
      '>-',
      '|2',
      "'",
      '"',
      '\\',
      '#',
      ' #',
      '%YAML',
    ],
    ...[
      '\n',
      '\n  ',
      '\r\n',
      '\t',
      ' ',
      '---\n',
      '...\n',
      '<<',
      'a',
      'key: ',
      '1',
      '~',
      '${',
      '${x}',
      '}',
      '@',
      '`',
      '\u00e9',
      '\uf620',
    ],
  );
  const texts = fc.oneof(
    { weight: 4, arbitrary: fc.array(pieces, { maxLength: 60 }).map((parts) => parts.join('')) },
    {
      weight: 1,
      arbitrary: fc.array(pieces, { minLength: 1000, maxLength: 2500 }).map((parts) => parts.join('').slice(0, 4096)),
    },
    {
      weight: 1,
      arbitrary: fc
        .array(pieces, { minLength: 1, maxLength: 6 })
        .map((parts) => parts.join('').repeat(2000).slice(0, 4096)),
    },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 200 }) },
  );

  test('every text gives data, or issues with places inside the text, in less than 50 ms for 4 KB', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const result = readSource(text);
        if (result.ok) {
          expect(JSON.parse(JSON.stringify(result.value))).toEqual(result.value);
          expect(result.map.locate([])?.line).toBeGreaterThan(0);
        } else {
          const lines = text.split('\n');
          expect(result.issues.length).toBeGreaterThan(0);
          for (const { message, line, column } of result.issues) {
            expect(message).toMatch(/^[^\n]+$/);
            if (line === undefined) continue;
            expect(column).toBeLessThanOrEqual((lines[line - 1] as string).length + 1);
          }
        }
        if (text.length > 3000) expectFast(() => readSource(text), 50);
      }),
      { numRuns: 600 },
    );
  });
});
