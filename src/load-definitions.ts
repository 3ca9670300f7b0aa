/** Loads everything that the host's code defines, once, when an orchestrator is created. */

import type { EnsembleSource } from './define.ts';
import type { Report } from './engine/definition/check-shape.ts';
import { checkTogether, unknownCalls } from './engine/definition/check-together.ts';
import { issuePath } from './engine/definition/compile-agent.ts';
import { type CompileResult, compileEnsemble, compileSingleAgent } from './engine/definition/compile-ensemble.ts';
import type { CompileHost } from './engine/definition/compile-host.ts';
import type { CompiledEnsemble } from './engine/definition/compiled-ensemble.ts';
import type { DefinitionIssue } from './engine/definition/definition-issue.ts';
import {
  invalidDefinition,
  invalidDefinitions,
  type ParsedEnsemble,
  parseDefinition,
  readAgent,
} from './engine/definition/parse-ensemble.ts';
import { type Problem, toIssues } from './engine/definition/problem.ts';
import type { Call } from './engine/definition/resolve-agent.ts';
import { messageOf, OrchestratorError } from './engine/errors.ts';
import type { OutputCheck } from './engine/execution/run-ensemble.ts';
import { copyJson, type Json, JsonError } from './engine/json.ts';
import type { AgentDefinition } from './engine/model/ensemble.ts';
import type { Logger } from './engine/ports/logger.ts';
import type { StandardResult, StandardSchema } from './engine/ports/standard-schema.ts';

export interface LoadedEnsemble {
  readonly compiled: CompiledEnsemble;
  readonly checkOutput: OutputCheck | undefined;
  /** The ensembles that its steps start. */
  readonly calls: readonly Call[];
  /** What is right in it, and hardly meant or not yet served. */
  readonly warnings: readonly DefinitionIssue[];
}

/** A definition with all that was found in it. */
interface CheckedSource {
  /** Undefined for what could not be read at all. */
  readonly parsed?: ParsedEnsemble;
  readonly result?: CompileResult;
  readonly outputSchema?: StandardSchema;
  /** Why it could not be read. */
  readonly unread: readonly DefinitionIssue[];
}

function checkSource(source: EnsembleSource, host: CompileHost): CheckedSource {
  const { definition, outputSchema } = takeOutputSchema(source);
  let parsed: ParsedEnsemble;
  try {
    parsed = parseDefinition(definition);
  } catch (error) {
    const unread = (error as OrchestratorError).details?.issues as readonly DefinitionIssue[] | undefined;
    if (!unread) throw error;
    return { unread };
  }
  const result = compileEnsemble(parsed, host);
  return { parsed, result, unread: [], ...(outputSchema && { outputSchema }) };
}

/**
 * Parses and compiles one definition.
 *
 * @throws INVALID_DEFINITION with every problem; NOT_CONFIGURED when the definition is right and the host lacks something
 */
export function loadEnsemble(source: EnsembleSource, host: CompileHost): LoadedEnsemble {
  const checked = checkSource(source, host);
  refuse([findingsOf(checked, [], '')]);
  return toLoaded(checked);
}

/**
 * Loads all ensembles.
 *
 * @throws INVALID_DEFINITION with the problems of all of them, each with its `ensemble`; also for a name or a webhook that two
 *   have, and for a step that starts an ensemble which there is not. NOT_CONFIGURED when all that is wrong is what the host lacks
 */
export function loadEnsembles(
  sources: readonly EnsembleSource[],
  host: CompileHost,
): ReadonlyMap<string, LoadedEnsemble> {
  const all = sources.map((source) => checkSource(source, host));
  const named = all.filter(({ parsed }) => parsed?.definition.name);
  const together = checkTogether(
    named.map(({ parsed, result }) => ({ ...(parsed as ParsedEnsemble), ...(result as CompileResult) })),
  );
  // One that has no name may be the one that a step starts.
  const names = named.length === all.length ? new Set(named.map(nameOf)) : undefined;
  refuse(
    all.map((checked, i) => {
      const unknown = names && checked.result ? unknownCalls(checked.result.calls, names) : [];
      const beside = together[named.indexOf(checked)] ?? [];
      return findingsOf(checked, [...beside, ...unknown], nameOf(checked) || `ensembles[${i}]`);
    }),
  );
  return new Map(all.map((checked) => [nameOf(checked), toLoaded(checked)]));
}

function nameOf({ parsed }: CheckedSource): string {
  return parsed?.definition.name ?? '';
}

function toLoaded({ parsed, result, outputSchema }: CheckedSource): LoadedEnsemble {
  const { compiled, calls, warnings } = result as CompileResult;
  return {
    compiled,
    checkOutput: outputSchema && outputCheck(outputSchema),
    calls,
    warnings: toIssues(warnings, parsed?.map),
  };
}

/** What was found in one definition. */
interface Findings {
  /** Empty for a definition that is loaded alone. */
  readonly ensemble: string;
  readonly name: string;
  readonly issues: readonly DefinitionIssue[];
  readonly notConfigured: boolean;
}

