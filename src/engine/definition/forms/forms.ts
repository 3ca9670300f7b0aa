/** The forms of the language, one schema each. The parser checks them and `ensemble schema` prints them. */

import * as z from 'zod/mini';
import { once } from '../../base/once.ts';
import { durationSchema } from '../../base/time/duration-schema.ts';
import { MAX_BATCH, MAX_HELD_AT_ONCE, MAX_PRIORITY, MAX_QUEUE_LIMIT, OVER } from '../../execution/limits/flow-limit.ts';
import { FLOW_FORMS, type StepLanguage } from './flow-forms.ts';
import {
  duration,
  flag,
  form,
  guard,
  hintsFor,
  jsonObject,
  listOf,
  name,
  nonEmpty,
  nonEmptyList,
  steps,
  text,
  wholeNumber,
} from './form.ts';

const DAY_MS = 86_400_000;
const DAY = 'at most a day';

const retry = form(
  '`retry`',
  '{ maxAttempts: 3 }',
  () => ({
    maxAttempts: wholeNumber(1, 100),
    backoff: z.optional(z.enum(['exponential', 'fixed', 'linear'])),
    delay: z.optional(durationSchema(0, DAY_MS, DAY)),
    maxDelay: z.optional(durationSchema(1, DAY_MS, `above 0 and ${DAY}`)),
    factor: z.optional(z.number().check(z.gte(1), z.lte(100))),
    jitter: z.optional(z.number('must be a number from 0 to 1').check(z.gte(0), z.lte(1))),
  }),
  () => hintsFor(['attempts', 'max', 'limit', 'times', 'count', 'maxRetries', 'retries'], { means: 'maxAttempts' }),
);

const route = form('a route', '{ condition: ..., member: ... }', () => ({
  condition: z.optional(guard()),
  when: z.optional(guard()),
  default: flag(),
  member: z.optional(name()),
  agent: z.optional(name()),
  prompt: z.optional(nonEmpty()),
}));

/** The entries of a router. */
export const routesSchema = once(() => nonEmptyList(route(), 'must be a list of routes (`- condition: ...`)'));

// Settings of the operations, which belong one level deeper.
const inConfig = () =>
  hintsFor(
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
    { says: 'put the settings of the operation under `config`', means: 'config' },
  );

