/** Adds to each key of a form what the documentation says about it. */

import { mapValues, type ObjectSchema, type Schema } from './json-schema.ts';
import { KEY_DESCRIPTIONS } from './key-descriptions.ts';

/** Keys that stay valid and that editors don't offer, with their current spelling. */
const OLD_SPELLINGS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ensemble: { operations: 'agents', members: 'agents', input: 'inputs', output: 'outputs' },
  agent: { type: 'operation', when: 'condition', 'routes.when': 'condition', 'routes.agent': 'member' },
  step: { member: 'agent', when: 'condition' },
  'config-api': { params: 'query' },
};

/**
 * @param places - the sections of the documentation that describe the keys. The first one that has a key counts
 * @param path - of the map in its form, such as `retry.`
 */
export function describeKeys(schema: ObjectSchema, places: readonly string[], path = ''): ObjectSchema {
  return {
    ...schema,
    properties: mapValues(schema.properties, (value, key) => describeKey(value, places, path + key)),
  };
}

function describeKey(value: Schema, places: readonly string[], path: string): Schema {
  const inside = describeInside(value, places, path);
  const find = (texts: typeof KEY_DESCRIPTIONS) => places.map((place) => texts[place]?.[path]).find(Boolean);
  const current = find(OLD_SPELLINGS);
  if (current) return { ...inside, ...withDescription(`Means the same as \`${current}\`.`), doNotSuggest: true };
  const text = find(KEY_DESCRIPTIONS);
  return text ? { ...inside, ...withDescription(text) } : inside;
}

/** A text with marks is there twice: some editors read only the plain one, and others show its marks only when it says that it has them. */
export function withDescription(text: string): Schema {
  return { description: text, ...(/[`*_]/.test(text) && { markdownDescription: text }) };
}

// The maps below a key: in a map, in a list, or one of several.
function describeInside(schema: Schema, places: readonly string[], path: string): Schema {
  const { description: _form, ...rest } = schema;
  const inside = (inner: unknown) => describeInside(inner as Schema, places, path);
  const lists = ['anyOf', 'allOf'].filter((key) => Array.isArray(rest[key]));
  for (const key of lists) rest[key] = (rest[key] as readonly Schema[]).map(inside);
  for (const key of ['items', 'then'].filter((name) => typeof rest[name] === 'object')) rest[key] = inside(rest[key]);
  return rest.properties === undefined ? rest : describeKeys(rest as ObjectSchema, places, `${path}.`);
}
