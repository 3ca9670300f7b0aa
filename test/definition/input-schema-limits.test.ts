/** JSON Schemas of inputs: what is refused at load, which formats are checked, and the time that a hostile schema or input takes. */

import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import type { Json } from '../../src/engine/base/json/json.ts';
import { FORMATS } from '../../src/engine/json-schema/json-formats.ts';
import { createOrchestrator, isOrchestratorError } from '../../src/index.ts';
import { scaled } from '../slowdown.ts';

const load = (schema: object) =>
  createOrchestrator({ ensembles: [{ name: 'a', inputs: { type: 'object', ...schema }, flow: [] }] });

/** The problems of a call, as `path message`. */
async function problemsOf(work: () => unknown): Promise<readonly string[]> {
  try {
    await work();
  } catch (error) {
    if (!isOrchestratorError(error)) throw error;
    return (error.details.issues as { path: string; message: string }[]).map(
      ({ path, message }) => `${path} ${message}`,
    );
  }
  return [];
}

const refusal = (schema: object) => problemsOf(() => load(schema));
const checked = (schema: object, input: object) => problemsOf(() => load(schema).execute('a', input as never));

describe('refused at load', () => {
  it.each<[string, object, string]>([
    ['a keyword that is not checked', { $recursiveRef: '#' }, 'inputs.$recursiveRef `$recursiveRef` is not supported'],
    [
      'a `$ref` by an anchor that is nowhere',
      { properties: { a: { $ref: '#x' } }, $defs: { x: { $anchor: 'y' } } },
      "inputs.properties.a.$ref must lead to a place in this JSON Schema, such as `#/$defs/order`, not '#x'",
    ],
    [
      'a `$ref` to another document',
      { properties: { a: { $ref: 'https://schemas.example/order.json' } } },
      "inputs.properties.a.$ref must lead to a place in this JSON Schema, such as `#/$defs/order`, not 'https://schemas.example/order.json': other documents are not read",
    ],
    [
      'an anchor that is no name',
      { $defs: { x: { $anchor: '#x' } } },
      "inputs.$defs.x.$anchor must be a name, not '#x'",
    ],
    [
      'a `$ref` to nothing',
      { properties: { a: { $ref: '#/$defs/b' } } },
      "inputs.properties.a.$ref must lead to a place in this JSON Schema, such as `#/$defs/order`, not '#/$defs/b'",
    ],
    [
      'a `$ref` to a value that is no schema',
      { properties: { a: { $ref: '#/x' } }, x: 5 },
      'inputs.x must be a JSON Schema such as `{ type: string }`, not 5',
    ],
    [
      'a slow pattern at a place that only a `$ref` reads',
      { properties: { a: { $ref: '#/x/y' } }, x: { y: { pattern: '^(a+)+$' } } },
      "inputs.x.y.pattern is a pattern that can be very slow on some texts: the part that it repeats can match one text in several ways; let whatever follows a part begin with characters that the part can't match",
    ],
    [
      'a format that is not checked',
      { properties: { a: { format: 'iban' } } },
      "inputs.properties.a.format is a format that is not checked; use `pattern`, or check 'iban' in a script",
    ],
    [
      'a length as text',
      { properties: { a: { minLength: '3' } } },
      "inputs.properties.a.minLength must be a whole number from 0, not '3'",
    ],
    [
      'a limit as text',
      { properties: { a: { minimum: 'x' } } },
      "inputs.properties.a.minimum must be a number, not 'x'",
    ],
    [
      'a multiple of 0',
      { properties: { a: { multipleOf: 0 } } },
      'inputs.properties.a.multipleOf must be a number above 0, not 0',
    ],
    [
      'names of a dependency as text',
      { dependentRequired: { a: 'b' } },
      'inputs.dependentRequired must be a map of names to lists of names, not a map of keys',
    ],
  ])('%s', async (_what, schema, problem) => expect(await refusal(schema)).toEqual([problem]));

  it.each<[string, object]>([
    ['itself', { properties: { a: { $ref: '#/properties/a' } } }],
    [
      'each other',
      { properties: { a: { allOf: [{ $ref: '#/$defs/b' }] } }, $defs: { b: { anyOf: [{ $ref: '#/properties/a' }] } } },
    ],
    ['the root, in `not`', { not: { $ref: '#' } }],
    [
      'a long chain',
      {
        $defs: Object.fromEntries(
          Array.from({ length: 20_000 }, (_, i) => [`d${i}`, i === 0 ? {} : { $ref: `#/$defs/d${i - 1}` }]),
        ),
      },
    ],
  ])('schemas for one value that lead to %s', async (_what, schema) => {
    const [problem, ...more] = await refusal(schema);
    expect(problem).toContain('leads to more than 16 schemas for one value, or back to itself');
    expect(more).toEqual([]);
  });

  it('a schema that comes back for a part of the value is accepted', async () => {
    const tree = {
      properties: { kids: { type: 'array', items: { $ref: '#' } }, name: { type: 'string' } },
      required: ['name'],
    };
    expect(await checked(tree, { name: 'a', kids: [{ name: 'b', kids: [{}] }] })).toEqual([
      'kids[0].kids[0].name is required',
    ]);
  });
});

