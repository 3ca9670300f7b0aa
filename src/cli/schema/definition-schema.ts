/** Builds the JSON Schema of definition files for editors: from the forms of the language, the operations and the names of a project. */

import {
  agentSchema,
  agentStepSchema,
  concurrencySchema,
  ensembleSchema,
  inputFieldSchema,
  rateSchema,
} from '../../engine/definition/forms/forms.ts';
import {
  emailNotificationSchema,
  scheduleTriggerSchema,
  webhookNotificationSchema,
  webhookTriggerSchema,
} from '../../engine/definition/forms/trigger-forms.ts';
import { NAME_PATTERN } from '../../engine/ensemble/name.ts';
import type { AnyOperation } from '../../engine/operation/operation.port.ts';
import { describeKeys } from './describe-keys.ts';
import { INPUT_SCHEMA } from './input-schema.ts';
import {
  addRules,
  chosenBy,
  formToJson,
  keepOne,
  type ObjectSchema,
  ref,
  type Schema,
  suggest,
} from './json-schema.ts';
import { configByOperation, configSchemas } from './operation-configs.ts';
import { stepSchemas } from './step-schemas.ts';

/** The names of a project that an editor offers. A name that is not among them is accepted: the file with the schema may be older. */
export interface ProjectNames {
  readonly agents: readonly string[];
  readonly scripts: readonly string[];
  readonly ensembles: readonly string[];
}

const NO_NAMES: ProjectNames = { agents: [], scripts: [], ensembles: [] };

/**
 * The JSON Schema (draft-07) of a definition file, and under `definitions/agent` that of a file with a shared agent. It refers to no other
 * document. It doesn't check what only the compiler can check, such as expressions and names.
 *
 * @param operations - what `operation` may name
 */
export function definitionSchema(
  operations: ReadonlyMap<string, AnyOperation>,
  names: ProjectNames = NO_NAMES,
): Record<string, unknown> {
  const top = formToJson(ensembleSchema());
  const agents = { type: 'array', items: ref('agent') };
  const oneOrMany = (rule: ObjectSchema) => ({ anyOf: [rule, { type: 'array', items: rule }] });
  // Some editors ignore what is next to `$ref`.
  const inputs = { type: 'object', allOf: [ref('inputs')] };
  Object.assign(top.properties, {
    inputs,
    input: inputs,
    agents,
    operations: agents,
    members: agents,
    trigger: { type: 'array', items: ref('trigger') },
    notifications: { type: 'array', items: ref('notification') },
    concurrency: oneOrMany(formToJson(concurrencySchema())),
    rate: oneOrMany(formToJson(rateSchema())),
  });
  const configs = configSchemas(operations, names.scripts);
  const agentForm = (form: ObjectSchema, places: readonly string[]) =>
    agentSchemaOf(form, places, [...operations.keys()], names);
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...describeKeys(top, ['ensemble']),
    ...keepOne(['agents', 'operations', 'members'], ['inputs', 'input'], ['outputs', 'output']),
    definitions: {
      ...stepSchemas(agentForm(formToJson(agentStepSchema()), ['agentStep', 'agent', 'step']), names),
      agent: agentForm(formToJson(agentSchema()), ['agent']),
      configByOperation: configByOperation(Object.keys(configs)),
      ...Object.fromEntries(Object.entries(configs).map(([name, schema]) => [`config-${name}`, schema])),
      trigger: triggerSchema(),
      notification: chosenBy('type', [
        describeKeys(formToJson(webhookNotificationSchema()), ['notification']),
        describeKeys(formToJson(emailNotificationSchema()), ['notification']),
      ]),
      inputs: inputsSchema(),
      inputField: describeKeys(formToJson(inputFieldSchema()), ['inputField']),
      inputSchema: INPUT_SCHEMA,
    },
  };
}

function agentSchemaOf(
  form: ObjectSchema,
  places: readonly string[],
  operations: readonly string[],
  names: ProjectNames,
): ObjectSchema {
  const { properties } = form;
  const { items } = properties.routes as { items: ObjectSchema };
  for (const key of ['member', 'agent']) items.properties[key] = suggest(names.agents, items.properties[key] as Schema);
  Object.assign(items, keepOne(['condition', 'when'], ['member', 'agent']));
  properties.operation = suggest(operations, properties.operation as Schema);
  if (properties.agent) properties.agent = suggest(names.agents, properties.agent);
  const spellings = [['condition', 'when'], ['operation', 'type'], ...(properties.agent ? [['agent', 'member']] : [])];
  return { ...addRules(describeKeys(form, places), ref('configByOperation')), ...keepOne(...spellings) };
}

function triggerSchema(): Schema {
  const webhook = describeKeys(formToJson(webhookTriggerSchema()), ['webhookTrigger']);
  return chosenBy('type', [
    addRules(webhook, {
      if: { properties: { public: { const: true } }, required: ['public'] },
      then: { properties: { auth: false }, errorMessage: '`auth` and `public: true` exclude each other' },
      else: { required: ['auth'], errorMessage: 'a webhook needs `auth`, or `public: true`' },
    }),
    describeKeys(formToJson(scheduleTriggerSchema()), ['scheduleTrigger']),
  ]);
}

// In a JSON Schema `type` is text. In a map of fields it would be a field.
function inputsSchema(): Schema {
  return {
    if: { type: 'object', properties: { type: { type: 'string' } }, required: ['type'] },
    then: { properties: { type: { const: 'object' } }, allOf: [ref('inputSchema')] },
    else: { propertyNames: { pattern: NAME_PATTERN.source }, additionalProperties: ref('inputField') },
  };
}
