/** Infers the types of a whole definition, step by step in the order of the flow, and reports what can't be right. */

import { isMap } from '../../base/json/is-map.ts';
import type { Json, JsonObject } from '../../base/json/json.ts';
import type { EnsembleDefinition, SleepStep, StepDefinition } from '../../ensemble/ensemble.ts';
import { waitsIn } from '../../ensemble/inner-lists.ts';
import { WEBHOOK_METHODS } from '../../webhook/webhook.ts';
import { isJsonSchema } from '../forms/forms.ts';
import type { Path } from '../source/problem.ts';
import { fromInputs } from './from-json-schema.ts';
import { type LevelTypes, Place } from './place.ts';
import {
  ANY,
  type Field,
  listOf,
  NUMBER,
  nullBecause,
  oneOfValues,
  recordOf,
  required,
  STRING,
  type Type,
  UNKNOWN_NULL,
  union,
} from './type.ts';
import { neededFields } from './walk/check-input.ts';
import { valueType } from './walk/value-type.ts';
import { walkAgent } from './walk/walk-agent.ts';
import { walkIf, walkSwitch, walkTry } from './walk/walk-branches.ts';
import { walkForeach, walkParallel, walkWhile } from './walk/walk-loops.ts';
import { walkChild, walkSleep, walkWait } from './walk/walk-waits.ts';
import {
  type At,
  type EnsembleTypes,
  MAX_VISITS,
  type TypeCheck,
  type TypeHost,
  type Walker,
  walkList,
} from './walk/walker.ts';

export function checkTypes(check: TypeCheck): EnsembleTypes {
  const { definition, schemas, inputSchema } = check;
  const inputs = inputSchema ? schemas.of(inputSchema, 'output') : fromInputs(definition.inputs, schemas);
  const walker: Walker = {
    ...check,
    outermost: {
      input: definition.batch ? listOf(inputs) : inputs,
      env: schemas.ofEnv(check.host.env),
      headers: HEADERS,
      trigger: TRIGGER,
      state: stateType(check),
      execution: EXECUTION,
    },
    handled: handledSteps(definition, check.host),
    walkStep,
    returnOf: (name) => returnOf(name, check),
    payloadOf: (signal) => {
      const { fields } = waitsIn(definition.flow).find(({ wait, fields: form }) => wait === signal && form) ?? {};
      return fields && schemas.of(fields);
    },
    answers: [],
    levels: 0,
    fuel: MAX_VISITS,
    quiet: false,
  };
  const level: LevelTypes = { id: 0, parent: undefined, item: undefined, results: new Map(), caught: false };
  for (const name of [...check.agents.keys(), ...check.host.sharedAgents.keys()])
    level.results.set(name, { output: ANY, keepsOutput: false, why: `\`${name}\` never runs` });
  const place = new Place();
  // They read the input of one start.
  const before: Walker = { ...walker, outermost: { ...walker.outermost, input: inputs } };
  for (const [path, value] of valuesBefore(definition)) valueType(value, { level, place, path }, before);
  walkList(definition.flow, ['flow'], level, place, walker);
  const outputs = Object.entries(definition.outputs ?? {}).map(([name, value]): [string, Field] => [
    name,
    required(valueType(value as Json, { level, place, path: ['outputs', name] }, walker)),
  ]);
  const { answers } = walker;
  const given = inputSchema ? schemas.of(inputSchema, 'input') : inputs;
  const needed = inputSchema ? neededFields(given) : neededInputs(definition.inputs);
  return { inputs: given, needed, outputs: recordOf(outputs), answers };
}

/** What is evaluated when an execution is accepted, with its paths. */
function valuesBefore({ priority, fair, debounce, batch, ...definition }: EnsembleDefinition): [Path, Json][] {
  const rules = (['concurrency', 'rate'] as const).flatMap((list) =>
    (definition[list] ?? []).map((rule, i): [Path, object] => [[list, i], rule]),
  );
  const all: [Path, object | undefined][] = [...rules, [['debounce'], debounce], [['batch'], batch]];
  const values = all.flatMap(([path, rule = {}]) =>
    Object.entries(rule).map(([key, value]): [Path, Json] => [[...path, key], value as Json]),
  );
  const more = Object.entries({ priority, fair }).filter(([, value]) => value !== undefined);
  return [...more.map(([key, value]): [Path, Json] => [[key], value as Json]), ...values];
}

function returnOf(name: string, { host, schemas }: TypeCheck): Type {
  const { functions = {} } = host;
  const schema = Object.hasOwn(functions, name) ? functions[name]?.returns : undefined;
  return schema === undefined ? ANY : schemas.of(schema);
}

