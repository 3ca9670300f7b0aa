/** The schema of `config` for each operation. */

import type * as z from 'zod/mini';
import type { AnyOperation } from '../../engine/operation/operation.port.ts';
import { jsonSchemaOf } from '../../engine/operation/standard-schema.port.ts';
import { describeKeys, withDescription } from './describe-keys.ts';
import {
  anyOf,
  chosenBy,
  mapValues,
  type ObjectSchema,
  ref,
  type Schema,
  simplify,
  suggest,
  toJsonSchema,
} from './json-schema.ts';
import { KEY_DESCRIPTIONS } from './key-descriptions.ts';

// Null, which editors need not offer.
const NULL: Schema = { not: { type: ['string', 'number', 'boolean', 'object', 'array'] } };
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];
const STATUSES: readonly Schema[] = [
  { type: 'integer', minimum: 100, maximum: 599 },
  {
    type: 'string',
    pattern: '^[1-5][xX]{2}$',
    errorMessage: 'must be a status from 100 to 599, a class such as `2xx`, or a list of these',
  },
];
const inAnyCase = (word: string) => [...word].map((letter) => `[${letter}${letter.toLowerCase()}]`).join('');
const METHOD: Schema = {
  type: 'string',
  pattern: `^(?:${METHODS.map(inAnyCase).join('|')})$`,
  errorMessage: `must be one of ${METHODS.join(', ')}`,
};

/** What the schemas of the built-in operations check by code, as far as an editor can check it. */
const KNOWN_VALUES: Readonly<Record<string, Readonly<Record<string, Schema>>>> = {
  api: {
    method: anyOf(METHOD, { enum: METHODS }, NULL),
    expect: anyOf(...STATUSES, { type: 'array', minItems: 1, items: anyOf(...STATUSES) }, NULL),
  },
  storage: { query: { type: 'string' } },
};
const TEXT: Schema = { type: 'string' };
const HOLDS_EXPRESSION: Schema = { type: 'string', pattern: '\\$\\{|^(?:prompt|template|config|query)://' };
/** A config that is complete without a stored one. */
const IS_WHOLE: Schema = { type: 'object', not: { required: ['<<'] } };

/** @returns by the name of the operation. An operation without a config schema is left out, and takes any config */
export function configSchemas(
  operations: ReadonlyMap<string, AnyOperation>,
  scripts: readonly string[],
): Readonly<Record<string, Schema>> {
  const schemas: Record<string, Schema> = {};
  for (const [name, { config, texts }] of operations) {
    if (!config) continue;
    const json = toConfigSchema(name, config);
    if (!isObjectSchema(json)) {
      schemas[name] = Array.isArray(json.anyOf) ? anyOf(...json.anyOf.map(withExpressions)) : withExpressions(json);
      continue;
    }
    const properties = mapValues({ ...json.properties, ...KNOWN_VALUES[name] }, orExpression);
    // The schema takes the statement that the text becomes.
    for (const key of Object.keys(texts ?? {})) if (texts?.[key] === 'sql' && properties[key]) properties[key] = TEXT;
    if (name === 'code') properties.script = suggest(scripts, properties.script as Schema);
    const place = `config-${name}`;
    const made = { ...json, ...(name === 'think' && { allOf: [unlessStored(json)] }), properties };
    schemas[name] = KEY_DESCRIPTIONS[place] ? describeKeys(made, [place]) : made;
  }
  return schemas;
}

/** The metadata of a stored prompt may name the model. */
function unlessStored({ allOf }: Schema): Schema {
  const prompt = { type: 'string', pattern: '^prompt://' };
  return { if: { properties: { prompt }, required: ['prompt'] }, else: { allOf } };
}

function isObjectSchema(schema: Schema): schema is ObjectSchema {
  return schema.type === 'object' && schema.properties !== undefined;
}

/** The rule that gives `config` of an agent the schema of its `operation`. */
export function configByOperation(operations: readonly string[]): Schema {
  return {
    allOf: operations.map((name) => ({
      if: {
        type: 'object',
        properties: { operation: { const: name }, config: IS_WHOLE },
        required: ['operation'],
      },
      then: { properties: { config: ref(`config-${name}`) } },
    })),
  };
}

// A schema with references can't be moved. The library checks such a config when it loads the definition.
function toConfigSchema(name: string, config: NonNullable<AnyOperation['config']>): Schema {
  const own = '_zod' in config ? undefined : jsonSchemaOf(config);
  const json = own ? simplify(own) : jsonSchemaOfZod(config as unknown as z.core.$ZodType);
  const isWhole = json && !JSON.stringify(json).includes('"$ref"');
  if (!isWhole)
    return {
      type: 'object',
      ...withDescription(`The config of the operation \`${name}\`, which its own schema checks.`),
    };
  return json;
}

function jsonSchemaOfZod(config: z.core.$ZodType): Schema | undefined {
  try {
    return '_zod' in config ? toJsonSchema(config) : undefined;
  } catch {
    return undefined;
  }
}

/** A value of a config. At every place it may be an expression instead. */
function orExpression(schema: Schema): Schema {
  const { description, ...rest } = schema;
  const options = (rest.anyOf as readonly Schema[] | undefined) ?? [rest];
  if (options.some(needsNoExpression)) return schema;
  return {
    ...(typeof description === 'string' && withDescription(description)),
    ...anyOf(...options.map(withExpressions), HOLDS_EXPRESSION),
  };
}

/** Whether a value takes any text already, or is the one text that says which of several maps is meant. */
function needsNoExpression(schema: Schema): boolean {
  const { type, enum: values, pattern, const: only } = schema;
  if (Object.keys(schema).length === 0 || only !== undefined) return true;
  return (type === 'string' || (Array.isArray(type) && type.includes('string'))) && !values && !pattern;
}

/** The key whose text says which of several maps a value is. */
function decidingKey([first, ...others]: readonly ObjectSchema[]): string | undefined {
  const decides = (key: string, { properties }: ObjectSchema) => typeof properties?.[key]?.const === 'string';
  return Object.keys(first?.properties ?? {}).find((key) =>
    [first, ...others].every((option) => option && decides(key, option)),
  );
}

function withExpressions(schema: Schema): Schema {
  const { type, oneOf, properties, additionalProperties, items } = schema;
  if (type === 'null') return NULL;
  if (Array.isArray(oneOf)) {
    const options = oneOf.map(withExpressions) as ObjectSchema[];
    const key = decidingKey(options);
    return key === undefined ? anyOf(...options) : chosenBy(key, options);
  }
  return {
    ...schema,
    ...(typeof properties === 'object' && {
      properties: mapValues(properties as Record<string, Schema>, orExpression),
    }),
    ...(typeof additionalProperties === 'object' && {
      additionalProperties: orExpression(additionalProperties as Schema),
    }),
    ...(typeof items === 'object' && { items: orExpression(items as Schema) }),
  };
}
