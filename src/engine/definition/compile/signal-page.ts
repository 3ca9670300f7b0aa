/** What the page of a signal link shows and asks: the third argument of `signalUrl()`. */

import type { Json, JsonObject } from '../../base/json.ts';
import { checkJsonSchema, isMap } from '../../json-schema/check-json-schema.ts';
import type { SignalPage } from '../../model/signal-page.ts';

const TEXTS: readonly string[] = ['title', 'text', 'confirm'];
const KEYS: readonly string[] = [...TEXTS, 'fields'];
/** The types of a field that a form can ask for. */
const TYPES: readonly (Json | undefined)[] = ['string', 'number', 'integer', 'boolean'];

/** @returns the page, or what is wrong with it. The payload gets the fields, so no field is a key of it */
export function readSignalPage(given: Json, payload: Json): SignalPage | string {
  if (!isMap(given)) return 'must be an object with `title`, `text`, `confirm` and `fields`';
  const unknown = Object.keys(given).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) return `has the unknown key \`${unknown}\`; its keys are ${KEYS.join(', ')}`;
  const wrong = TEXTS.find((key) => given[key] !== undefined && typeof given[key] !== 'string');
  if (wrong !== undefined) return `\`${wrong}\` must be text`;
  const problem = given.fields === undefined ? undefined : fieldsProblem(given.fields, payload);
  return problem ?? (given as SignalPage);
}

function fieldsProblem(fields: Json, payload: Json): string | undefined {
  const properties = isMap(fields) && fields.type === 'object' ? fields.properties : undefined;
  if (!isMap(properties)) return '`fields` must be a JSON Schema with `type: object` and `properties`';
  if (payload !== null && !isMap(payload))
    return '`fields` need a payload that is an object, or null: they are added to it';
  for (const [name, schema] of Object.entries(properties)) {
    if (isMap(payload) && Object.hasOwn(payload, name)) return `field \`${name}\` is a key of the payload already`;
    if (!isMap(schema) || !(TYPES.includes(schema.type) || Array.isArray(schema.enum)))
      return `field \`${name}\` must have an \`enum\`, or one of the types ${TYPES.join(', ')}`;
  }
  const problems: string[] = [];
  checkJsonSchema(fields as JsonObject, ['fields'], ({ message }) => problems.push(message));
  return problems[0] && `\`fields\` is not a valid JSON Schema: it ${problems[0]}`;
}