const CONFIG = { error: 'must be a map of keys' };
/** A map, or a reference to a stored config. */
const config = once(() => z.union([jsonObject(), z.string().check(z.regex(/^config:\/\//, CONFIG))], CONFIG));

const behaviour = once(() => ({
  description: z.optional(text()),
  operation: z.optional(nonEmpty()),
  type: z.optional(z.enum(['Function', 'API', 'Think', 'Route', 'Data', 'Email'])),
  config: z.optional(config()),
  fromComponent: z.optional(z.array(nonEmpty())),
  input: z.optional(z.unknown()),
  output: z.optional(jsonObject()),
  condition: z.optional(guard()),
  when: z.optional(guard()),
  retry: z.optional(retry()),
  concurrency: z.optional(
    form('`concurrency` of an agent', '{ shared: bank }', () => ({
      limit: z.optional(wholeNumber(1, MAX_HELD_AT_ONCE)),
      shared: z.optional(name()),
      key: z.optional(nonEmpty()),
    }))(),
  ),
  timeout: z.optional(duration()),
  continueOnError: flag(),
  setState: z.optional(jsonObject()),
  routes: z.optional(routesSchema()),
}));

/** One entry of `agents`, or a shared agent. */
export const agentSchema = form(
  'an agent',
  '{ name: ..., operation: ... }',
  () => ({ name: name(), ...behaviour() }),
  inConfig,
);

export const inputFieldSchema = form(
  'an input field',
  '{ type: string }',
  () => ({
    type: z.optional(z.enum(['string', 'number', 'integer', 'boolean', 'object', 'array', 'any'])),
    required: flag(),
    default: z.optional(z.unknown()),
    enum: z.optional(nonEmptyList(z.unknown())),
    description: z.optional(text()),
  }),
  () =>
    hintsFor(['properties', 'items', 'format', 'minimum', 'maximum', 'minLength', 'maxLength', 'pattern'], {
      says: 'for a JSON Schema, give `inputs` itself `type: object` and `properties`',
    }),
);
export const inputFieldsSchema = once(() => z.record(name(), inputFieldSchema()));

export const agentStepSchema = form(
  'an agent step',
  '{ agent: ... }',
  () => ({
    agent: z.optional(name()),
    member: z.optional(name()),
    name: z.optional(name()),
    ...behaviour(),
  }),
  inConfig,
);
/** The form of each verb. */
export const STEP_FORMS = {
  agent: { schema: agentStepSchema },
  member: { schema: agentStepSchema },
  ...FLOW_FORMS,
} satisfies Readonly<Record<string, StepLanguage>>;

const outputMap = once(() => z.record(z.string(), z.unknown(), { error: 'must be a map of output names to values' }));

/** The top level of a definition. The parts that have their own forms are checked separately. */
export const ensembleSchema = form(
  'an ensemble',
  '{ name: ..., flow: [...] }',
  () => ({
    name: name(),
    description: z.optional(text()),
    trigger: z.optional(listOf('triggers', 'type: webhook')),
    flow: steps(),
    agents: z.optional(listOf('agents', 'name: ...')),
    operations: z.optional(listOf('agents', 'name: ...')),
    members: z.optional(listOf('agents', 'name: ...')),
    inputs: z.optional(jsonObject()),
    input: z.optional(jsonObject()),
    outputs: z.optional(outputMap()),
    output: z.optional(outputMap()),
    notifications: z.optional(listOf('notifications', 'type: webhook')),
    state: z.optional(form('`state`', '{ initial: { ... } }', () => ({ initial: jsonObject() }))()),
    timeout: z.optional(duration()),
    concurrency: z.optional(z.unknown()),
    rate: z.optional(z.unknown()),
    startWithin: z.optional(duration()),
    priority: z.optional(priority()),
    debounce: z.optional(
      form('`debounce`', '{ wait: 10s, key: "${input.customer}" }', () => ({
        wait: duration(),
        max: z.optional(duration()),
        key: z.optional(nonEmpty()),
        use: z.optional(z.enum(['last', 'first'])),
      }))(),
    ),
    batch: z.optional(
      form('`batch`', '{ size: 100, wait: 10s }', () => ({
        size: wholeNumber(1, MAX_BATCH),
        wait: duration(),
        key: z.optional(nonEmpty()),
      }))(),
    ),
    fair: z.optional(fair()),
    perProcess: z.optional(wholeNumber(1, MAX_HELD_AT_ONCE)),
    execution: z.optional(
      form('`execution`', '{ durability: none }', () => ({
        durability: z.optional(z.enum(['step', 'none'])),
      }))(),
    ),
  }),
  () => ({
    steps: { says: 'put the steps of an ensemble under `flow`', means: 'flow' },
    on: { says: 'put webhooks under `trigger`', means: 'trigger' },
    ...hintsFor(['schedule', 'cron'], { says: 'put schedules under `trigger`', means: 'trigger' }),
    env: { says: 'variables are in `.env` of a project, or in `env` and `secrets` of createOrchestrator' },
    ...hintsFor(['retry', 'condition', 'config', 'operation'], { says: 'it belongs to an agent or a step' }),
  }),
);

const priority = once(() =>
  z.union([wholeNumber(0, MAX_PRIORITY), nonEmpty()], {
    error: `must be a whole number from 0 to ${MAX_PRIORITY}, or an expression over \`input\``,
  }),
);
const fair = once(() =>
  z.union([nonEmpty(), z.array(nonEmpty()).check(z.minLength(1), z.maxLength(2))], {
    error: 'must be an expression such as `${input.tenant}`, or a list of one or two, such as a tenant and its user',
  }),
);
const limit = once(() =>
  z.union([wholeNumber(1, MAX_HELD_AT_ONCE), nonEmpty()], {
    error: `must be a whole number from 1 to ${MAX_HELD_AT_ONCE}, or an expression over \`input\``,
  }),
);
const queueRule = () => ({
  over: z.optional(z.enum(OVER)),
  queueLimit: z.optional(wholeNumber(0, MAX_QUEUE_LIMIT)),
  queueTtl: z.optional(duration()),
});
/** One rule of `concurrency`. */
export const concurrencySchema = form(
  'a rule of `concurrency`',
  '{ limit: 2, key: "${input.customer}" }',
  () => ({
    limit: z.optional(limit()),
    shared: z.optional(name()),
    key: z.optional(nonEmpty()),
    ...queueRule(),
    hold: z.optional(z.boolean()),
  }),
  () => hintsFor(['max', 'slots', 'concurrency', 'count'], { means: 'limit' }),
);
/** `rate`. */
export const rateSchema = form(
  '`rate`',
  '{ limit: 10, period: 1m, key: "${input.customer}" }',
  () => ({
    limit: limit(),
    period: duration(),
    burst: z.optional(wholeNumber(1, MAX_HELD_AT_ONCE)),
    learn: z.optional(z.boolean()),
    key: z.optional(nonEmpty()),
    ...queueRule(),
  }),
  () => ({
    ...hintsFor(['max', 'count'], { means: 'limit' }),
    ...hintsFor(['per', 'window', 'interval'], { means: 'period' }),
  }),
);

/** Whether `inputs` is a JSON Schema, not a map of fields. In a JSON Schema `type` is text, in a map of fields it is a map. */
export function isJsonSchema(inputs: unknown): boolean {
  return typeof inputs === 'object' && inputs !== null && typeof (inputs as { type?: unknown }).type === 'string';
}
