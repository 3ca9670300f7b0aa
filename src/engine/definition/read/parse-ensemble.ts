/** Parses YAML or an object to an `EnsembleDefinition`, or reports all problems of its form at once. */

import { type DefinitionIssue, OrchestratorError } from '../../base/errors.ts';
import { copyJson, type Json, JsonError } from '../../base/json/json.ts';
import type { AgentDefinition, EnsembleDefinition } from '../../ensemble/ensemble.ts';
import { checkShape, type Report } from '../forms/check-shape.ts';
import { createDroppedParts, type DroppedParts } from '../forms/dropped-parts.ts';
import { concurrencySchema, ensembleSchema, rateSchema } from '../forms/forms.ts';
import { formatIssue } from '../source/definition-issue.ts';
import { type LocatedSource, type Path, type Problem, toIssues } from '../source/problem.ts';
import { MAX_SOURCE_BYTES, type PartialSource, readSource } from '../source/read-source.ts';
import { type Fields, readSpelling, sourceOf, withoutUndefined } from './read-older-form.ts';
import { readAgent, readAgents, readInputs, readNotifications, readRules, readTriggers } from './read-parts.ts';
import { countSteps, type PartReader, readSteps } from './read-steps.ts';

export { readAgent } from './read-parts.ts';

/** The maximum number of steps of one definition, at all levels together. */
export const MAX_STEPS = 1000;

/** What the compiler gets from the parser: the definition in its current form, and the way back to its places in the source. */
export interface ParsedEnsemble {
  readonly definition: EnsembleDefinition;
  /** The problems of the form. Wrong parts are left out of `definition`. */
  readonly problems: readonly Problem[];
  readonly map: LocatedSource | undefined;
  /** The path in the source for a path in `definition`. */
  sourceOf(path: Path): Path;
  /** The wrong parts, by their place in the source. */
  readonly dropped: DroppedParts;
  /** The names in wrong parts. An expression that reads such a name is not reported. */
  readonly brokenNames: ReadonlySet<string>;
  /** A part of the flow or of the agents could not be read, so any name may be valid. */
  readonly openNames: boolean;
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
  if (parsed.problems.length > 0) {
    throw invalidDefinition(toIssues(parsed.problems, parsed.map), parsed.definition.name);
  }
  return parsed.definition;
}

/**
 * Reads the definition of one agent.
 *
 * @throws INVALID_DEFINITION with every problem in `details.issues`
 */
export function parseAgent(source: string | object): AgentDefinition {
  const { value, map, problems: inText } = readInput(source);
  const problems = [...inText];
  const reader = { spellings: new Map(), report: (problem: Problem) => void problems.push(problem) };
  const agent = readAgent(value, { path: [], source: [] }, reader);
  if (problems.length === 0 && agent) return agent;
  throw invalidDefinition(toIssues(problems, map), agent?.name, 'agent');
}

const MAX_PRINTED = 20;

/** The error of a definition that can't be loaded. @param name - the name of the ensemble, if it could be read */
export function invalidDefinition(
  issues: readonly DefinitionIssue[],
  name?: string,
  kind = 'ensemble',
): OrchestratorError {
  const what = name ? `${kind} \`${name}\` has` : 'the definition has';
  return withIssues(what, issues);
}

/** The error of several definitions. @param issues - the issues of all definitions, each with its `ensemble` */
export function invalidDefinitions(issues: readonly DefinitionIssue[]): OrchestratorError {
  const count = new Set(issues.map(({ ensemble }) => ensemble)).size;
  return withIssues(`${count} ensembles have`, issues, (issue, before) => {
    const heading = issue.ensemble === before?.ensemble ? '' : `ensemble \`${issue.ensemble}\`:\n`;
    return heading + formatIssue(issue);
  });
}

/** @param what - the subject of the message, with its verb: `... has` */
export function withIssues(
  what: string,
  issues: readonly DefinitionIssue[],
  print: (issue: DefinitionIssue, before: DefinitionIssue | undefined) => string = formatIssue,
): OrchestratorError {
  const count = issues.length === 1 ? '1 problem' : `${issues.length} problems`;
  const shown = issues.slice(0, MAX_PRINTED).map((issue, i) => print(issue, issues[i - 1]));
  const left = issues.length - MAX_PRINTED;
  const rest = left > 0 ? `\n\n... and ${left} more in details.issues` : '';
  return new OrchestratorError('INVALID_DEFINITION', `${what} ${count}:\n\n${shown.join('\n\n')}${rest}`, {
    details: { issues },
  });
}

