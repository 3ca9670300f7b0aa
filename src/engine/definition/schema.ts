/** The shapes of the language, one schema a form: what the parser checks and what `ensemble schema` prints. */

import * as z from 'zod';
import { NAME_PATTERN, NAME_RULE } from '../model/name.ts';

/** Facts that a form hands to the writer of issues through zod's message; see `explain-issue.ts`. */
export interface UnknownKeyFacts {
  readonly what: string;
  readonly keys: readonly string[];
  /** What to say of keys that people write here though they belong elsewhere. */
  readonly hints?: Readonly<Record<string, string>>;
}

// A strict object whose unknown-key issue names the form and its keys, so that the nearest key can be suggested.
function form<S extends z.core.$ZodLooseShape>(what: string, shape: S, hints?: UnknownKeyFacts['hints']) {
  const facts: UnknownKeyFacts = { what, keys: Object.keys(shape), ...(hints && { hints }) };
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'unrecognized_keys' ? JSON.stringify(facts) : undefined),
  });
}

const jsonObject = z.record(z.string(), z.unknown());
const name = z.string().regex(NAME_PATTERN, { error: `must be a name (${NAME_RULE})` });
const text = z.string();
const nonEmpty = z.string().min(1, { error: 'must not be empty' });
const guard = z.union([text, z.boolean()], { error: 'must be an expression, `true` or `false`' });
const positiveInteger = z.int().min(1);
const milliseconds = z.int().min(1).max(315_360_000_000);
/** Marks the lists that hold steps; their items are checked one by one, each by its own form. */
const STEP_LIST = 'x-step-list';
const steps = z.array(z.unknown()).meta({ [STEP_LIST]: true });

const retry = form('`retry`', {
  maxAttempts: z.int().min(1).max(100).describe('All attempts, the first included.'),
  backoff: z.enum(['exponential', 'fixed', 'linear']).optional(),
  delay: z.int().min(0).max(86_400_000).optional().describe('Milliseconds, for fixed and linear.'),
});

const route = form('a route', {
  condition: guard.optional(),
  when: guard.optional(),
  default: z.boolean().optional(),
  member: name.optional(),
  agent: name.optional(),
  prompt: nonEmpty.optional(),
});

/** The entries of a router. */
export const routesSchema = z.array(route).min(1);

// Settings of the operations, which stand one level deeper.
const IN_CONFIG = Object.fromEntries(
  ['script', 'url', 'method', 'params', 'query', 'headers', 'body', 'auth', 'expect', 'prompt', 'model', 'provider']
    .concat(['system', 'action', 'key', 'value', 'mcp', 'tool', 'to', 'from', 'subject', 'html', 'template'])
    .map((key) => [key, 'settings of the operation stand under `config`']),
);

const behaviour = {
  description: text.optional(),
  operation: nonEmpty.optional(),
  type: z
    .enum(['Function', 'API', 'Think', 'Route', 'Data', 'Email'])
    .optional()
    .describe('The older form of `operation`.'),
  config: jsonObject.optional(),
  input: z.unknown().optional(),
  condition: guard.optional(),
  when: guard.optional(),
  retry: retry.optional(),
  timeout: milliseconds.optional().describe('Milliseconds for one attempt.'),
  continueOnError: z.boolean().optional(),
  setState: jsonObject.optional(),
  routes: routesSchema.optional(),
};

/** One entry of `agents`, and a shared agent. */
export const agentSchema = form('an agent', { name, ...behaviour }, IN_CONFIG);

const inputField = form(
  'an input field',
  {
    type: z.enum(['string', 'number', 'integer', 'boolean', 'object', 'array', 'any']).optional(),
    required: z.boolean().optional(),
    default: z.unknown().optional(),
    enum: z.array(z.unknown()).min(1).optional(),
    description: text.optional(),
  },
  Object.fromEntries(
    ['properties', 'items', 'format', 'minimum', 'maximum', 'minLength', 'maxLength', 'pattern'].map((key) => [
      key,
      'for a JSON Schema, give `inputs` itself `type: object` and `properties`',
    ]),
  ),
);
export const inputFieldsSchema = z.record(name, inputField);