const TEXTS = [
  ...[
    '',
    ' ',
    'a',
    'A',
    '-',
    '1',
    'abc',
    'abcd',
    'ab==',
    'abc=',
    'a===',
    'ab=c',
    'ab c',
    'a_-b',
    'null',
    '+491701234567',
    '+0123',
    '+1',
  ],
  ...[
    '2024-02-29',
    '2023-02-29',
    '1900-02-29',
    '2000-02-29',
    '0000-02-29',
    '2024-13-01',
    '2024-00-10',
    '2024-04-31',
    '2024-4-1',
  ],
  ...[
    '2024-02-29T23:59:59Z',
    '2024-02-29T23:59:59.123+02:00',
    '2024-02-29T24:00:00Z',
    '2024-02-29T23:59Z',
    '2024-02-29 23:59:59Z',
  ],
  ...['2023-02-29T00:00:00Z', '23:59:59Z', '23:59:59.5-08:00', '23:59:60Z', '23:59:59', '9:00:00Z'],
  ...['P1D', 'P', 'PT', 'P1W', 'P1W1D', 'P1Y2M3DT4H5M6.7S', 'PT1S', 'P1DT', '-P1D', 'P1.5D', 'PT1,5S'],
  ...[
    'ada@example.com',
    'a.b+c@x.co',
    "o'neil@x.co",
    "a'@x.co",
    '.a@x.co',
    'a..b@x.co',
    'a@x',
    'a@-x.co',
    'a@x.c',
    '@x.co',
    'a@b@x.co',
  ],
  ...[
    'example.com',
    'example.com.',
    '-a.com',
    'a-.com',
    'localhost',
    `${'a'.repeat(63)}.b`,
    `${'a'.repeat(64)}.b`,
    'a..b',
    `${'a.'.repeat(127)}a`,
  ],
  ...[
    '127.0.0.1',
    '1.2.3',
    '256.1.1.1',
    '01.2.3.4',
    '1.2.3.4.',
    '1.2.3.4.5',
    '1.2.3.4/32',
    '1.2.3.4/33',
    '1.2.3.4/08',
    '1.2.3.4/8/8',
  ],
  ...[
    '::1',
    '::',
    '1::2::3',
    'fe80::1%eth0',
    '::ffff:1.2.3.4',
    '[::1]',
    '12345::',
    '1:2:3:4:5:6:7:8',
    '::1/128',
    '::1/129',
    '::1/',
    'g::',
  ],
  ...['00:1a:2B:3c:4d:5e', '00:1A:2B:3C:4D:5E', '00-1a-2b-3c-4d-5e', '00:1a:2b:3c:4d:5e', '00:1a:2b:3c:4d'],
  ...[
    '123e4567-e89b-12d3-a456-426614174000',
    '123e4567-e89b-92d3-a456-426614174000',
    '00000000-0000-0000-0000-000000000000',
  ],
  ...[
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
    '123E4567-E89B-12D3-A456-426614174000',
    '123e4567e89b12d3a456426614174000',
  ],
  ...[
    '01ARZ3NDEKTSV4RRFFQ69G5FAV',
    '81ARZ3NDEKTSV4RRFFQ69G5FAV',
    'cjld2cjxh0000qzrmn831i7rn',
    'tz4a98xxat96iws9zmbrgj3a',
    '9m4e2mr0ui3e8a215n4g',
  ],
  ...[
    '0ujtsYcgvSTl8PAuAdqWYSMnLOv',
    'V1StGXR8_Z5jdHi6B-myT',
    'https://example.com/a?b#c',
    'mailto:a@b.c',
    'example',
    '/a/b',
    'http://',
    'urn:x:y',
  ],
];

