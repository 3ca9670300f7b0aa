/** What a JSON Schema says of the parts that other schemas have not checked, and where its references lead. */

import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../src/engine/base/json/json.ts';
import { checkJsonSchema } from '../../src/engine/json-schema/check-json-schema.ts';
import { compileJsonSchema } from '../../src/engine/json-schema/compile-json-schema.ts';

function accepts(schema: object, value: Json): boolean {
  const problems: string[] = [];
  checkJsonSchema(schema as JsonObject, [], ({ message }) => problems.push(message));
  expect(problems).toEqual([]);
  return 'value' in compileJsonSchema(schema as JsonObject)(value);
}

type Row = readonly [what: string, schema: object, accepted: readonly Json[], refused: readonly Json[]];

const has = (key: string) => ({ properties: { [key]: true }, required: [key] });
const closed = { unevaluatedProperties: false };

describe.each<Row>([
  ['`properties` are checked', { properties: { a: true }, ...closed }, [{}, { a: 1 }], [{ b: 1 }]],
  ['patterns are checked', { patternProperties: { '^a': true }, ...closed }, [{ ab: 1 }], [{ b: 1 }]],
  [
    '`additionalProperties` checks all',
    { additionalProperties: { type: 'number' }, ...closed },
    [{ b: 1 }],
    [{ b: 'x' }],
  ],
  ['`allOf` counts', { allOf: [has('a'), has('b')], ...closed }, [{ a: 1, b: 1 }], [{ a: 1, b: 1, c: 1 }]],
  [
    'of `anyOf`, each that fits counts',
    { anyOf: [has('a'), has('b')], ...closed },
    [{ a: 1 }, { a: 1, b: 1 }],
    [{ a: 1, c: 1 }],
  ],
  ['of `oneOf`, the one that fits counts', { oneOf: [has('a'), has('b')], ...closed }, [{ a: 1 }], [{ a: 1, c: 1 }]],
  [
    'what does not fit does not count',
    { anyOf: [{ properties: { a: { type: 'string' } } }, true], ...closed },
    [{ a: 'x' }],
    [{ a: 1 }],
  ],
  ['`if` counts when it holds, without `then` too', { if: has('a'), ...closed }, [{ a: 1 }], [{ b: 1 }]],
  [
    '`then` and `else` count',
    { if: has('a'), then: has('b'), else: has('c'), ...closed },
    [{ a: 1, b: 1 }, { c: 1 }],
    [{ a: 1, c: 1 }],
  ],
  ['`not` does not count', { not: { not: has('a') }, ...closed }, [], [{ a: 1 }]],
  ['a `$ref` counts', { $ref: '#/$defs/a', $defs: { a: has('a') }, ...closed }, [{ a: 1 }], [{ a: 1, b: 1 }]],
  [
    'schemas of dependents count',
    { properties: { a: true }, dependentSchemas: { a: has('b') }, ...closed },
    [{}, { a: 1, b: 1 }],
    [{ b: 1 }],
  ],
  ['one that is inside does not see what is around it', { properties: { a: true }, allOf: [closed] }, [{}], [{ a: 1 }]],
  [
    'one that is inside counts for the one around it',
    { allOf: [{ unevaluatedProperties: true }], ...closed },
    [{ a: 1 }],
    [],
  ],
  [
    'the parts of a part are others',
    { properties: { a: { properties: { b: true } } }, ...closed },
    [{ a: { c: 1 } }],
    [{ b: 1 }],
  ],
  [
    'it may be a schema',
    { properties: { a: true }, unevaluatedProperties: { type: 'number' } },
    [{ a: 'x', b: 1 }],
    [{ b: 'x' }],
  ],
])('unevaluatedProperties: %s', (_what, schema, accepted, refused) => {
  it.each(accepted.map((value) => [JSON.stringify(value), value]))('accepts %s', (_, value) =>
    expect(accepts(schema, value as Json)).toBe(true),
  );
  it.each(refused.map((value) => [JSON.stringify(value), value]))('refuses %s', (_, value) =>
    expect(accepts(schema, value as Json)).toBe(false),
  );
});

const full = { unevaluatedItems: false };

