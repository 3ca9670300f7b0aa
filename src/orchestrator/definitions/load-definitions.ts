/** Loads the definitions of an orchestrator, once, when it is created. */

import type { AgentSource, EnsembleSource } from '../../authoring/define.ts';
import { type DefinitionIssue, isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import { copyJson, formatPath, type Json, JsonError } from '../../engine/base/json/json.ts';
import { isPromise, type MaybePromise } from '../../engine/base/maybe-promise.ts';
import { once } from '../../engine/base/once.ts';
import type { CompiledEnsemble } from '../../engine/compiled/compiled-ensemble.ts';
import {
  type CompileResult,
  compileEnsemble,
  compileSingleAgent,
} from '../../engine/definition/compile/compile-ensemble.ts';
import { checkTogether, unknownCalls } from '../../engine/definition/compile/config/check-together.ts';
import type { EnsembleCall } from '../../engine/definition/compile/resolve-agent.ts';
import type { CompileHost } from '../../engine/definition/compile/triggers/compile-host.ts';
import type { Report } from '../../engine/definition/forms/check-shape.ts';
import {
  invalidDefinition,
  invalidDefinitions,
  type ParsedEnsemble,
  parseDefinition,
  readAgent,
} from '../../engine/definition/read/parse-ensemble.ts';
import { type Problem, toIssues } from '../../engine/definition/source/problem.ts';
import { schemaTypes } from '../../engine/definition/types/from-json-schema.ts';
import type { TypeReport } from '../../engine/definition/types/report-types.ts';
import type { Type } from '../../engine/definition/types/type.ts';
import type { Answer, EnsembleTypes } from '../../engine/definition/types/walk/walker.ts';
import type { AgentDefinition } from '../../engine/ensemble/ensemble.ts';
import type { TrafficMark } from '../../engine/ensemble/traffic.ts';
import type { ExpectedDocument } from '../../engine/execution/stored-execution.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { OutputCheck } from '../../engine/interpreter/run-ensemble.ts';
import { WEBHOOK_ROOT } from '../../engine/webhook/webhook.ts';
import { type DefinitionSchemas, type InputCheck, inputCheck, outputCheck, takeSchemas } from './standard-schemas.ts';

export interface LoadedEnsemble {
  readonly compiled: CompiledEnsemble;
  readonly checkInput?: InputCheck | undefined;
  readonly checkOutput: OutputCheck | undefined;
  /** The ensembles that its steps start. */
  readonly calls: readonly EnsembleCall[];
  /** Parts that are valid, but are probably a mistake or not supported yet. */
  readonly warnings: readonly DefinitionIssue[];
  /** The document that holds the definition. Absent for a definition in code. */
  readonly expects?: ExpectedDocument;
  /** The types of what its steps give, by position. Absent where types are not checked. */
  readonly answers?: (() => ReadonlyMap<string, Type>) | undefined;
  /** Which version a start runs. Absent: this one. */
  readonly traffic?: LoadedTraffic | undefined;
  /** What the executions that begin with it have of the traffic that chose it. */
  readonly mark?: TrafficMark | undefined;
}

export interface LoadedTraffic {
  /**
   * The version that a start runs.
   * @param given - its input, as it came in
   * @param id - of the execution: the key, if no expression decides
   * @throws NOT_CONFIGURED if this process lacks what the version needs
   */
  choose(given: unknown, id: string): LoadedEnsemble;
  /** The version that runs dry after each execution. @throws as `choose` */
  shadow(): LoadedEnsemble | undefined;
  /** What the versions read of the request that starts them. */
  readonly requestReads: CompiledEnsemble['requestReads'];
  /** Why this process can't run one of the versions. */
  readonly lacks: OrchestratorError | undefined;
  /** Why it can't run the newest version. Then the ensemble is the version with the largest share. */
  readonly lacksNewest: OrchestratorError | undefined;
}

/** A definition with the problems that were found in it. */
interface CheckedSource extends DefinitionSchemas {
  /** Undefined for a definition that could not be read. */
  readonly parsed?: ParsedEnsemble;
  readonly result?: CompileResult;
  /** Why the definition could not be read. */
  readonly unread: readonly DefinitionIssue[];
}

function checkSource(source: EnsembleSource, host: CompileHost): CheckedSource {
  const { definition, ...schemas } = takeSchemas(source);
  let parsed: ParsedEnsemble;
  try {
    parsed = parseDefinition(definition);
  } catch (error) {
    if (!isOrchestratorError(error, 'INVALID_DEFINITION')) throw error;
    return { unread: error.details.issues };
  }
  const compiled = compileEnsemble(parsed, host);
  const problems = [...compiled.problems, ...scheduleInputProblems(parsed, schemas)];
  return { parsed, result: { ...compiled, problems }, unread: [], ...schemas };
}

/** Inputs of schedules that the `inputSchema` refuses. An asynchronous schema is asked when the schedule is due. */
function scheduleInputProblems({ definition }: ParsedEnsemble, { inputSchema }: DefinitionSchemas): Problem[] {
  if (!inputSchema) return [];
  const check = inputCheck(definition.name, inputSchema);
  return (definition.trigger ?? []).flatMap((trigger, at) => {
    if (trigger.type !== 'schedule') return [];
    try {
      const checked = check(trigger.input);
      if (isPromise(checked)) checked.catch(() => undefined);
      return [];
    } catch (error) {
      if (!isOrchestratorError(error, 'INVALID_INPUT')) throw error;
      return [{ path: ['trigger', at, ...(trigger.input === undefined ? [] : ['input'])], message: error.message }];
    }
  });
}

/**
 * Parses and compiles a definition that was stored earlier. A problem of its types refuses nothing, because the version that stored it may
 * not have found it: it is a warning.
 *
 * @throws INVALID_DEFINITION with all problems; NOT_CONFIGURED if the definition is valid and the host lacks something
 */
export function loadStoredEnsemble(source: EnsembleSource, host: CompileHost): LoadedEnsemble {
  const checked = checkSource(source, host);
  refuseBrokenDefinitions([findingsOf(checked, [], '')]);
  const types = checkTypesOf([checked]).get(checked);
  return { ...toLoaded(checked, types), warnings: toIssues(types?.problems ?? [], checked.parsed?.map) };
}

/**
 * Parses and compiles a definition that is created at run time.
 *
 * @param exists - whether an ensemble has a name
 * @throws INVALID_DEFINITION with all problems, such as a step that starts an unknown ensemble, or a part that only code can define;
 *   NOT_CONFIGURED if the definition is valid and the host lacks something
 */
export async function loadNewEnsemble(
  source: string | object,
  host: CompileHost,
  exists: (name: string) => MaybePromise<boolean>,
): Promise<LoadedEnsemble> {
  const checked = checkSource(source as EnsembleSource, host);
  const calls = checked.result?.calls ?? [];
  const known = new Set([nameOf(checked)]);
  for (const { ensemble } of calls) if (!known.has(ensemble) && (await exists(ensemble))) known.add(ensemble);
  const types = checkTypesOf([checked]).get(checked);
  const problems = [...unknownCalls(calls, known), ...onlyInCode(checked), ...(types?.problems ?? [])];
  refuseBrokenDefinitions([findingsOf(checked, problems, '')]);
  return toLoaded(checked, types);
}

function onlyInCode({ parsed, inputSchema, outputSchema }: CheckedSource): Problem[] {
  const schemas = Object.entries({ inputSchema, outputSchema }).filter(([, schema]) => schema !== undefined);
  const triggers = [...(parsed?.definition.trigger ?? []).entries()];
  const schedules = triggers.flatMap(([at, { type }]) => (type === 'schedule' ? [at] : []));
  const elsewhere = triggers.flatMap(([at, one]) =>
    one.type === 'webhook' && !one.path.startsWith(WEBHOOK_ROOT) ? [at] : [],
  );
  return [
    ...schemas.map(([key]) => ({ path: [key], message: 'is code, and only a definition in code can have it' })),
    ...schedules.map((at) => ({
      path: ['trigger', at],
      message: 'a definition that is created at run time has no schedule; pass the ensemble to createOrchestrator',
    })),
    ...elsewhere.map((at) => ({
      path: ['trigger', at, 'path'],
      message: `must begin with \`${WEBHOOK_ROOT}\` in a definition that is created at run time; only code can take any path`,
    })),
  ];
}

/**
 * Loads all ensembles.
 *
 * @throws INVALID_DEFINITION with the problems of all ensembles, each with its `ensemble`. Two ensembles with the same name or webhook
 *   are a problem, and so is a step that starts an unknown ensemble. NOT_CONFIGURED if the only problems are things that the host lacks
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
  const types = checkTypesOf(all);
  // An ensemble whose name could not be read may be the ensemble that a step starts.
  const names = named.length === all.length ? new Set(named.map(nameOf)) : undefined;
  refuseBrokenDefinitions(
    all.map((checked, i) => {
      const unknown = names && checked.result ? unknownCalls(checked.result.calls, names) : [];
      const shared = together[named.indexOf(checked)] ?? [];
      return findingsOf(
        checked,
        [...shared, ...unknown, ...(types.get(checked)?.problems ?? [])],
        nameOf(checked) || `ensembles[${i}]`,
      );
    }),
  );
  return new Map(all.map((checked) => [nameOf(checked), toLoaded(checked, types.get(checked))]));
}

type TypesFound = ReturnType<NonNullable<CompileResult['types']>>;

/** Checks the types of all ensembles, each after those that it starts. A circle of ensembles is not followed. */
function checkTypesOf(all: readonly CheckedSource[]): ReadonlyMap<CheckedSource, TypesFound> {
  const byName = new Map(all.map((checked) => [nameOf(checked), checked]));
  const types = new Map<CheckedSource, TypesFound>();
  const begun = new Set<CheckedSource>();
  const typesOf = (checked: CheckedSource): EnsembleTypes | undefined => {
    if (begun.has(checked)) return types.get(checked)?.types;
    begun.add(checked);
    const found = checked.result?.types?.(
      (name) => {
        const child = byName.get(name);
        return child && typesOf(child);
      },
      schemaTypes(),
      checked.inputSchema,
    );
    if (found) types.set(checked, found);
    return found?.types;
  };
  for (const checked of all) typesOf(checked);
  return types;
}

function nameOf({ parsed }: CheckedSource): string {
  return parsed?.definition.name ?? '';
}

function toLoaded(
  { parsed, result, inputSchema, outputSchema }: CheckedSource,
  types: TypesFound | undefined,
): LoadedEnsemble {
  const { compiled, calls, warnings } = result as CompileResult;
  return {
    compiled,
    checkInput: inputSchema && inputCheck(compiled.name, inputSchema),
    checkOutput: outputSchema && outputCheck(outputSchema),
    calls,
    warnings: toIssues(warnings, parsed?.map),
    answers: types && answersOf(types.types.answers),
  };
}

function answersOf(answers: readonly Answer[]): NonNullable<LoadedEnsemble['answers']> {
  return once(() => new Map(answers.map(({ path, output }) => [formatPath(path as (string | number)[]), output])));
}

/** The problems of one definition. */
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
  const named = ensemble === '' ? issues : issues.map((issue) => ({ ...issue, ensemble }));
  return { ensemble, name: nameOf(checked), issues: named, notConfigured };
}

