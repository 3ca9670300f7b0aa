/** YAML or object to `EnsembleDefinition`, or every problem at once: the first stage of the run line. */

import { OrchestratorError } from '../errors.ts';
import { copyJson, JsonError, type Json, type JsonObject } from '../json.ts';
import type { AgentDefinition, EnsembleDefinition, NotificationDefinition, StepDefinition, TriggerDefinition } from '../model/ensemble.ts';
import { NAME_PATTERN } from '../model/name.ts';
import { checkShape, oneOf, type Report } from './check-shape.ts';
import { type DefinitionIssue, formatIssue } from './definition-issue.ts';
import { type Path, type Problem, toIssues } from './problem.ts';
import { readBehaviour, readSpelling, type Spellings, sourceOf, withoutUndefined } from './read-older-form.ts';
import { readSource } from './read-source.ts';
import * as schema from './schema.ts';
import type { SourceMap } from './source-map.ts';
import { suggestName } from '../suggest-name.ts';

/** Steps that one definition may hold, at all levels together. */
export const MAX_STEPS = 1000;

/** What the parser gives to the compiler: the definition in its current form, and how to speak of its places. */
export interface ParsedEnsemble {
  readonly definition: EnsembleDefinition;
  /** Parts that were wrong are reported here and left out of `definition`. */
  readonly problems: readonly Problem[];
  readonly map: SourceMap | undefined;
  /** The author's path of a path in `definition`. */
  sourceOf(path: Path): Path;
  /** Names of agents whose definitions were wrong: a step that names one is not at fault. */
  readonly brokenNames: ReadonlySet<string>;
}

/**
 * Reads a definition into the current form, and throws when anything is wrong with its form.
 *
 * @param source - YAML (or JSON) text, or an object of the same shape
 * @throws INVALID_DEFINITION with every problem in `details.issues` ({@link DefinitionIssue})
 *
 * @example
 * ```ts
 * import { parseEnsemble } from 'ensemble-orchestrator';
 *
 * const definition = parseEnsemble('name: hello\nflow: []\n');
 * console.log(definition.name); // hello
 * ```
 */
export function parseEnsemble(source: string | object): EnsembleDefinition {
  const parsed = parseDefinition(source);
  if (parsed.problems.length > 0) throw invalidDefinition(toIssues(parsed.problems, parsed.map), parsed.definition.name);
  return parsed.definition;
}

/** The error of a definition that can't be loaded. @param name - of the ensemble, if it could be read */
export function invalidDefinition(issues: readonly DefinitionIssue[], name?: string): OrchestratorError {
  const what = name ? `ensemble \`${name}\`` : 'the definition';
  const count = issues.length === 1 ? '1 problem' : `${issues.length} problems`;
  const shown = issues.slice(0, 20).map(formatIssue).join('\n\n');
  const rest = issues.length > 20 ? `\n\n... and ${issues.length - 20} more in details.issues` : '';
  return new OrchestratorError('INVALID_DEFINITION', `${what} has ${count}:\n\n${shown}${rest}`, { details: { issues } });
}

/**
 * Parses without throwing for problems of form.
 *
 * @throws INVALID_DEFINITION when the text is no YAML or the object no plain data
 */
export function parseDefinition(source: string | object): ParsedEnsemble {
  const { value, map } = readInput(source);
  const problems: Problem[] = [];
  const report: Report = (problem) => problems.push(problem);
  const spellings: Spellings = new Map();
  const brokenNames = new Set<string>();
  const fields = checkTop(value, report);
  const at = { path: [], source: [] };
  readSpelling(fields, 'agents', ['operations', 'members'], at, spellings, report);
  readSpelling(fields, 'inputs', ['input'], at, spellings, report);
  readSpelling(fields, 'outputs', ['output'], at, spellings, report);

  const place = (...path: (string | number)[]) => ({ path, source: sourceOf(path, spellings) });
  const reader: StepReader = { spellings, report, steps: 0 };
  const agents = list(fields.agents).flatMap((entry, i) => {
    const agent = readAgent(entry, place('agents', i), reader);
    const name = (entry as { name?: unknown } | null)?.name;
    if (!agent && typeof name === 'string') brokenNames.add(name);
    return agent ? [agent] : [];
  });
  const triggers = list(fields.trigger).flatMap((entry, i) => readTrigger(entry, place('trigger', i).source, report));
  const notifications = list(fields.notifications).flatMap((entry, i) => readNotification(entry, place('notifications', i).source, report));
  const definition = withoutUndefined({
    name: fields.name as string,
    description: fields.description,
    trigger: fields.trigger === undefined ? undefined : triggers,
    flow: readSteps(fields.flow, place('flow'), reader),
    agents: fields.agents === undefined ? undefined : agents,
    inputs: readInputs(fields.inputs, place('inputs').source, report),
    outputs: fields.outputs,
    notifications: fields.notifications === undefined ? undefined : notifications,
    state: fields.state,
    timeout: fields.timeout,
    execution: fields.execution,
  }) as unknown as EnsembleDefinition;
  if (reader.steps > MAX_STEPS) report({ path: ['flow'], message: `has ${reader.steps} steps; at most ${MAX_STEPS} are allowed` });
  return { definition, problems, map, brokenNames, sourceOf: (path) => sourceOf(path, spellings) };
}

function readInput(source: string | object): { readonly value: Json; readonly map: SourceMap | undefined } {
  if (typeof source === 'string') {
    const read = readSource(source);
    if (!read.ok) throw invalidDefinition(read.issues);
    return { value: read.value, map: read.map };
  }
  try {
    return { value: copyJson(source), map: undefined };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw invalidDefinition([{ path: error.problem.path, message: error.problem.message }]);
  }
}