function findingsOf(checked: CheckedSource, more: readonly Problem[], ensemble: string): Findings {
  const problems = [...(checked.result?.problems ?? []), ...more];
  const issues = [...checked.unread, ...toIssues(problems, checked.parsed?.map)];
  const notConfigured = checked.unread.length === 0 && problems.every((problem) => problem.notConfigured);
  const told = ensemble === '' ? issues : issues.map((issue) => ({ ...issue, ensemble }));
  return { ensemble, name: nameOf(checked), issues: told, notConfigured };
}

function refuse(all: readonly Findings[]): void {
  const broken = all.filter(({ issues }) => issues.length > 0);
  const [first] = broken;
  if (!first) return;
  const issues = broken.flatMap((one) => one.issues);
  const error = broken.length === 1 ? invalidDefinition(issues, first.name) : invalidDefinitions(issues);
  if (!broken.every(({ notConfigured }) => notConfigured)) throw error;
  throw new OrchestratorError('NOT_CONFIGURED', error.message, { details: error.details });
}

/**
 * Every problem of one definition, without throwing: what `ensemble validate` prints.
 *
 * @param ensembles - the names that its steps may start; without them, any
 */
export function checkEnsemble(
  source: EnsembleSource,
  host: CompileHost,
  file?: string,
  ensembles?: ReadonlySet<string>,
): { readonly issues: readonly DefinitionIssue[]; readonly warnings: readonly DefinitionIssue[] } {
  const { parsed, result, unread } = checkSource(source, host);
  if (!result) {
    return { issues: unread.map((issue) => (file === undefined ? issue : { ...issue, source: file })), warnings: [] };
  }
  const unknown = ensembles ? unknownCalls(result.calls, ensembles) : [];
  return {
    issues: toIssues([...result.problems, ...unknown], parsed?.map, file),
    warnings: toIssues(result.warnings, parsed?.map, file),
  };
}

/** Checks the shared agents' forms; what they do is checked where an ensemble uses them, and by {@link loadSharedAgent}. */
export function readSharedAgents(agents: readonly AgentDefinition[]): ReadonlyMap<string, AgentDefinition> {
  const problems: Problem[] = [];
  const byName = new Map<string, AgentDefinition>();
  agents.forEach((given, i) => {
    const report = (problem: Problem) => problems.push({ ...problem, path: ['agents', i, ...problem.path] });
    const agent = readAgent(copyAgent(given, report), { path: [], source: [] }, { spellings: new Map(), report });
    if (!agent) return;
    if (byName.has(agent.name)) report({ path: ['name'], message: `agent \`${agent.name}\` is shared twice` });
    byName.set(agent.name, agent);
  });
  refuseProblems(problems);
  return byName;
}

function copyAgent(given: AgentDefinition, report: Report): Json {
  try {
    return copyJson(given);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const { path, message } = error.problem;
    report({ path: [], message: path ? `\`${path}\` ${message}` : message });
    return null;
  }
}

/** Compiles a shared agent to run alone. */
export function loadSharedAgent(agent: AgentDefinition, host: CompileHost): LoadedEnsemble {
  const { compiled, problems } = compileSingleAgent(agent, host);
  refuseProblems(problems, agent.name);
  // A shared agent is one step, and starts no ensemble.
  return { compiled, checkOutput: undefined, calls: [], warnings: [] };
}

function refuseProblems(problems: readonly Problem[], name = ''): void {
  const notConfigured = problems.every((problem) => problem.notConfigured);
  refuse([{ ensemble: '', name, issues: toIssues(problems, undefined), notConfigured }]);
}

function takeOutputSchema(source: EnsembleSource): {
  readonly definition: string | object;
  readonly outputSchema?: StandardSchema;
} {
  if (typeof source === 'string' || typeof source !== 'object' || source === null || !('outputSchema' in source))
    return { definition: source };
  const { outputSchema, ...definition } = source;
  if (typeof (outputSchema as Partial<StandardSchema> | undefined)?.['~standard']?.validate !== 'function') {
    throw new TypeError(`ensemble \`${String(source.name)}\`: \`outputSchema\` must be a Standard Schema`);
  }
  return { definition, outputSchema: outputSchema as StandardSchema };
}

function outputCheck(schema: StandardSchema): OutputCheck {
  return async (output: Json) => {
    let result: StandardResult<unknown>;
    try {
      result = await schema['~standard'].validate(output);
    } catch (thrown) {
      return `the ensemble's outputSchema failed: ${messageOf(thrown)}`;
    }
    if (!result.issues) return undefined;
    const problems = result.issues.map((issue) =>
      [issuePath(issue).join('.'), issue.message].filter((part) => part !== '').join(': '),
    );
    return `the outputs don't fit the ensemble's outputSchema: ${problems.join('; ')}`;
  };
}

/** Tells the log, once, what is right and hardly meant or not yet served. */
export function logWarnings(ensembles: Iterable<LoadedEnsemble>, logger: Logger): void {
  for (const { compiled, warnings } of ensembles) {
    for (const { path, message, line, column } of warnings) {
      const place = [line === undefined ? '' : `${line}:${column}`, path].filter((part) => part !== '').join(' ');
      logger.warn({ ensemble: compiled.name, path }, `ensemble \`${compiled.name}\`: ${place}: ${message}`);
    }
  }
}
