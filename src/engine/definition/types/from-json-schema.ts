/** Reads a JSON Schema, or the declared fields of `inputs`, as a type. What a type can't say becomes `any`. */

import * as z from 'zod/mini';
import { isMap } from '../../base/json/is-map.ts';
import type { Json, JsonObject } from '../../base/json/json.ts';
import { once } from '../../base/once.ts';
import type { EnsembleDefinition, InputField } from '../../ensemble/ensemble.ts';
import { SchemaIndex } from '../../json-schema/schema-index.ts';
import {
  type AnySchema,
  isStandardSchema,
  jsonSchemaOf,
  type StandardSchema,
} from '../../operation/standard-schema.port.ts';
import { isJsonSchema } from '../forms/forms.ts';
import { refine } from './accepts.ts';
import {
  ANY,
  BOOLEAN,
  type Field,
  listOf,
  literal,
  NULL,
  NUMBER,
  nullBecause,
  oneOfValues,
  recordOf,
  type Scalar,
  type ScalarType,
  STRING,
  type Type,
  union,
  withoutNull,
} from './type.ts';

const MAX_SCHEMA_DEPTH = 10;
const MAX_SCHEMAS = 400;

interface Walk {
  readonly root: JsonObject;
  index?: SchemaIndex;
  readonly budget: { left: number };
  readonly side: Side;
}

/** Of a schema: what it takes, or what it gives, with the defaults filled in. */
type Side = 'input' | 'output';

/** The types of schemas, each read once. */
export const schemaTypes = once(() => new SchemaTypes());

export class SchemaTypes {
  readonly #env = new WeakMap<object, Type>();
  readonly #types = { input: new WeakMap<object, Type>(), output: new WeakMap<object, Type>() };

  /**
   * The type of the values that a schema accepts, or that it returns. Fields that `properties` does not name must not be read.
   *
   * @param side - what the schema takes, or what it gives, with the defaults filled in
   */
  of(schema: AnySchema, side: Side = 'output'): Type {
    const known = this.#types[side].get(schema);
    if (known) return known;
    const root = isStandardSchema(schema) ? toJsonSchema(schema, side) : schema;
    const type = read(root, { root: root ?? {}, side, budget: { left: MAX_SCHEMAS } }, 0);
    this.#types[side].set(schema, type);
    return type;
  }

  /** The type of the variables of an app. */
  ofEnv(env: Readonly<Record<string, string>>): Type {
    const variables = () => Object.keys(env).map((name) => [name, { type: STRING, optional: false }] as const);
    const type = this.#env.get(env) ?? recordOf(variables(), ANY);
    this.#env.set(env, type);
    return type;
  }
}

function toJsonSchema(schema: StandardSchema<unknown, unknown>, side: Side): JsonObject | undefined {
  if (!('_zod' in schema)) return jsonSchemaOf(schema, side) as JsonObject | undefined;
  try {
    return z.toJSONSchema(schema as unknown as z.ZodMiniType, { io: side, unrepresentable: 'any' }) as JsonObject;
  } catch {
    return undefined;
  }
}

function read(schema: Json | undefined, walk: Walk, depth: number): Type {
  if (!isMap(schema) || depth > MAX_SCHEMA_DEPTH || walk.budget.left-- <= 0) return ANY;
  if (schema.$dynamicRef !== undefined) return ANY;
  const { $ref: ref, allOf, ...own } = schema;
  const others: Json[] = Array.isArray(allOf) ? [...(allOf as readonly Json[])] : [];
  if (ref === undefined && others.length === 0) return readOwn(schema, walk, depth);
  if (typeof ref === 'string') {
    walk.index ??= new SchemaIndex(walk.root);
    others.push(walk.index.find(schema, ref)?.schema ?? true);
  }
  // A value fits all of them.
  const types = others.map((one) => read(one, walk, depth + 1));
  return [...types, readOwn(own, walk, depth)].reduce((known, more) => refine(known, more));
}

function readOwn(schema: JsonObject, walk: Walk, depth: number): Type {
  if (schema.const !== undefined) return fromValue(schema.const);
  if (Array.isArray(schema.enum)) return fromValues(schema.enum as Json[]);
  const choice = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(choice) && schema.type === undefined && schema.properties === undefined)
    return union((choice as Json[]).map((one) => read(one, walk, depth + 1)));
  const { type } = schema;
  const kinds = Array.isArray(type) ? (type as Json[]) : type === undefined && isMap(schema.properties) ? [] : [type];
  if (kinds.length === 0 || kinds.includes(undefined as unknown as Json)) return ANY;
  return union(kinds.map((kind) => readKind(kind as Json, schema, walk, depth)));
}

function readKind(kind: Json, schema: JsonObject, walk: Walk, depth: number): Type {
  switch (kind) {
    case 'string':
      return withExample(STRING, exampleText(schema));
    case 'number':
    case 'integer': {
      const countOf = schema['x-countOf'];
      return typeof countOf === 'string' ? { kind: 'number', countOf } : withExample(NUMBER, exampleNumber(schema));
    }
    case 'boolean':
      return BOOLEAN;
    case 'null':
      return NULL;
    case 'array':
      return listOf(
        isMap(schema.items) && schema.prefixItems === undefined ? read(schema.items, walk, depth + 1) : ANY,
        typeof schema.minItems === 'number' ? schema.minItems : 0,
      );
    case 'object':
      return readObject(schema, walk, depth);
    default:
      return ANY;
  }
}

function withExample(type: ScalarType, found: Json | undefined): ScalarType {
  return found !== undefined && typeof found === type.kind ? { ...type, example: found as Scalar } : type;
}

const given = ({ default: preset, examples }: JsonObject): Json | undefined =>
  preset ?? (Array.isArray(examples) ? (examples[0] as Json | undefined) : undefined);