/**
 * Parses without throwing for problems of form.
 *
 * @throws INVALID_DEFINITION when the text is not YAML or the object is not plain data
 */
export function parseDefinition(source: string | object): ParsedEnsemble {
  const { value, map, problems: inText } = readInput(source);
  const problems = [...inText];
  const unreadable = droppedParts(inText);
  const reader: PartReader = {
    report: (problem) => {
      if (!unreadable.has(problem.path)) problems.push(problem);
    },
    spellings: new Map(),
    dropped: droppedParts(inText),
    brokenNames: new Set(),
  };
  const { dropped, spellings } = reader;
  const fields = checkTop(value, reader);
  const at = { path: [], source: [] };
  readSpelling(fields, 'agents', ['operations', 'members'], at, reader);
  readSpelling(fields, 'inputs', ['input'], at, reader);
  readSpelling(fields, 'outputs', ['output'], at, reader);
  const place = (key: string) => ({ path: [key], source: sourceOf([key], spellings) });
  const flow = limitSteps(fields.flow, reader.report);
  const agents = readAgents(fields.agents, place('agents'), reader);
  const definition = withoutUndefined({
    name: fields.name,
    description: fields.description,
    trigger: readTriggers(fields.trigger, place('trigger'), reader),
    flow: readSteps(flow, place('flow'), reader),
    agents: agents?.read,
    inputs: readInputs(fields.inputs, place('inputs').source, reader),
    outputs: fields.outputs,
    notifications: readNotifications(fields.notifications, place('notifications'), reader),
    state: fields.state,
    timeout: fields.timeout,
    execution: fields.execution,
    concurrency: readRules(fields.concurrency, concurrencySchema(), place('concurrency'), reader),
    rate: readRules(fields.rate, rateSchema(), place('rate'), reader),
    startWithin: fields.startWithin,
    debounce: fields.debounce,
    batch: fields.batch,
    fair: fields.fair,
    perProcess: fields.perProcess,
    priority: fields.priority,
  }) as unknown as EnsembleDefinition;
  const unread = ['flow', 'agents', 'operations', 'members'].some((key) => dropped.has([key]));
  return {
    definition,
    problems,
    map,
    sourceOf: (path) => sourceOf(path, spellings),
    dropped,
    brokenNames: reader.brokenNames,
    openNames: inText.length > 0 || unread || flow === undefined || agents?.unnamed === true,
  };
}

function droppedParts(problems: readonly Problem[]): DroppedParts {
  const dropped = createDroppedParts();
  for (const { path } of problems) dropped.add(path);
  return dropped;
}

// The largest counted size of a definition from text: `[]` inside `[]` counts 48 bytes for two characters.
const MAX_DEFINITION_BYTES = 24 * MAX_SOURCE_BYTES;

interface ReadInput {
  readonly value: Json;
  readonly map: LocatedSource | undefined;
  /** The values that the text gives in a form that JSON does not have. */
  readonly problems: readonly Problem[];
}

function readInput(source: string | object): ReadInput {
  if (typeof source === 'string') {
    const read = readSource(source);
    if (!read.ok && !read.rest) throw invalidDefinition(read.issues);
    const { value, map, problems } = read.ok ? { ...read, problems: [] } : (read.rest as PartialSource);
    const text = source.charCodeAt(0) === 0xfeff ? source.slice(1) : source;
    const wrong = problems.map(({ path, issue }) => ({ path, message: issue.message, placed: issue }));
    return { value, map: { ...map, text, value }, problems: wrong };
  }
  try {
    return { value: copyJson(source, MAX_DEFINITION_BYTES), map: undefined, problems: [] };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw invalidDefinition([{ path: error.problem.path, message: error.problem.message }]);
  }
}

const STAND_IN_NAME = 'unnamed';

// When the name or the flow is missing or wrong, the rest of the definition is checked with a stand-in for it.
function checkTop(value: Json, reader: PartReader): Fields {
  const checked = checkShape(ensembleSchema(), value, [], reader, { name: STAND_IN_NAME, flow: [] });
  if (!checked) {
    reader.dropped.add(['flow']);
    return { name: '', flow: [] };
  }
  return reader.dropped.has(['name']) ? { ...checked, name: '' } : { ...checked };
}

// When there are too many steps, none of them is checked.
function limitSteps(flow: unknown, report: Report): unknown {
  const count = countSteps(flow);
  if (count <= MAX_STEPS) return flow;
  report({
    path: ['flow'],
    message: `has ${count} steps; at most ${MAX_STEPS} are allowed; split it into several ensembles`,
  });
  return undefined;
}
