/** Checks a JSON Schema, so that a mistake in it is reported at its place. */

import { isMap } from '../base/json/is-map.ts';
import type { Json, JsonObject } from '../base/json/json.ts';
import { suggestName } from '../base/suggest-name.ts';
import { describeValue, oneOf, quoted } from '../base/wording.ts';
import { slowPattern } from './check-pattern.ts';
import { LISTS, MAPS, ONE, type SchemaAt, SchemaIndex } from './schema-index.ts';

type Path = readonly (string | number)[];

/** A mistake in a JSON Schema. */
export interface SchemaProblem {
  readonly path: Path;
  readonly message: string;
  readonly suggestion?: string | undefined;
  /** It is about the key at the path, not about its value. */
  readonly key?: boolean;
}

type Report = (problem: SchemaProblem) => void;

/** The types of JSON Schema. */
export const JSON_SCHEMA_TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];
/** The keywords whose schemas check the same value. */
const SAME_VALUE = [
  '$ref',
  '$dynamicRef',
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'if',
  'then',
  'else',
  'dependentSchemas',
  'dependencies',
];
const COUNTS = [
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'minContains',
  'maxContains',
];
const BOUNDS = ['minimum', 'maximum'];
/** Keywords of an older draft that would allow values that their author wants to refuse, if they were ignored. */
const UNSUPPORTED = ['$recursiveRef'];
const UNSUPPORTED_FORMATS = ['credit_card', 'emoji', 'iban', 'jwt'];
/** Schemas inside each other that check the same value. With the depth of a value, they bound the recursion of a check. */
const MAX_SCHEMAS_A_VALUE = 16;

interface Walk {
  readonly index: SchemaIndex;
  readonly report: Report;
  /** Every schema that was checked, with its path in the source. */
  readonly checked: Map<Json, Path>;
  /** The places that `$ref` leads to. They may be under a key that is not a keyword. */
  readonly targets: SchemaAt[];
}

/**
 * @param root - the value where a schema is expected
 * @param path - the path of that value in the source
 */
export function checkJsonSchema(root: JsonObject, path: Path, report: Report): void {
  const index = new SchemaIndex(root);
  const walk: Walk = { index, report, checked: new Map(), targets: [{ schema: root, path: [] }] };
  for (const target of walk.targets) checkSchema(target.schema, [...path, ...target.path], walk);
  const depths = new Map<Json, number>();
  for (const [schema, at] of walk.checked) {
    if (depthOf(schema, index, depths, 0) <= MAX_SCHEMAS_A_VALUE) continue;
    const message = `leads to more than ${MAX_SCHEMAS_A_VALUE} schemas for one value, or back to itself; let each \`$ref\` that comes back lead to a part of the value, such as a property`;
    report({ path: at, message });
    return;
  }
}

/** A schema as a part of another one. Its references lead to itself, as the standard says of a part with an `$id`. */
export function partSchema(schema: JsonObject): JsonObject {
  return schema.$id === undefined ? { ...schema, $id: 'part' } : schema;
}

function checkSchema(schema: Json, path: Path, walk: Walk): void {
  const { report } = walk;
  if (typeof schema === 'boolean' || walk.checked.has(schema)) return;
  if (!isMap(schema)) {
    report({ path, message: `must be a JSON Schema such as \`{ type: string }\`, not ${describeValue(schema)}` });
    return;
  }
  walk.checked.set(schema, path);
  for (const [key, value] of Object.entries(schema)) {
    const at = [...path, key];
    if (key === 'type') checkType(value, at, report);
    else if (key === 'items' && Array.isArray(value)) checkList(value, at, walk);
    else if (ONE.includes(key)) checkSchema(value, at, walk);
    else if (LISTS.includes(key)) checkList(value, at, walk);
    else if (MAPS.includes(key)) checkMap(value, at, walk, key);
    else if (key === '$ref' || key === '$dynamicRef') checkRef(schema, value, at, walk);
    else checkPlainKeyword(key, value, at, report);
  }
}

function checkType(type: Json, path: Path, report: Report): void {
  const list = Array.isArray(type);
  const types: readonly Json[] = list ? type : [type as Json];
  types.forEach((name, i) => {
    if (typeof name === 'string' && JSON_SCHEMA_TYPES.includes(name)) return;
    const suggestion = typeof name === 'string' ? suggestName(name, JSON_SCHEMA_TYPES) : undefined;
    report({
      path: list ? [...path, i] : path,
      message: `must be ${oneOf(JSON_SCHEMA_TYPES)}, not ${describeValue(name)}`,
      suggestion,
    });
  });
}

function checkList(value: Json, path: Path, walk: Walk): void {
  if (!Array.isArray(value))
    walk.report({ path, message: `must be a list of JSON Schemas, not ${describeValue(value)}` });
  else for (const [i, inner] of (value as readonly Json[]).entries()) checkSchema(inner, [...path, i], walk);
}