function refuseBrokenDefinitions(all: readonly Findings[]): void {
  const broken = all.filter(({ issues }) => issues.length > 0);
  const [first] = broken;
  if (!first) return;
  const issues = broken.flatMap((one) => one.issues);
  const error = broken.length === 1 ? invalidDefinition(issues, first.name) : invalidDefinitions(issues);
  if (!broken.every(({ notConfigured }) => notConfigured)) throw error;
  throw new OrchestratorError('NOT_CONFIGURED', error.message, { details: error.details });
}

/** A definition of a file. */
export interface DefinitionFile {
  readonly source: EnsembleSource;
  readonly file?: string | undefined;
}

/** What was found in one definition. */
export interface CheckedDefinition {
  readonly issues: readonly DefinitionIssue[];
  /** Parts that are valid, but are probably a mistake or not supported yet. */
  readonly warnings: readonly DefinitionIssue[];
  /** Writes down the types of the ensemble. Undefined if it could not be compiled. */
  readonly types?: (() => EnsembleReport) | undefined;
}

/** The types of an ensemble as text, in the notation of TypeScript. */
export interface EnsembleReport extends Omit<TypeReport, 'unknown'> {
  readonly ensemble: string;
  /** What may be anything, and how to declare it. */
  readonly unknown: readonly DefinitionIssue[];
}

