/** The keywords of a JSON Schema that declares inputs, for editors. */

import { JSON_SCHEMA_TYPES } from '../../engine/json-schema/check-json-schema.ts';
import { ref, type Schema } from './json-schema.ts';

const schema = ref('inputSchema');
const schemas = { type: 'array', items: schema, minItems: 1 };
const schemasByName = { type: 'object', additionalProperties: schema };
const texts = { type: 'array', items: { type: 'string' } };
const type = { enum: JSON_SCHEMA_TYPES };
const count = { type: 'integer', minimum: 0 };

/** Other keys are notes for readers, or keywords that few need: the library checks those when it loads the definition. */
export const INPUT_SCHEMA: Schema = {
  type: ['object', 'boolean'],
  properties: {
    type: { anyOf: [type, { type: 'array', items: type, minItems: 1 }] },
    description: { type: 'string' },
    default: {},
    enum: { type: 'array' },
    const: {},
    properties: schemasByName,
    required: texts,
    additionalProperties: schema,
    patternProperties: schemasByName,
    propertyNames: schema,
    minProperties: count,
    maxProperties: count,
    items: {},
    prefixItems: schemas,
    contains: schema,
    minItems: count,
    maxItems: count,
    uniqueItems: { type: 'boolean' },
    minLength: count,
    maxLength: count,
    pattern: { type: 'string' },
    format: { type: 'string' },
    minimum: { type: 'number' },
    maximum: { type: 'number' },
    exclusiveMinimum: { type: ['number', 'boolean'] },
    exclusiveMaximum: { type: ['number', 'boolean'] },
    multipleOf: { type: 'number', exclusiveMinimum: 0 },
    allOf: schemas,
    anyOf: schemas,
    oneOf: schemas,
    not: schema,
    if: schema,
    then: schema,
    else: schema,
    $ref: { type: 'string', pattern: '^#' },
    $defs: schemasByName,
  },
};
