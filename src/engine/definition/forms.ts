/** The forms of the language, one schema each: what the parser checks and what `ensemble schema` prints. */

import * as z from 'zod';
import { FLOW_FORMS } from './flow-forms.ts';
import { form, guard, hintsFor, jsonObject, listOf, milliseconds, name, nonEmpty, steps, text } from './form.ts';

const retry = form(
  '`retry`',
  '{ maxAttempts: 3 }',
  {
    maxAttempts: z.int().min(1).max(100).describe('All attempts, the first included.'),
    backoff: z.enum(['exponential', 'fixed', 'linear']).optional(),
    delay: z
      .int({ error: 'must be a whole number of milliseconds from 0 to 86400000 (a day)' })
      .min(0)
      .max(86_400_000)
      .optional()
      .describe('Milliseconds, for fixed and linear.'),
  },
  hintsFor(['attempts', 'max', 'limit', 'times', 'count', 'maxRetries', 'retries'], { means: 'maxAttempts' }),
);

const route = form('a route', '{ condition: ..., member: ... }', {
  condition: guard.optional(),
  when: guard.optional(),
  default: z.boolean().optional(),
  member: name.optional(),
  agent: name.optional(),
  prompt: nonEmpty.optional(),
});

/** The entries of a router. */
export const routesSchema = z.array(route, { error: 'must be a list of routes (`- condition: ...`)' }).min(1);

// Settings of the operations, which stand one level deeper.
const IN_CONFIG = hintsFor(
  [
    'script',
    'url',
    'method',
    'params',
    'query',
    'headers',
    'body',
    'auth',
    'expect',
    'prompt',
    'model',
    'provider',
  ].concat(['system', 'action', 'key', 'value', 'mcp', 'tool', 'to', 'from', 'subject', 'html', 'template']),
  { says: 'settings of the operation stand under `config`', means: 'config' },
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
export const agentSchema = form('an agent', '{ name: ..., operation: ... }', { name, ...behaviour }, IN_CONFIG);

export const inputFieldSchema = form(
  'an input field',
  '{ type: string }',
  {
    type: z.enum(['string', 'number', 'integer', 'boolean', 'object', 'array', 'any']).optional(),
    required: z.boolean().optional(),
    default: z.unknown().optional(),
    enum: z.array(z.unknown()).min(1).optional(),
    description: text.optional(),
  },
  hintsFor(['properties', 'items', 'format', 'minimum', 'maximum', 'minLength', 'maxLength', 'pattern'], {
    says: 'for a JSON Schema, give `inputs` itself `type: object` and `properties`',
  }),
);
export const inputFieldsSchema = z.record(name, inputFieldSchema);

export const agentStepSchema = form(
  'an agent step',
  '{ agent: ... }',
  {
    agent: name.optional(),
    member: name.optional().describe('The older form of `agent`.'),
    name: name.optional(),
    ...behaviour,
  },
  IN_CONFIG,
);
/** A step's verb key to its form. */
export const STEP_FORMS = { agent: agentStepSchema, member: agentStepSchema, ...FLOW_FORMS } as const;

const outputMap = z.record(z.string(), z.unknown(), { error: 'must be a map of output names to values' });

/** The top of a definition; the parts that have forms of their own are checked apart. */
export const ensembleSchema = form(
  'an ensemble',
  '{ name: ..., flow: [...] }',
  {
    name,
    description: text.optional(),
    trigger: listOf('triggers', 'type: webhook').optional(),
    flow: steps,
    agents: listOf('agents', 'name: ...').optional(),
    operations: listOf('agents', 'name: ...').optional().describe('Another name for `agents`.'),
    members: listOf('agents', 'name: ...').optional().describe('The older form of `agents`.'),
    inputs: jsonObject.optional(),
    input: jsonObject.optional().describe('Another name for `inputs`.'),
    outputs: outputMap.optional(),
    output: outputMap.optional().describe('Another name for `outputs`.'),
    notifications: listOf('notifications', 'type: webhook').optional(),
    state: form('`state`', '{ initial: { ... } }', { initial: jsonObject }).optional(),
    timeout: milliseconds.optional().describe('Milliseconds from the start, waits included.'),
    execution: form('`execution`', '{ durability: none }', {
      durability: z.enum(['step', 'none']).optional(),
    }).optional(),
  },
  {
    steps: { says: 'the steps of an ensemble stand under `flow`', means: 'flow' },
    on: { says: 'webhooks stand under `trigger`', means: 'trigger' },
    ...hintsFor(['schedule', 'cron'], { says: 'schedules stand under `trigger`', means: 'trigger' }),
    env: { says: 'variables are handed to createOrchestrator in `env` and `secrets`' },
    ...hintsFor(['retry', 'condition', 'config', 'operation'], { says: 'it belongs to an agent or a step' }),
  },
);

/** Whether `inputs` is a JSON Schema rather than a map of fields: then `type` is text, never a field's object. */
export function isJsonSchema(inputs: unknown): boolean {
  return typeof inputs === 'object' && inputs !== null && typeof (inputs as { type?: unknown }).type === 'string';
}