describe('formats', () => {
  it.each(Object.keys(FORMATS).filter((format) => format !== 'uri-reference'))(
    '`%s` accepts and refuses the same texts as zod',
    (format) => {
      const isText = z.fromJSONSchema({ type: 'string', format } as never);
      const holds = FORMATS[format] as (text: string) => boolean;
      expect(TEXTS.filter(holds)).toEqual(TEXTS.filter((text) => isText.safeParse(text).success));
    },
  );

  it('`uri-reference` accepts a relative reference too', async () => {
    const schema = { properties: { a: { items: { format: 'uri-reference' } } } };
    const problem = 'a[3] must have the format `uri-reference`';
    expect(await checked(schema, { a: ['/a/b', '../c?d#e', 'https://example.com', 'http://'] })).toEqual([problem]);
  });

  it.each([
    ['email', ['te~st@shop.example', "a!#$%&'*+/=?^_`{|}~-z@x.co"], ['~@', 'te..st@x.co', '.a@x.co']],
    [
      'date-time',
      ['2026-11-28t10:00:00z', '2026-11-28T10:00:00+01:00'],
      ['2026-11-28 10:00:00Z', '2026-11-28x10:00:00Z'],
    ],
    ['time', ['10:00:00z'], ['10:00:00']],
  ])('`%s` accepts what its RFC accepts', (format, right, wrong) => {
    const holds = FORMATS[format] as (text: string) => boolean;
    expect(right.filter((text) => !holds(text))).toEqual([]);
    expect(wrong.filter(holds)).toEqual([]);
  });

  it('a number without a fraction is an integer, however large it is', async () => {
    const schema = { properties: { a: { type: 'integer' } } };
    expect(await checked(schema, { a: 2 ** 53 })).toEqual([]);
    expect(await checked(schema, { a: 1e300 })).toEqual([]);
    expect(await checked(schema, { a: 1.5 })).toEqual(['a must be a whole number, not 1.5']);
  });

  it('any other format is a note', async () => {
    expect(await checked({ properties: { a: { type: 'string', format: 'password' } } }, { a: 'x' })).toEqual([]);
  });

  it('a text of megabytes takes a time that is linear in its length', () => {
    const parts = [
      'a',
      'a.',
      'a-',
      '-',
      '1',
      '1.',
      '1:',
      ':',
      'P1Y',
      'P',
      '=',
      'ab=',
      '/',
      '%',
      '@',
      'a@',
      "'",
      '2024-',
      'T1H',
      '\ud83d',
    ];
    const texts = parts.flatMap((part) => ['', '!', '@a.co'].map((end) => part.repeat(200_000) + end));
    const began = performance.now();
    for (const holds of Object.values(FORMATS)) for (const text of texts) holds(text);
    // A single quadratic check would take longer.
    expect(performance.now() - began).toBeLessThan(scaled(20_000));
  });
});