const HEADERS = recordOf([], union([STRING, nullBecause('a request may lack the header')]));
const QUERY = recordOf([], union([STRING, listOf(STRING), nullBecause('a request may lack the parameter')]));
const maybe = (type: Type) => required(union([type, UNKNOWN_NULL]));

// Which of them an execution has, its start says: any ensemble may be started by a call too.
const TRIGGER = recordOf(
  [
    ['type', required(oneOfValues('string', ['call', 'webhook', 'schedule', 'http', 'ensemble']))],
    ['method', maybe(oneOfValues('string', WEBHOOK_METHODS))],
    ['path', maybe(STRING)],
    ['query', maybe(QUERY)],
    ['headers', maybe(HEADERS)],
    ['body', required(ANY)],
    ['rawBody', maybe(STRING)],
    ['cron', maybe(STRING)],
    ['timezone', maybe(STRING)],
    ['scheduledAt', maybe(NUMBER)],
  ],
  'declared',
);

const EXECUTION = recordOf([
  ['id', required(STRING)],
  ['ensemble', required(STRING)],
  ['version', required(STRING)],
  ['startedAt', required(NUMBER)],
]);

// An older version of the definition may have written any values. Only the names of the keys are checked.
function stateType({ definition, agents }: TypeCheck): Type {
  if (!definition.state) return ANY;
  const keys = new Set(Object.keys(definition.state.initial));
  const add = (value: unknown) => {
    if (isMap(value as Json)) for (const key of Object.keys(value as JsonObject)) keys.add(key);
  };
  for (const { behaviour } of agents.values()) add(behaviour.setState);
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit);
    else if (typeof value === 'object' && value !== null)
      for (const [key, inner] of Object.entries(value)) key === 'setState' ? add(inner) : visit(inner);
  };
  visit(definition.flow);
  if (keys.size === 0) return ANY;
  return recordOf(
    [...keys].map((key) => [key, { type: ANY, optional: true }]),
    'declared',
  );
}

const GUARDS = ['if', 'while', 'switch', 'condition', 'breakWhen'];

/** The steps whose failure a condition reads. What outputs read handles nothing. */
function handledSteps({ flow, agents = [] }: EnsembleDefinition, { sharedAgents }: TypeHost): ReadonlySet<string> {
  const handled = new Set<string>();
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit);
    else if (typeof value === 'object' && value !== null)
      for (const [key, inner] of Object.entries(value))
        if (typeof inner !== 'string') key === 'config' || key === 'input' || visit(inner);
        else if (GUARDS.includes(key)) for (const [, name] of inner.matchAll(FAILURE)) handled.add(name as string);
  };
  visit(flow);
  visit(agents);
  visit([...sharedAgents.values()]);
  return handled;
}

const FAILURE = /([A-Za-z][\w-]*)\s*(?:\.\s*|\[\s*['"])(?:failed|success)\b/g;

/** @returns the output of the step, as a `foreach` and a `parallel` collect it */
export function walkStep(step: StepDefinition, path: Path, level: LevelTypes, place: Place, walker: Walker): Type {
  const at: At = { level, place, path };
  if ('agent' in step) return walkAgent(step, at, walker);
  if ('if' in step) return walkIf(step, at, walker);
  if ('switch' in step) return walkSwitch(step, at, walker);
  if ('foreach' in step) return walkForeach(step, at, walker);
  if ('parallel' in step) return walkParallel(step, at, walker);
  if ('while' in step) return walkWhile(step, at, walker);
  if ('try' in step) return walkTry(step, at, walker);
  if ('wait' in step) return walkWait(step, at, walker);
  if ('ensemble' in step) return walkChild(step, at, walker);
  return walkSleep(step as SleepStep, at, walker);
}

/** The inputs that an execution is refused without. */
function neededInputs(inputs: EnsembleDefinition['inputs']): ReadonlySet<string> {
  if (inputs === undefined) return new Set();
  const { required: list, properties } = inputs as JsonObject;
  if (!isJsonSchema(inputs))
    return new Set(
      Object.entries(inputs).flatMap(([name, field]) => ((field as { required?: boolean }).required ? [name] : [])),
    );
  const hasDefault = (name: string) =>
    isMap(properties) && isMap(properties[name]) && properties[name].default !== undefined;
  return new Set(((Array.isArray(list) ? list : []) as string[]).filter((name) => !hasDefault(name)));
}