export const webhookTriggerSchema = form('a webhook trigger', {
  type: z.literal('webhook'),
  path: z.string().regex(/^\/[^\s?#]*$/, { error: 'must be a path that begins with `/`, without `?` or `#`' }),
  methods: z
    .array(z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']))
    .min(1)
    .optional(),
  public: z.boolean().optional(),
  auth: form('`auth`', {
    type: z.enum(['bearer', 'signature', 'basic', 'oauth']),
    secret: z
      .union([text, z.array(text).min(1).max(10)], { error: 'must be a text or a list of 1 to 10 texts' })
      .optional(),
    scheme: z.enum(['service', 'github', 'stripe', 'slack', 'standard']).optional(),
    issuer: nonEmpty.optional(),
    audience: nonEmpty.optional(),
  }).optional(),
  async: z.boolean().optional(),
  maxBodyBytes: z.int().min(1).max(26_214_400).optional(),
  accept: z
    .array(z.enum(['json', 'form', 'text']))
    .min(1)
    .optional(),
});

/** Kinds of event that a notification can be sent about. */
export const NOTIFIED_EVENTS = [
  'execution.started',
  'execution.completed',
  'execution.failed',
  'execution.timeout',
  'agent.completed',
  'state.updated',
] as const;

const events = z.array(z.enum(NOTIFIED_EVENTS)).min(1);
export const webhookNotificationSchema = form('a webhook notification', {
  type: z.literal('webhook'),
  events,
  url: nonEmpty,
  secret: nonEmpty.optional(),
  retries: z.int().min(0).max(5).optional(),
  timeout: milliseconds.optional(),
  standard: z.boolean().optional(),
});
export const emailNotificationSchema = form('an e-mail notification', {
  type: z.literal('email'),
  events,
  to: z.array(nonEmpty).min(1),
  from: nonEmpty,
  subject: text.optional(),
  provider: nonEmpty.optional(),
});

export const agentStepSchema = form(
  'an agent step',
  {
    agent: name.optional(),
    member: name.optional().describe('The older form of `agent`.'),
    name: name.optional(),
    ...behaviour,
  },
  IN_CONFIG,
);
export const ifStepSchema = form(
  'an `if` step',
  { if: guard, then: steps, else: steps.optional() },
  {
    condition: 'the guard stands behind `if`',
    when: 'the guard stands behind `if`',
    name: 'it has no result of its own; name the steps inside',
  },
);
export const foreachStepSchema = form('a `foreach` step', {
  foreach: z.union([text, z.array(z.unknown())], { error: 'must be an expression or a list' }),
  steps,
  name: name.optional(),
  as: name.optional(),
  concurrency: positiveInteger.max(1000).optional(),
  breakWhen: guard.optional(),
  collect: z.boolean().optional(),
  condition: guard.optional(),
  when: guard.optional(),
  continueOnError: z.boolean().optional(),
});

/** A step's verb key to its form. */
export const STEP_FORMS = {
  agent: agentStepSchema,
  member: agentStepSchema,
  if: ifStepSchema,
  foreach: foreachStepSchema,
} as const;

/** Verbs of the language that this version does not run; they are refused by name. */
export const LATER_VERBS: readonly string[] = ['parallel', 'switch', 'while', 'try', 'ensemble', 'sleep', 'wait'];

/** The top of a definition; the parts that have forms of their own are checked apart. */
export const ensembleSchema = form(
  'an ensemble',
  {
    name,
    description: text.optional(),
    trigger: z.array(z.unknown()).optional(),
    flow: steps,
    agents: z.array(z.unknown()).optional(),
    operations: z.array(z.unknown()).optional().describe('Another name for `agents`.'),
    members: z.array(z.unknown()).optional().describe('The older form of `agents`.'),
    inputs: jsonObject.optional(),
    input: jsonObject.optional().describe('Another name for `inputs`.'),
    outputs: jsonObject.optional(),
    output: jsonObject.optional().describe('Another name for `outputs`.'),
    notifications: z.array(z.unknown()).optional(),
    state: form('`state`', { initial: jsonObject }).optional(),
    timeout: milliseconds.optional().describe('Milliseconds from the start, waits included.'),
    execution: form('`execution`', { durability: z.enum(['step', 'none']).optional() }).optional(),
  },
  {
    steps: 'the steps of an ensemble stand under `flow`',
    on: 'webhooks stand under `trigger`',
    env: 'variables are handed to createOrchestrator in `env` and `secrets`',
    retry: 'it belongs to an agent or a step',
    condition: 'it belongs to an agent or a step',
  },
);

/** Whether `inputs` is a JSON Schema rather than a map of fields: then `type` is text, never a field's object. */
export function isJsonSchema(inputs: unknown): boolean {
  return typeof inputs === 'object' && inputs !== null && typeof (inputs as { type?: unknown }).type === 'string';
}

/** The JSON Schema (2020-12) of a definition file, for editors. */
export function ensembleJsonSchema(): Record<string, unknown> {
  const toJson = (schema: z.ZodType) => {
    const { $schema: _drop, ...json } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Record<
      string,
      unknown
    >;
    return json;
  };
  const agentStep = { ...toJson(agentStepSchema), anyOf: [{ required: ['agent'] }, { required: ['member'] }] };
  const defs: Record<string, unknown> = {
    step: { anyOf: [{ $ref: '#/$defs/agentStep' }, { $ref: '#/$defs/ifStep' }, { $ref: '#/$defs/foreachStep' }] },
    agentStep,
    ifStep: toJson(ifStepSchema),
    foreachStep: toJson(foreachStepSchema),
    agent: toJson(agentSchema),
    trigger: toJson(webhookTriggerSchema),
    notification: { anyOf: [toJson(webhookNotificationSchema), toJson(emailNotificationSchema)] },
    inputField: toJson(inputField),
  };
  const top = toJson(ensembleSchema) as { properties: Record<string, Record<string, unknown>> };
  for (const key of ['agents', 'operations', 'members'])
    top.properties[key] = { ...top.properties[key], items: { $ref: '#/$defs/agent' } };
  top.properties.trigger = { type: 'array', items: { $ref: '#/$defs/trigger' } };
  top.properties.notifications = { type: 'array', items: { $ref: '#/$defs/notification' } };
  const fields = { type: 'object', additionalProperties: { $ref: '#/$defs/inputField' } };
  const schemaInputs = { type: 'object', properties: { type: { const: 'object' } }, required: ['type'] };
  for (const key of ['inputs', 'input'])
    top.properties[key] = { ...top.properties[key], anyOf: [schemaInputs, fields] };
  return fillStepLists({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Ensemble',
    ...top,
    $defs: defs,
  });
}

function fillStepLists<T>(node: T): T {
  if (Array.isArray(node)) return node.map(fillStepLists) as T;
  if (typeof node !== 'object' || node === null) return node;
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(node)) if (key !== STEP_LIST) out[key] = fillStepLists(value);
  if (STEP_LIST in node) out.items = { $ref: '#/$defs/step' };
  return out as T;
}