describe.each<Row>([
  ['`prefixItems` are checked', { prefixItems: [true, true], ...full }, [[], [1, 2]], [[1, 2, 3]]],
  ['`items` checks all', { items: { type: 'number' }, ...full }, [[1, 2]], [['x']]],
  ['what `contains` finds is checked', { contains: { type: 'string' }, ...full }, [['a', 'b']], [['a', 1]]],
  [
    'of `anyOf`, each that fits counts',
    { anyOf: [{ prefixItems: [true, { const: 1 }] }, true], prefixItems: [true], ...full },
    [[0], [0, 1]],
    [[0, 2]],
  ],
  ['one that is inside does not see what is around it', { prefixItems: [true], allOf: [full] }, [[]], [[1]]],
  ['it may be a schema', { prefixItems: [true], unevaluatedItems: { type: 'number' } }, [['x', 1]], [['x', 'y']]],
])('unevaluatedItems: %s', (_what, schema, accepted, refused) => {
  it.each(accepted.map((value) => [JSON.stringify(value), value]))('accepts %s', (_, value) =>
    expect(accepts(schema, value as Json)).toBe(true),
  );
  it.each(refused.map((value) => [JSON.stringify(value), value]))('refuses %s', (_, value) =>
    expect(accepts(schema, value as Json)).toBe(false),
  );
});

const list = {
  $id: 'https://schemas.example/list',
  properties: { items: { items: { $dynamicRef: '#item' } } },
  $defs: { any: { $dynamicAnchor: 'item' } },
};
const ofTexts = {
  $id: 'https://schemas.example/texts',
  $ref: 'list',
  $defs: { item: { $dynamicAnchor: 'item', type: 'string' }, list },
};
const tree = {
  $id: 'https://schemas.example/tree',
  $dynamicAnchor: 'node',
  type: 'object',
  properties: { children: { type: 'array', items: { $dynamicRef: '#node' } } },
};
const strictTree = {
  $id: 'https://schemas.example/strict-tree',
  $dynamicAnchor: 'node',
  $ref: 'tree',
  unevaluatedProperties: false,
  $defs: { tree },
};

describe.each<Row>([
  [
    'an anchor',
    { properties: { a: { $ref: '#text' } }, $defs: { x: { $anchor: 'text', type: 'string' } } },
    [{ a: 'x' }],
    [{ a: 1 }],
  ],
  ['the whole', { properties: { a: { $ref: '#' } }, maxProperties: 1 }, [{ a: { a: {} } }], [{ a: { a: 1, b: 1 } }]],
  [
    'a pointer with escapes',
    { properties: { a: { $ref: '#/$defs/x~1y~0%25' } }, $defs: { 'x/y~%': { type: 'string' } } },
    [{ a: 'x' }],
    [{ a: 1 }],
  ],
  [
    'a part with an address, and its own pointers',
    {
      $id: 'https://x.example/a/b',
      properties: { a: { $ref: 'c' } },
      $defs: { c: { $id: 'c', $ref: '#/$defs/t', $defs: { t: { type: 'string' } } } },
    },
    [{ a: 'x' }],
    [{ a: 1 }],
  ],
  [
    'a URN',
    { $id: 'urn:x:1', properties: { a: { $ref: 'urn:x:1#text' } }, $defs: { x: { $anchor: 'text', type: 'string' } } },
    [{ a: 'x' }],
    [{ a: 1 }],
  ],
  [
    'an anchor in a value is none',
    {
      properties: { a: { $ref: '#x' } },
      $defs: { e: { enum: [{ $anchor: 'x', type: 'null' }] }, x: { $anchor: 'x', type: 'string' } },
    },
    [{ a: 'x' }],
    [{ a: null }],
  ],
  ['`$dynamicRef` without another anchor is a `$ref`', list, [{ items: [1, 'x'] }], []],
  ['`$dynamicRef` leads to the outermost schema with the anchor', ofTexts, [{ items: ['x'] }], [{ items: [1] }]],
  [
    'a tree that is extended is extended at every node',
    strictTree,
    [{ children: [{ children: [] }] }],
    [{ children: [{ kids: [] }] }],
  ],
])('a reference to %s', (_what, schema, accepted, refused) => {
  it.each(accepted.map((value) => [JSON.stringify(value), value]))('accepts %s', (_, value) =>
    expect(accepts(schema, value as Json)).toBe(true),
  );
  it.each(refused.map((value) => [JSON.stringify(value), value]))('refuses %s', (_, value) =>
    expect(accepts(schema, value as Json)).toBe(false),
  );
});
