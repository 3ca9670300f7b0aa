/** Writes the forms of the language as one JSON Schema, for editors and other validators. */

import * as z from 'zod';
import { NAME_PATTERN } from '../model/name.ts';
import { STEP_LIST } from './form.ts';
import {
  agentSchema,
  agentStepSchema,
  ensembleSchema,
  foreachStepSchema,
  ifStepSchema,
  inputFieldSchema,
} from './forms.ts';
import { emailNotificationSchema, webhookNotificationSchema, webhookTriggerSchema } from './trigger-forms.ts';

type Schema = Record<string, unknown>;

const DIALECT = 'https://json-schema.org/draft/2020-12/schema';

/** The JSON Schema (2020-12) of a definition file. What only the checks at load can see, such as names, it leaves open. */
export function ensembleJsonSchema(): Record<string, unknown> {
  const top = toJson(ensembleSchema);
  const properties = top.properties as Record<string, Schema>;
  const agents = { type: 'array', items: ref('agent') };
  const named = { inputs: inputsSchema(), input: inputsSchema(), agents, operations: agents, members: agents };
  const lists = {
    trigger: { type: 'array', items: ref('trigger') },
    notifications: { type: 'array', items: ref('notification') },
  };
  for (const [key, schema] of Object.entries({ ...named, ...lists }))
    properties[key] = { ...properties[key], ...schema };
  return fillStepLists({
    $schema: DIALECT,
    title: 'Ensemble',
    ...top,
    allOf: [
      ...notTogether('agents', 'operations', 'members'),
      ...notTogether('inputs', 'input'),
      ...notTogether('outputs', 'output'),
    ],
    $defs: definitions(),
  });
}

function definitions(): Schema {
  const ofAgents = [...notTogether('condition', 'when'), ...notTogether('operation', 'type')];
  return {
    step: { anyOf: [ref('agentStep'), ref('ifStep'), ref('foreachStep')] },
    agentStep: {
      ...agentToJson(agentStepSchema),
      oneOf: [{ required: ['agent'] }, { required: ['member'] }],
      allOf: ofAgents,
    },
    ifStep: toJson(ifStepSchema),
    foreachStep: foreachToJson(),
    agent: { ...agentToJson(agentSchema), allOf: ofAgents },
    trigger: {
      ...toJson(webhookTriggerSchema),
      oneOf: [{ required: ['auth'] }, { required: ['public'], properties: { public: { const: true } } }],
    },
    notification: { anyOf: [toJson(webhookNotificationSchema), toJson(emailNotificationSchema)] },
    inputField: toJson(inputFieldSchema),
  };
}

function agentToJson(schema: z.ZodType): Schema {
  const json = toJson(schema) as { properties: { routes: { items: Schema } } };
  json.properties.routes.items.allOf = [...notTogether('condition', 'when'), ...notTogether('member', 'agent')];
  return json;
}

function foreachToJson(): Schema {
  const json = toJson(foreachStepSchema) as { properties: { foreach: Schema; steps: Schema } };
  json.properties.foreach = { anyOf: [{ type: 'string', pattern: '\\$\\{' }, { type: 'array' }] };
  json.properties.steps.minItems = 1;
  return { ...json, allOf: notTogether('condition', 'when') };
}

function inputsSchema(): Schema {
  const jsonSchema = { $ref: DIALECT, type: 'object', properties: { type: { const: 'object' } }, required: ['type'] };
  const fields = {
    type: 'object',
    propertyNames: { pattern: NAME_PATTERN.source },
    additionalProperties: ref('inputField'),
  };
  return { anyOf: [jsonSchema, fields] };
}

function toJson(schema: z.ZodType): Schema {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Schema;
  return json;
}

function ref(name: string): Schema {
  return { $ref: `#/$defs/${name}` };
}

// Two spellings of one key are never both right.
function notTogether(...keys: string[]): Schema[] {
  return keys.flatMap((key, i) => keys.slice(i + 1).map((other) => ({ not: { required: [key, other] } })));
}

function fillStepLists<T>(node: T): T {
  if (Array.isArray(node)) return node.map(fillStepLists) as T;
  if (typeof node !== 'object' || node === null) return node;
  const out: Schema = {};
  for (const [key, value] of Object.entries(node)) if (key !== STEP_LIST) out[key] = fillStepLists(value);
  if (STEP_LIST in node) out.items = ref('step');
  return out as T;
}