const FORMATS: Readonly<Record<string, string>> = {
  ...{ date: '2026-01-31', time: '09:00:00Z', 'date-time': '2026-01-31T09:00:00Z', duration: 'P1D' },
  ...{ email: 'ada@example.com', hostname: 'example.com', ipv4: '192.0.2.1', ipv6: '2001:db8::1' },
  ...{ uri: 'https://example.com/', 'uri-reference': '/', uuid: '01890a5d-ac96-774b-bcce-b302099a8057' },
};
const MAX_EXAMPLE = 1_000;

function exampleText(schema: JsonObject): Json | undefined {
  const { format, minLength } = schema;
  const known = given(schema) ?? (typeof format === 'string' ? FORMATS[format] : undefined);
  return (
    known ?? (typeof minLength === 'number' && minLength > 1 ? 'x'.repeat(Math.min(minLength, MAX_EXAMPLE)) : known)
  );
}

function exampleNumber(schema: JsonObject): Json | undefined {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum, multipleOf } = schema;
  const numbers = [minimum, exclusiveMinimum, maximum, exclusiveMaximum, multipleOf];
  const known = given(schema);
  if (known !== undefined || numbers.every((one) => typeof one !== 'number')) return known;
  const low = Math.max(...[minimum, exclusiveMinimum].map((one) => (typeof one === 'number' ? one : -Infinity)));
  const high = Math.min(...[maximum, exclusiveMaximum].map((one) => (typeof one === 'number' ? one : Infinity)));
  const step = typeof multipleOf === 'number' && multipleOf > 0 ? multipleOf : 1;
  // 1 if it fits, else the first multiple above the minimum, or the last below the maximum.
  const fits = (one: number) =>
    one >= low && one <= high && one !== exclusiveMinimum && one !== exclusiveMaximum && one % step === 0;
  const candidates = [1, step, Math.ceil(low / step) * step, (Math.floor(low / step) + 1) * step];
  return [...candidates, Math.floor(high / step) * step, (Math.ceil(high / step) - 1) * step, (low + high) / 2].find(
    fits,
  );
}

// These keywords may add fields, or say more about those of `properties`.
const OPEN = ['anyOf', 'oneOf', 'if', 'dependentSchemas', 'dependencies', 'patternProperties'];

function readObject(schema: JsonObject, walk: Walk, depth: number): Type {
  const { properties, additionalProperties: more } = schema;
  const needed = Array.isArray(schema.required) ? (schema.required as Json[]) : [];
  const fields: [string, Field][] = [];
  for (const [name, inner] of isMap(properties) ? Object.entries(properties) : []) {
    const type = read(inner as Json, walk, depth + 1);
    const filled = walk.side === 'output' && isMap(inner) && inner.default !== undefined;
    fields.push([name, { type, optional: !needed.includes(name) && !filled }]);
  }
  if (OPEN.some((key) => schema[key] !== undefined)) return recordOf(fields, ANY);
  if (more === false || schema.unevaluatedProperties === false) return recordOf(fields, 'closed');
  if (isMap(more)) return recordOf(fields, read(more, walk, depth + 1));
  if (more === true || fields.length === 0) return recordOf(fields, ANY);
  return recordOf(fields, 'declared');
}

/** The type of any of some values. */
function fromValues(values: readonly Json[]): Type {
  const kinds = new Map<ScalarType['kind'], (string | number | boolean)[]>();
  const others: Type[] = [];
  for (const value of values) {
    if (value === null || typeof value === 'object') others.push(fromValue(value));
    else {
      const kind = typeof value as ScalarType['kind'];
      const known = kinds.get(kind);
      if (known) known.push(value);
      else kinds.set(kind, [value]);
    }
  }
  return union([...[...kinds].map(([kind, all]) => oneOfValues(kind, all)), ...others]);
}

/** The type of exactly one value. */
export function fromValue(value: Json): Type {
  if (value === null || typeof value !== 'object') return literal(value);
  if (Array.isArray(value)) return listOf(union((value as Json[]).map(fromValue)), (value as Json[]).length);
  return recordOf(
    Object.entries(value).map(([key, inner]) => [key, { type: fromValue(inner as Json), optional: false }]),
  );
}

/** The type of `${input}`. */
export function fromInputs(inputs: EnsembleDefinition['inputs'], schemas: SchemaTypes): Type {
  if (inputs === undefined) return ANY;
  if (isJsonSchema(inputs)) {
    const read = schemas.of(inputs as JsonObject);
    return read.kind === 'record' ? withReasons(read.fields, read.rest) : read;
  }
  const fields = Object.entries(inputs as Record<string, InputField>).map(([name, field]): [string, Field] => [
    name,
    { type: fromInputField(field), optional: field.required !== true && field.default === undefined },
  ]);
  return withReasons(new Map(fields), 'declared');
}

// An input that is not given reads as null, and a message about it says why.
function withReasons(fields: ReadonlyMap<string, Field>, rest: Type | 'closed' | 'declared'): Type {
  return recordOf(
    [...fields].map(([name, { type, optional }]) => [
      name,
      optional
        ? {
            type: union([
              withoutNull(type),
              nullBecause(`input \`${name}\` is not \`required\` and has no \`default\``),
            ]),
            optional,
          }
        : { type, optional },
    ]),
    rest,
  );
}

const KINDS: Readonly<Record<string, Type>> = {
  string: STRING,
  number: NUMBER,
  integer: NUMBER,
  boolean: BOOLEAN,
  object: recordOf([], ANY),
  array: listOf(ANY),
  any: ANY,
};

function fromInputField({ type = 'any', enum: values }: InputField): Type {
  if (values) return fromValues(values);
  return KINDS[type] ?? ANY;
}