const MAX_MS = 10_000;

describe('hostile schemas and inputs', () => {
  const nested = (depth: number, inner: Json, wrap: (value: Json) => Json): Json =>
    depth === 0 ? inner : nested(depth - 1, wrap(inner), wrap);
  const tooMany = ' needs too many steps to be checked with the JSON Schema';
  const many = <T>(count: number, entry: (i: number) => T) => Array.from({ length: count }, (_, i) => entry(i));

  it.each<[string, object, object]>([
    [
      'a choice that doubles at every level',
      {
        $defs: { n: { properties: { a: { anyOf: [{ $ref: '#/$defs/n' }, { $ref: '#/$defs/n' }] } }, required: ['z'] } },
        properties: { x: { $ref: '#/$defs/n' } },
      },
      { x: nested(60, {}, (a) => ({ a })) },
    ],
    [
      '`uniqueItems` at every level',
      { $defs: { u: { uniqueItems: true, items: { $ref: '#/$defs/u' } } }, properties: { x: { $ref: '#/$defs/u' } } },
      {
        x: nested(
          55,
          many(60_000, (i) => `a long text with a number ${i}`),
          (inner) => [inner],
        ),
      },
    ],
    [
      'thousands of required keys in thousands of entries',
      { properties: { x: { items: { required: many(5_000, (i) => `k${i}`) } } } },
      { x: many(50_000, () => ({})) },
    ],
    [
      'thousands of patterns for thousands of keys',
      { patternProperties: Object.fromEntries(many(2_000, (i) => [`^k${i}x`, {}])) },
      Object.fromEntries(many(50_000, (i) => [`k${i}`, 1])),
    ],
  ])('%s is refused after a limited number of steps', async (_what, schema, input) => {
    const began = performance.now();
    expect(await checked(schema, input)).toEqual([tooMany]);
    expect(performance.now() - began).toBeLessThan(scaled(MAX_MS));
  });

  it.each<[string, object, object, string]>([
    ['unique entries', { x: { uniqueItems: true } }, { x: many(120_000, (i) => i) }, ''],
    [
      'entries that are not in a list of 20,000 objects',
      { x: { items: { enum: many(20_000, (a) => ({ a })) } } },
      { x: many(40_000, (i) => ({ a: -1 - i })) },
      'x[0] must be',
    ],
    [
      'wrong entries',
      { x: { items: { type: 'string' } } },
      { x: many(200_000, (i) => i) },
      'x[0] must be a string, not 0',
    ],
    [
      'a default that is too large for all its places',
      { x: { items: { properties: { a: { default: 'x'.repeat(100_000) } } } } },
      { x: many(50_000, () => ({})) },
      ' is larger than the limit of 4 MiB',
    ],
    [
      'a long text',
      { x: { maxLength: 5, pattern: '^(?:[a-z]{4})*$' } },
      { x: 'a'.repeat(3_999_999) },
      'x must have at most 5 characters',
    ],
  ])('%s: linear time, and at most 101 problems', async (_what, properties, input, problem) => {
    const began = performance.now();
    const problems = await checked({ properties }, input);
    expect(performance.now() - began).toBeLessThan(scaled(MAX_MS));
    expect(problems.length).toBeLessThanOrEqual(101);
    expect((problems[0] ?? '').startsWith(problem)).toBe(true);
    expect(JSON.stringify(problems).length).toBeLessThan(500_000);
  });

  it('the deepest value and the deepest schema do not exhaust the stack', async () => {
    const inner = nested(14, { items: { $ref: '#/$defs/n' } }, (schema) => ({ allOf: [schema] }));
    const schema = { $defs: { n: inner }, properties: { x: { $ref: '#/$defs/n' } } };
    expect(await checked(schema, { x: nested(61, [], (list) => [list]) })).toEqual([]);
  });
});