/**
 * All problems and warnings of definitions, which `ensemble validate` prints. Does not throw them. A step that starts another of the
 * definitions has its types.
 *
 * @param ensembles - the names of the ensembles that steps may start. Default: any name
 */
export function checkDefinitions(
  files: readonly DefinitionFile[],
  host: CompileHost,
  ensembles?: ReadonlySet<string>,
): readonly CheckedDefinition[] {
  const all = files.map(({ source }) => checkSource(source, host));
  const types = checkTypesOf(all);
  return all.map((checked, i): CheckedDefinition => {
    const { parsed, result, unread } = checked;
    const file = files[i]?.file;
    if (!result)
      return { issues: unread.map((issue) => (file === undefined ? issue : { ...issue, source: file })), warnings: [] };
    const found = types.get(checked);
    const unknown = ensembles ? unknownCalls(result.calls, ensembles) : [];
    return {
      issues: toIssues([...result.problems, ...unknown, ...(found?.problems ?? [])], parsed?.map, file),
      warnings: toIssues(result.warnings, parsed?.map, file),
      ...(found && {
        types() {
          const report = found.report();
          return { ensemble: nameOf(checked), ...report, unknown: toIssues(report.unknown, parsed?.map, file) };
        },
      }),
    };
  });
}

/** All problems and warnings of one definition. */
export function checkEnsemble(source: EnsembleSource, host: CompileHost, file?: string): CheckedDefinition {
  return checkDefinitions([{ source, file }], host)[0] as CheckedDefinition;
}