function checkMap(value: Json, path: Path, walk: Walk, keyword: string): void {
  if (!isMap(value)) {
    walk.report({ path, message: `must be a map of names to JSON Schemas, not ${describeValue(value)}` });
    return;
  }
  for (const [key, inner] of Object.entries(value)) {
    const wrong = keyword === 'patternProperties' ? patternProblem(key) : undefined;
    if (wrong !== undefined) walk.report({ path: [...path, key], key: true, message: wrong });
    if (keyword !== 'dependencies' || !isTextList(inner)) checkSchema(inner, [...path, key], walk);
  }
}

function checkRef(schema: JsonObject, ref: Json, path: Path, { index, report, targets }: Walk): void {
  const target = typeof ref === 'string' ? index.find(schema, ref) : undefined;
  if (target) {
    targets.push(target);
    return;
  }
  const isRemote = typeof ref === 'string' && /^[^#]/.test(ref);
  const message = `must lead to a place in this JSON Schema, such as \`#/$defs/order\`, not ${describeValue(ref)}`;
  report({ path, message: isRemote ? `${message}: other documents are not read` : message });
}

function checkPlainKeyword(key: string, value: Json, path: Path, report: Report): void {
  const expected = wrongArgument(key, value);
  if (expected !== undefined) report({ path, message: `must be ${expected}, not ${describeValue(value)}` });
  if (UNSUPPORTED.includes(key)) {
    report({ path, key: true, message: `${quoted(key)} is not supported` });
  } else if (key === 'format' && UNSUPPORTED_FORMATS.includes(String(value))) {
    report({
      path,
      message: `is a format that is not checked; use \`pattern\`, or check ${describeValue(value)} in a script`,
    });
  } else if (key === 'pattern') {
    const wrong = patternProblem(value);
    if (wrong !== undefined) report({ path, message: wrong });
  }
}

/** @returns what the argument of a keyword must be; undefined when it is that */
function wrongArgument(key: string, value: Json): string | undefined {
  const is = (fits: boolean, expected: string) => (fits ? undefined : expected);
  if (COUNTS.includes(key)) return is(Number.isSafeInteger(value) && Number(value) >= 0, 'a whole number from 0');
  if (key === 'multipleOf') return is(typeof value === 'number' && value > 0, 'a number above 0');
  if (BOUNDS.includes(key)) return is(typeof value === 'number', 'a number');
  switch (key) {
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
      return is(typeof value === 'number' || typeof value === 'boolean', 'a number');
    case 'required':
      return is(isTextList(value), 'a list of the fields that are required');
    case 'dependentRequired':
      return is(isMap(value) && Object.values(value).every(isTextList), 'a map of names to lists of names');
    case 'enum':
      return is(Array.isArray(value), 'a list of values');
    case 'format':
      return is(typeof value === 'string', 'the name of a format');
    case '$id':
      return is(typeof value === 'string' && !/#./.test(value), 'the address of the schema, without `#`');
    case '$anchor':
    case '$dynamicAnchor':
      return is(typeof value === 'string' && /^[A-Za-z_][-A-Za-z0-9._]*$/.test(value), 'a name');
    case 'uniqueItems':
      return is(typeof value === 'boolean', '`true` or `false`');
    default:
      return undefined;
  }
}

/** The number of schemas, one in the other, that check one value; infinite for a schema that leads back to itself. */
function depthOf(schema: Json, index: SchemaIndex, known: Map<Json, number>, level: number): number {
  if (!isMap(schema)) return 0;
  const before = known.get(schema) ?? (level > MAX_SCHEMAS_A_VALUE ? level : undefined);
  if (before !== undefined) return before;
  // This is what a schema finds that leads back to here.
  known.set(schema, Number.POSITIVE_INFINITY);
  const inner = SAME_VALUE.flatMap((keyword) => {
    const held = schema[keyword];
    if (keyword === '$ref') return typeof held === 'string' ? [index.find(schema, held)?.schema ?? true] : [];
    if (keyword === '$dynamicRef') return typeof held === 'string' ? index.targetsOf(schema, held) : [];
    return LISTS.includes(keyword) || MAPS.includes(keyword)
      ? Object.values((held ?? {}) as JsonObject)
      : [held ?? true];
  });
  const depth = 1 + Math.max(0, ...inner.map((one) => depthOf(one, index, known, level + 1)));
  known.set(schema, depth);
  return depth;
}

function isTextList(value: Json): boolean {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}

function patternProblem(pattern: Json): string | undefined {
  if (typeof pattern !== 'string' || !isPattern(pattern, 'u'))
    return typeof pattern === 'string' && isPattern(pattern, '')
      ? NOT_UNICODE
      : `must be a regular expression, not ${describeValue(pattern)}`;
  const slow = slowPattern(pattern);
  return slow === undefined ? undefined : `is a pattern that can be very slow on some texts: ${slow}`;
}

const NOT_UNICODE =
  'is not valid in Unicode mode, in which JSON Schema reads a pattern: escape no other characters than those of the syntax (`\\.` and not `\\@`; `\\-` in a class only), and also `{`, `}` and `]`';

function isPattern(source: string, flags: string): boolean {
  try {
    return new RegExp(source, flags) instanceof RegExp;
  } catch {
    return false;
  }
}