function checkTop(value: Json, report: Report): Record<string, unknown> {
  const required = { name: '', flow: [] };
  const checked = checkShape(schema.ensembleSchema, value, [], report);
  if (checked) return { ...checked };
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return required;
  // Its name or flow is missing or wrong, and reported: the rest is checked with stand-ins.
  const { name, flow, ...rest } = value as JsonObject;
  const standIn = { ...rest, name: typeof name === 'string' && NAME_PATTERN.test(name) ? name : 'unnamed', flow: Array.isArray(flow) ? flow : [] };
  return { ...(checkShape(schema.ensembleSchema, standIn, [], () => {}) ?? required) };
}

interface Place {
  readonly path: Path;
  readonly source: Path;
}

interface StepReader {
  readonly spellings: Spellings;
  readonly report: Report;
  steps: number;
}

/** Reads one agent definition, on its own or in `agents`; undefined when it can't be used. */
export function readAgent(entry: unknown, place: Place, reader: Pick<StepReader, 'spellings' | 'report'>): AgentDefinition | undefined {
  const fields = checkShape(schema.agentSchema, entry, place.source, reader.report) as Record<string, unknown> | undefined;
  if (!fields) return undefined;
  const agent = { ...fields };
  readBehaviour(agent, place, reader.spellings, reader.report);
  return agent as unknown as AgentDefinition;
}

function readSteps(entries: unknown, place: Place, reader: StepReader): StepDefinition[] {
  // A step that can't be read keeps its place, as a step that does nothing, so that the paths of the others hold.
  return list(entries).map((entry, i) => {
    reader.steps += 1;
    const at = { path: [...place.path, i], source: [...place.source, i] };
    return readStep(entry, at, reader) ?? { if: false, then: [] };
  });
}

function readStep(entry: unknown, place: Place, reader: StepReader): StepDefinition | undefined {
  const verb = verbOf(entry, place.source, reader.report);
  if (!verb) return undefined;
  const checked = checkShape(schema.STEP_FORMS[verb], entry, place.source, reader.report) as Record<string, unknown> | undefined;
  if (!checked) return undefined;
  const fields = { ...checked };
  const under = (key: string): Place => ({ path: [...place.path, key], source: [...place.source, key] });
  switch (verb) {
    case 'if':
      fields.then = readSteps(fields.then, under('then'), reader);
      if (fields.else) fields.else = readSteps(fields.else, under('else'), reader);
      break;
    case 'foreach':
      readSpelling(fields, 'condition', ['when'], place, reader.spellings, reader.report);
      fields.steps = readSteps(fields.steps, under('steps'), reader);
      break;
    default:
      readSpelling(fields, 'agent', ['member'], place, reader.spellings, reader.report);
      readBehaviour(fields, place, reader.spellings, reader.report);
  }
  return fields as unknown as StepDefinition;
}

type Verb = keyof typeof schema.STEP_FORMS;
const VERBS = Object.keys(schema.STEP_FORMS) as Verb[];

function verbOf(entry: unknown, path: Path, report: Report): Verb | undefined {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    report({ path, message: 'a step must be a map such as `agent: name`' });
    return undefined;
  }
  const keys = Object.keys(entry);
  const later = keys.find((key) => schema.LATER_VERBS.includes(key));
  if (later !== undefined) {
    report({ path: [...path, later], key: true, message: `\`${later}\` steps are not supported by this version` });
    return undefined;
  }
  const verbs = VERBS.filter((verb) => Object.hasOwn(entry, verb));
  if (verbs.length === 1) return verbs[0];
  if (verbs.length > 1 && !(verbs.length === 2 && verbs.includes('agent') && verbs.includes('member'))) {
    report({ path, message: `a step has exactly one of ${oneOf(VERBS)}, and this one has ${verbs.map((verb) => `\`${verb}\``).join(' and ')}` });
    return undefined;
  }
  if (verbs.length > 1) return 'agent';
  const near = keys.map((key) => [key, suggestName(key, VERBS)] as const).find(([, verb]) => verb !== undefined);
  if (near) report({ path: [...path, near[0]], key: true, message: `\`${near[0]}\` is not a key of a step`, suggestion: near[1] });
  else report({ path, message: `a step needs one of ${oneOf(VERBS)}` });
  return undefined;
}

function readInputs(inputs: unknown, path: Path, report: Report): unknown {
  if (inputs === undefined || schema.isJsonSchema(inputs)) return inputs;
  return checkShape(schema.inputFieldsSchema, inputs, path, report);
}

function readTrigger(entry: unknown, path: Path, report: Report): TriggerDefinition[] {
  const type = (entry as { type?: unknown } | null)?.type;
  if (type === 'schedule') {
    report({ path: [...path, 'type'], message: '`schedule` triggers are not supported by this version' });
    return [];
  }
  const trigger = checkShape(schema.webhookTriggerSchema, entry, path, report);
  return trigger ? [trigger as unknown as TriggerDefinition] : [];
}

function readNotification(entry: unknown, path: Path, report: Report): NotificationDefinition[] {
  const type = (entry as { type?: unknown } | null)?.type;
  if (type !== 'webhook' && type !== 'email') {
    const suggestion = typeof type === 'string' ? suggestName(type, ['webhook', 'email']) : undefined;
    report({ path: [...path, 'type'], message: 'must be `webhook` or `email`', suggestion });
    return [];
  }
  const form = type === 'webhook' ? schema.webhookNotificationSchema : schema.emailNotificationSchema;
  const notification = checkShape<typeof form>(form, entry, path, report);
  return notification ? [notification as unknown as NotificationDefinition] : [];
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
