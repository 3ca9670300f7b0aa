/** Writes the forms of the language as one JSON Schema, for editors and other validators. */

import * as z from 'zod';
import { DURATION, LONGEST_SLEEP_MS } from '../duration.ts';
import { NAME_PATTERN } from '../model/name.ts';
import { MAX_FOREACH_ITEMS } from './compiled-ensemble.ts';
import { FLOW_FORMS } from './flow-forms.ts';
import { STEP_LIST } from './form.ts';
import { agentSchema, agentStepSchema, ensembleSchema, inputFieldSchema } from './forms.ts';
import {
  emailNotificationSchema,
  scheduleTriggerSchema,
  webhookNotificationSchema,
  webhookTriggerSchema,
} from './trigger-forms.ts';

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
    step: { anyOf: [ref('agentStep'), ...Object.keys(FLOW_FORMS).map((verb) => ref(`${verb}Step`))] },
    agentStep: {
      ...agentToJson(agentStepSchema),
      oneOf: [{ required: ['agent'] }, { required: ['member'] }],
      allOf: ofAgents,
    },
    ...Object.fromEntries(Object.entries(FLOW_FORMS).map(([verb, schema]) => [`${verb}Step`, flowStepToJson(schema)])),
    agent: { ...agentToJson(agentSchema), allOf: ofAgents },
    trigger: {
      anyOf: [
        {
          ...toJson(webhookTriggerSchema),
          oneOf: [{ required: ['auth'] }, { required: ['public'], properties: { public: { const: true } } }],
        },
        toJson(scheduleTriggerSchema),
      ],
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

// Form that the checks at load see to.
const NOT_EMPTY: Readonly<Record<string, Schema>> = {
  steps: { minItems: 1 },
  parallel: { minItems: 1 },
  try: { minItems: 1 },
  cases: { minProperties: 1 },
};
const INSTANT: Schema = {
  anyOf: [
    { type: 'number' },
    { type: 'string', pattern: '\\$\\{|^\\s*\\d{4}-\\d{2}-\\d{2}(?:[T ]\\d{2}:\\d{2}.*)?\\s*$' },
  ],
};
const DURATIONS: readonly Schema[] = [
  { type: 'number', minimum: 0, maximum: LONGEST_SLEEP_MS },
  { type: 'string', pattern: `\\$\\{|${DURATION.source}` },
];
const VALUES: Readonly<Record<string, Schema>> = {
  foreach: {
    anyOf: [
      { type: 'string', pattern: '\\$\\{' },
      { type: 'array', maxItems: MAX_FOREACH_ITEMS },
    ],
  },
  sleep: {
    anyOf: [
      ...DURATIONS,
      { type: 'object', properties: { until: INSTANT }, required: ['until'], additionalProperties: false },
    ],
  },
  until: INSTANT,
  wait: { type: 'string', pattern: NAME_PATTERN.source },
  timeout: { anyOf: DURATIONS },
};
/** That of an `ensemble` is above 0. */
const CHILD_TIMEOUT: Schema = {
  anyOf: [
    { type: 'number', exclusiveMinimum: 0, maximum: LONGEST_SLEEP_MS },
    { type: 'string', pattern: `\\$\\{|(?=.*[1-9])${DURATION.source}` },
  ],
};

function flowStepToJson(schema: z.ZodType): Schema {
  const json = toJson(schema) as { properties: Record<string, Schema> };
  const { properties } = json;
  for (const key of Object.keys(properties)) properties[key] = VALUES[key] ?? { ...properties[key], ...NOT_EMPTY[key] };
  if (Object.hasOwn(properties, 'detached')) properties.timeout = CHILD_TIMEOUT;
  const neverAlone = { anyOf: [{ required: ['catch'] }, { required: ['finally'] }] };
  const rules: Schema[] = [
    ...(Object.hasOwn(properties, 'onTimeout') ? [{ dependentRequired: { onTimeout: ['timeout'] } }] : []),
    ...(Object.hasOwn(properties, 'try') ? [neverAlone] : []),
    ...(Object.hasOwn(properties, 'when') ? notTogether('condition', 'when') : []),
  ];
  return rules.length > 0 ? { ...json, allOf: rules } : json;
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
