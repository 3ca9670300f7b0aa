/** The schemas of steps: the verb of a step decides which form it must have. */

import { DURATION, MAX_SLEEP_MS } from '../../engine/base/time/duration.ts';
import {
  CHILD_TIMEOUT_RULE,
  FLOW_FORMS,
  INSTANT_RULE,
  SIGNAL_RULE,
  TIMEOUT_RULE,
} from '../../engine/definition/forms/flow-forms.ts';
import { MAX_FOREACH_ITEMS } from '../../engine/ensemble/ensemble.ts';
import { NAME_PATTERN } from '../../engine/ensemble/name.ts';
import { describeKeys, withDescription } from './describe-keys.ts';
import {
  addRules,
  anyOf,
  formToJson,
  keepOne,
  mapValues,
  type ObjectSchema,
  ref,
  type Schema,
  suggest,
} from './json-schema.ts';
import { KEY_DESCRIPTIONS } from './key-descriptions.ts';

// Rules that the compiler checks, and that the forms do not have.
const NOT_EMPTY: Readonly<Record<string, Schema>> = {
  steps: { minItems: 1 },
  parallel: { minItems: 1 },
  try: { minItems: 1 },
  cases: { minProperties: 1 },
};
const INSTANT = anyOf(
  {
    type: 'string',
    pattern: '\\$\\{|^\\s*\\d{4}-\\d{2}-\\d{2}(?:[T ]\\d{2}:\\d{2}.*)?\\s*$',
    errorMessage: INSTANT_RULE,
  },
  { type: 'number' },
);
const DURATIONS: readonly Schema[] = [
  { type: 'string', pattern: `\\$\\{|${DURATION.source}`, errorMessage: TIMEOUT_RULE },
  { type: 'number', minimum: 0, maximum: MAX_SLEEP_MS },
];
const VALUES: Readonly<Record<string, Schema>> = {
  foreach: anyOf(
    { type: 'string', pattern: '\\$\\{', errorMessage: 'must be one `${...}` that gives a list, or a list' },
    { type: 'array', maxItems: MAX_FOREACH_ITEMS },
  ),
  sleep: anyOf(...DURATIONS, {
    type: 'object',
    properties: { until: INSTANT },
    required: ['until'],
    additionalProperties: false,
  }),
  until: INSTANT,
  wait: { type: 'string', pattern: NAME_PATTERN.source, errorMessage: SIGNAL_RULE },
  timeout: anyOf(...DURATIONS),
};
/** The timeout of an `ensemble` step is above 0. */
const CHILD_TIMEOUT = anyOf(
  { type: 'string', pattern: `\\$\\{|(?=.*[1-9])${DURATION.source}`, errorMessage: CHILD_TIMEOUT_RULE },
  { type: 'number', exclusiveMinimum: 0, maximum: MAX_SLEEP_MS },
);

/** The names that an editor offers in a step. */
export interface StepNames {
  readonly agents: readonly string[];
  readonly ensembles: readonly string[];
}

/** `step`, and the schemas to which it leads. */
export function stepSchemas(agentStep: ObjectSchema, names: StepNames): Record<string, Schema> {
  const forms: Record<string, ObjectSchema> = { agent: agentStep };
  for (const [verb, { schema }] of Object.entries(FLOW_FORMS))
    forms[verb] = flowStep(verb, formToJson(schema()), names);
  const named = Object.entries(forms).map(([verb, form]) => [`${verb}Step`, form]);
  return { step: stepByVerb(Object.keys(forms)), stepWithoutVerb: withoutVerb(forms), ...Object.fromEntries(named) };
}

// One branch for each verb, the first that the step has: a wrong key is reported once, by the form that the author began to write.
function stepByVerb(verbs: readonly string[]): Schema {
  const others = verbs.filter((verb) => verb !== 'agent').map((verb) => [verb, verb] as const);
  const branches = [...others, ['agent', 'agent'], ['member', 'agent']] as const;
  const byVerb = branches.reduceRight<Schema>(
    (otherwise, [key, verb]) => ({
      if: { type: 'object', required: [key] },
      then: ref(`${verb}Step`),
      else: otherwise,
    }),
    ref('stepWithoutVerb'),
  );
  return { type: 'object', ...byVerb };
}

function withoutVerb(forms: Readonly<Record<string, ObjectSchema>>): Schema {
  const verbs = Object.keys(forms);
  const offered = Object.fromEntries(
    verbs.map((verb) => [
      verb,
      { ...forms[verb]?.properties[verb], ...withDescription(KEY_DESCRIPTIONS.verbs?.[verb] ?? '') },
    ]),
  );
  const known = Object.values(forms).flatMap(({ properties }) => Object.keys(properties));
  const others = Object.fromEntries(known.map((key) => [key, { doNotSuggest: true }]));
  const list = verbs.map((verb) => `\`${verb}\``).join(', ');
  return {
    properties: { ...others, ...offered },
    additionalProperties: false,
    // A key that no step has is the mistake. Without one, the verb is missing: no map without a verb is right, whatever it holds.
    if: { type: 'object', propertyNames: { enum: Object.keys({ ...others, ...offered }) } },
    then: { type: 'string', errorMessage: `a step needs one of ${list} to say what it does` },
  };
}

function flowStep(verb: string, form: ObjectSchema, names: StepNames): ObjectSchema {
  const has = (key: string) => Object.hasOwn(form.properties, key);
  const properties = mapValues(form.properties, (value, key) => VALUES[key] ?? { ...value, ...NOT_EMPTY[key] });
  if (verb === 'ensemble') {
    properties.ensemble = suggest(names.ensembles, properties.ensemble as Schema);
    properties.timeout = CHILD_TIMEOUT;
  }
  const step = describeKeys({ ...form, properties }, [`${verb}Step`, 'step']);
  if (has('when')) Object.assign(step, keepOne(['condition', 'when']));
  if (has('onTimeout')) Object.assign(step.dependencies as Schema, { onTimeout: ['timeout'] });
  if (verb !== 'try') return step;
  const handlesNothing = { required: ['catch'], errorMessage: 'a `try` step needs `catch` or `finally`' };
  return addRules(step, { if: { not: { required: ['finally'] } }, then: handlesNothing });
}
