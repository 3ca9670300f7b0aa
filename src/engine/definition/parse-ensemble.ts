/** YAML or object to `EnsembleDefinition`, or every problem at once: the first stage of the run line. */

import { OrchestratorError } from '../errors.ts';
import { copyJson, type Json, JsonError } from '../json.ts';
import type { EnsembleDefinition } from '../model/ensemble.ts';
import { checkShape, type Report } from './check-shape.ts';
import { type DefinitionIssue, formatIssue } from './definition-issue.ts';
import { createDroppedParts, type DroppedParts } from './dropped-parts.ts';
import { ensembleSchema } from './forms.ts';
import { type LocatedSource, type Path, type Problem, toIssues } from './problem.ts';
import { type Fields, readSpelling, sourceOf, withoutUndefined } from './read-older-form.ts';
import { readAgents, readInputs, readNotifications, readTriggers } from './read-parts.ts';
import { MAX_SOURCE_BYTES, readSource } from './read-source.ts';
import { countSteps, type PartReader, readSteps } from './read-steps.ts';

export { readAgent } from './read-parts.ts';

/** Steps that one definition may hold, at all levels together. */
export const MAX_STEPS = 1000;

/** What the parser gives to the compiler: the definition in its current form, and how to speak of its places. */
export interface ParsedEnsemble {
  readonly definition: EnsembleDefinition;
  /** Parts that were wrong are reported here and left out of `definition`. */
  readonly problems: readonly Problem[];
  readonly map: LocatedSource | undefined;
  /** The author's path of a path in `definition`. */
  sourceOf(path: Path): Path;
  /** Parts that were wrong, by their place in the source. */
  readonly dropped: DroppedParts;
  /** Names that wrong parts mention: what reads them is not at fault. */
  readonly brokenNames: ReadonlySet<string>;
  /** Part of the flow or of the agents could not be read at all: any name may be right. */
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

const MAX_PRINTED = 20;

/** The error of a definition that can't be loaded. @param name - of the ensemble, if it could be read */
export function invalidDefinition(issues: readonly DefinitionIssue[], name?: string): OrchestratorError {
  const what = name ? `ensemble \`${name}\` has` : 'the definition has';
  return withIssues(what, issues, formatIssue);
}

/** The error of several definitions. @param issues - of all of them, each with its `ensemble` */
export function invalidDefinitions(issues: readonly DefinitionIssue[]): OrchestratorError {
  const count = new Set(issues.map(({ ensemble }) => ensemble)).size;
  return withIssues(`${count} ensembles have`, issues, (issue, before) => {
    const heading = issue.ensemble === before?.ensemble ? '' : `ensemble \`${issue.ensemble}\`:\n`;
    return heading + formatIssue(issue);
  });
}

function withIssues(
  what: string,
  issues: readonly DefinitionIssue[],
  print: (issue: DefinitionIssue, before: DefinitionIssue | undefined) => string,
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
 * @throws INVALID_DEFINITION when the text is no YAML or the object no plain data
 */
export function parseDefinition(source: string | object): ParsedEnsemble {
  const { value, map } = readInput(source);
  const problems: Problem[] = [];
  const reader: PartReader = {
    report: (problem) => problems.push(problem),
    spellings: new Map(),
    dropped: createDroppedParts(),
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
  }) as unknown as EnsembleDefinition;
  const unread = ['flow', 'agents', 'operations', 'members'].some((key) => dropped.has([key]));
  return {
    definition,
    problems,
    map,
    sourceOf: (path) => sourceOf(path, spellings),
    dropped,
    brokenNames: reader.brokenNames,
    openNames: unread || flow === undefined || agents?.unnamed === true,
  };
}

// What the longest source text may count: `[]` inside `[]` is 48 bytes, and two characters.
const MAX_DEFINITION_BYTES = 24 * MAX_SOURCE_BYTES;

function readInput(source: string | object): { readonly value: Json; readonly map: LocatedSource | undefined } {
  if (typeof source === 'string') {
    const read = readSource(source);
    if (!read.ok) throw invalidDefinition(read.issues);
    const text = source.charCodeAt(0) === 0xfeff ? source.slice(1) : source;
    return { value: read.value, map: { ...read.map, text, value: read.value } };
  }
  try {
    return { value: copyJson(source, MAX_DEFINITION_BYTES), map: undefined };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw invalidDefinition([{ path: error.problem.path, message: error.problem.message }]);
  }
}

const STAND_IN_NAME = 'unnamed';

// A definition whose name or flow is missing or wrong has the rest checked with stand-ins.
function checkTop(value: Json, reader: PartReader): Fields {
  const checked = checkShape(ensembleSchema, value, [], reader, { name: STAND_IN_NAME, flow: [] });
  if (!checked) {
    reader.dropped.add(['flow']);
    return { name: '', flow: [] };
  }
  return reader.dropped.has(['name']) ? { ...checked, name: '' } : { ...checked };
}

// Too many steps aren't looked at one by one: that is what the limit is for.
function limitSteps(flow: unknown, report: Report): unknown {
  const count = countSteps(flow);
  if (count <= MAX_STEPS) return flow;
  report({ path: ['flow'], message: `has ${count} steps; at most ${MAX_STEPS} are allowed: split it into ensembles` });
  return undefined;
}