/** Checks the form of the shared agents. Their behaviour is checked where an ensemble uses them, and by {@link loadSharedAgent}. */
export function readSharedAgents(agents: readonly AgentSource[]): ReadonlyMap<string, AgentDefinition> {
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

function copyAgent(given: AgentSource, report: Report): Json {
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
export function loadSharedAgent(
  agent: AgentDefinition,
  host: CompileHost,
  others: readonly AgentDefinition[] = [],
): LoadedEnsemble {
  const { compiled, problems } = compileSingleAgent(agent, host, {}, others);
  refuseProblems(problems, agent.name);
  const flow = [{ agent: agent.name }];
  const answers = once(() => {
    const checked = checkSource({ name: agent.name, flow, agents: [agent, ...others] } as EnsembleSource, host);
    return answersOf(checkTypesOf([checked]).get(checked)?.types.answers ?? [])();
  });
  // A shared agent is one step, which starts no ensemble.
  return { compiled, checkOutput: undefined, calls: [], warnings: [], answers };
}

function refuseProblems(problems: readonly Problem[], name = ''): void {
  const notConfigured = problems.every((problem) => problem.notConfigured);
  refuseBrokenDefinitions([{ ensemble: '', name, issues: toIssues(problems, undefined), notConfigured }]);
}

/** Logs the warnings of all ensembles. */
export function logWarnings(ensembles: Iterable<LoadedEnsemble>, logger: Logger): void {
  for (const { compiled, warnings } of ensembles) {
    for (const { path, message, line, column } of warnings) {
      const place = [line === undefined ? '' : `${line}:${column}`, path].filter((part) => part !== '').join(' ');
      logger.warn({ ensemble: compiled.name, path }, `ensemble \`${compiled.name}\`: ${place}: ${message}`);
    }
  }
}
