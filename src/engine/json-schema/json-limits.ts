/** The keywords of JSON Schema that limit one value: its type, its values, its size and its format. */

import { isMap } from '../base/json/is-map.ts';
import { canonicalJson, type Json, type JsonObject } from '../base/json/json.ts';
import { KIND_NAMES } from '../base/json/kind-names.ts';
import { MAX_NAMED } from '../base/suggest-name.ts';
import { describeValue, oneOf, quoted } from '../base/wording.ts';
import { FORMATS } from './json-formats.ts';

/** @param type - a type of a field of `inputs`, or of a JSON Schema */
export function hasType(value: Json, type: string): boolean {
  switch (type) {
    case 'any':
      return true;
    case 'null':
      return value === null;
    case 'integer':
      return Number.isInteger(value);
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isMap(value);
    default:
      return typeof value === type;
  }
}

/** What is wrong with a value that has none of the types. */
export function typeMessage(types: Iterable<string>, found: Json): string {
  return `must be ${[...types].map((type) => KIND_NAMES[type]).join(' or ')}, not ${describeValue(found)}`;
}

/** What is wrong with a value that is not in the list. */
export function valueMessage(allowed: readonly Json[], found: Json): string {
  const texts = allowed.slice(0, MAX_NAMED).map((value) => (typeof value === 'string' ? value : JSON.stringify(value)));
  const more = allowed.length > MAX_NAMED ? ` or one of ${allowed.length - MAX_NAMED} more values` : '';
  return `must be ${oneOf(texts)}${more}, not ${describeValue(found)}`;
}

/** The characters that a check of a text reads in one step. */
export const CHARACTERS_A_STEP = 32;
/** The same for the text of a value with sorted keys, which must be created first. */
export const SORTED_CHARACTERS_A_STEP = 8;

/** What one keyword checks. A value of another type than the keyword is for passes. */
interface Limit {
  /** @param spend - counts steps that depend on more than the length of a text */
  holds(value: Json, spend: (steps: number) => void): boolean;
  message(value: Json): string;
}
type SizeOf = (value: Json) => number | undefined;

const anything: Limit = { holds: () => true, message: () => '' };

function among(allowed: readonly Json[]): Limit {
  const plain = new Set(allowed);
  const containers = new Set(allowed.filter((value) => typeof value === 'object').map(canonicalJson));
  return {
    holds(value, spend) {
      if (typeof value !== 'object' || containers.size === 0) return plain.has(value);
      const text = canonicalJson(value);
      spend(text.length / SORTED_CHARACTERS_A_STEP);
      return containers.has(text);
    },
    message: (value) => valueMessage(allowed, value),
  };
}

const number = (holds: (value: number) => boolean, text: string): Limit => ({
  holds: (value) => typeof value !== 'number' || holds(value),
  message: (value) => `must be ${text}, not ${describeValue(value)}`,
});
const text = (holds: (value: string) => boolean, message: string): Limit => ({
  holds: (value) => typeof value !== 'string' || holds(value),
  message: () => message,
});
const above = (min: number) => number((value) => value > min, `more than ${min}`);
const below = (max: number) => number((value) => value < max, `less than ${max}`);

// 0.3 is a multiple of 0.1, although the division of the doubles has a remainder.
function isMultiple(value: number, step: number): boolean {
  const ratio = value / step;
  return Math.abs(ratio - Math.round(ratio)) < 4 * Number.EPSILON * Math.max(Math.abs(ratio), 1);
}

const PAIRS = /[\ud800-\udbff][\udc00-\udfff]/g;
const characters: SizeOf = (value) => (typeof value === 'string' ? value.replace(PAIRS, ' ').length : undefined);
const entries: SizeOf = (value) => (Array.isArray(value) ? value.length : undefined);
const keys: SizeOf = (value) => (isMap(value) ? Object.keys(value).length : undefined);

const atLeast =
  (sizeOf: SizeOf, one: string, many: string) =>
  (min: number): Limit => ({
    holds: (value) => (sizeOf(value) ?? min) >= min,
    message: () => `must have at least ${min} ${min === 1 ? one : many}`,
  });
const atMost =
  (sizeOf: SizeOf, one: string, many: string) =>
  (max: number): Limit => ({
    holds: (value) => (sizeOf(value) ?? max) <= max,
    message: () => `must have at most ${max} ${max === 1 ? one : many}`,
  });

/** By keyword. The arguments are those that `checkJsonSchema` accepts. */
export const LIMITS: Readonly<Record<string, (argument: never, schema: JsonObject) => Limit>> = {
  enum: among,
  const: (only: Json) => among([only]),
  minimum: (min: number, { exclusiveMinimum }) =>
    exclusiveMinimum === true ? above(min) : number((value) => value >= min, `at least ${min}`),
  maximum: (max: number, { exclusiveMaximum }) =>
    exclusiveMaximum === true ? below(max) : number((value) => value <= max, `at most ${max}`),
  // In draft 4, `true` makes `minimum` or `maximum` exclusive.
  exclusiveMinimum: (min: number | boolean) => (typeof min === 'number' ? above(min) : anything),
  exclusiveMaximum: (max: number | boolean) => (typeof max === 'number' ? below(max) : anything),
  multipleOf: (step: number) => number((value) => isMultiple(value, step), `a multiple of ${step}`),
  minLength: atLeast(characters, 'character', 'characters'),
  maxLength: atMost(characters, 'character', 'characters'),
  pattern: (source: string) => {
    const pattern = new RegExp(source, 'u');
    return text((value) => pattern.test(value), `must match the pattern ${quoted(source)}`);
  },
  format: (name: string) => {
    const fits = Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined;
    return fits ? text(fits, `must have the format ${quoted(name)}`) : anything;
  },
  minItems: atLeast(entries, 'entry', 'entries'),
  maxItems: atMost(entries, 'entry', 'entries'),
  minProperties: atLeast(keys, 'key', 'keys'),
  maxProperties: atMost(keys, 'key', 'keys'),
};
