/** Compiles a definition to a `CompiledEnsemble`: expressions to closures, names to slots, agents to operations. */

import { hashJson } from '../../base/bytes/hash.ts';
import type { Json, JsonObject } from '../../base/json/json.ts';
import { toMs } from '../../base/time/duration.ts';
import type { CompiledEnsemble, EvaluateOutputs } from '../../compiled/compiled-ensemble.ts';
import type { AgentBehaviour, AgentDefinition, EnsembleDefinition } from '../../ensemble/ensemble.ts';
import { waitsIn } from '../../ensemble/inner-lists.ts';
import { ensembleOfAgent } from '../../ensemble/name.ts';
import { expressionInKey } from '../../expression/compile/compile-value.ts';
import { ParsedExpressions } from '../../expression/syntax/parsed-expressions.ts';
import { checkNotReserved, type Report } from '../forms/check-shape.ts';
import { createDroppedParts } from '../forms/dropped-parts.ts';
import type { ParsedEnsemble } from '../read/parse-ensemble.ts';
import type { Path, Problem } from '../source/problem.ts';
import { checkTypes } from '../types/check-types.ts';
import type { SchemaTypes } from '../types/from-json-schema.ts';
import { reportTypes, type TypeReport } from '../types/report-types.ts';
import type { EnsembleTypes, TypeCheck } from '../types/walk/walker.ts';
import { checkUnusedAgent, compileFlow } from './compile-flow.ts';
import { compileGather, compileLimits, compilePriority, startWithinOf } from './compile-limits.ts';
import { compileInputCheck, declaredInputs } from './config/check-input.ts';
import { type CompiledField, createFieldCompiler, type FieldCompiler } from './config/compile-fields.ts';
import { refuseExpressions } from './config/refuse-expressions.ts';
import { refuseSecrets } from './config/refuse-secrets.ts';
import { namesInsideForeach } from './names/declare-names.ts';
import { createNames } from './names/names.ts';
import type { KnownNames } from './names/outermost-names.ts';
import type { EnsembleCall, FlowContext } from './resolve-agent.ts';
import type { CompileHost } from './triggers/compile-host.ts';
import { compileNotifications } from './triggers/compile-notifications.ts';
import { compileSchedules } from './triggers/compile-schedules.ts';
import { compileWebhooks } from './triggers/compile-webhooks.ts';

export interface CompileResult {
  /** Valid only when there are no problems. */
  readonly compiled: CompiledEnsemble;
  /** The problems of the parser and the compiler, each one once. */
  readonly problems: readonly Problem[];
  /** Parts that are valid, but probably not what the author meant, or not served by this version. */
  readonly warnings: readonly Problem[];
  /** The ensembles that the steps start, with their places in the source. */
  readonly calls: readonly EnsembleCall[];
  /**
   * Infers the types, and reports what can't be right. Only a definition without problems is checked.
   * @param child - the types of the ensembles that its steps start
   * @param schemas - shared by the definitions that are loaded together
   * @param inputSchema - in place of `inputs`
   */
  readonly types?: (
    child: TypeCheck['child'],
    schemas: SchemaTypes,
    inputSchema?: TypeCheck['inputSchema'],
  ) => {
    readonly types: EnsembleTypes;
    /** The types as text, and what may be anything. */
    readonly report: () => TypeReport;
    readonly problems: readonly Problem[];
  };
}

/** @param parsed - the result of `parseDefinition`. When it has problems, the other parts are still checked */
export function compileEnsemble(parsed: ParsedEnsemble, host: CompileHost): CompileResult {
  const { definition } = parsed;
  const { problems, report, warningsFor } = collectProblems(parsed);
  const context = createContext(parsed, host, report);
  const known = knownNames(parsed, context);
  const { trees } = context;
  const names = createNames(known);
  const flow = compileFlow(definition.flow, names, context);
  // A shared agent that runs alone may be made for flows that give it a prompt.
  if (!context.prompts.hasRoute && !parsed.openNames)
    for (const reportMissing of context.prompts.missing) reportMissing();
  checkUnusedAgents(context, known);
  refuseExpressions(definition.state?.initial ?? null, ['state', 'initial'], report);

  const outputs = compileOutputs(definition.outputs ?? {}, createFieldCompiler(names, host, report));
  for (const name of Object.keys(definition.outputs ?? {}))
    if (name.includes('${')) report({ path: ['outputs', name], key: true, message: expressionInKey().message });
  refuseSecrets(outputs, ['outputs'], 'the outputs', host.secretNames, report);
  const checkInput = compileInputCheck(definition.inputs, ['inputs'], report);
  const compiled: CompiledEnsemble = {
    name: definition.name,
    definition,
    stored: storedDefinition(definition, context),
    checkInput,
    flow,
    slots: names.size,
    output: outputs.evaluate,
    initialState: definition.state?.initial,
    timeoutMs: definition.timeout === undefined ? undefined : toMs(definition.timeout),
    durability: definition.execution?.durability ?? 'step',
    hasLoops: context.loops.hasAny,
    schedules: compileSchedules(definition, checkInput, context),
    webhooks: compileWebhooks(definition, known, context),
    notifications: compileNotifications(definition.notifications, context),
    limits: compileLimits(definition, known, context),
    startWithinMs: startWithinOf(definition),
    gather: compileGather(definition, known, context),
    perProcess: definition.perProcess,
    priority: compilePriority(definition, known, context),
    requestReads: context.requestReads,
    components: context.components.map((use) => ({ ...use, path: parsed.sourceOf(use.path) })),
  };
  const calls = context.calls.map(({ ensemble, path }) => ({ ensemble, path: parsed.sourceOf(path) }));
  const result = { compiled, problems: [...problems.values()], warnings: warningsFor(context.usedAgents), calls };
  if (problems.size > 0 || parsed.openNames) return result;
  const types: CompileResult['types'] = (child, schemas, inputSchema) => {
    const found = new Map<string, Problem>();
    const add: Report = (problem) => {
      const path = parsed.sourceOf(problem.path);
      found.set(`${JSON.stringify(path)}|${problem.offset ?? ''}|${problem.message}`, { ...problem, path });
    };
    const checked = checkTypes({
      definition,
      agents: context.agents,
      host,
      parsed: trees,
      report: add,
      child,
      schemas,
      inputSchema,
    });
    const behaviourOf = (name: string) => context.agents.get(name)?.behaviour ?? host.sharedAgents.get(name);
    return {
      types: checked,
      report: () => {
        const reported = reportTypes(checked, definition, behaviourOf);
        const unknown = reported.unknown.map((one) => ({ ...one, path: parsed.sourceOf(one.path) }));
        return { ...reported, unknown };
      },
      problems: [...found.values()],
    };
  };
  return { ...result, types };
}

/**
 * Compiles an ensemble of one step that runs a shared agent. Its input is the input of the agent, its output the output of the
 * agent. Names of the ensembles that the agent is made for read as null, such as other agents and items. The state starts empty.
 *
 * @param read - what was found when the agent was read, with places in its source
 * @param others - agents that it may call, in place of the shared ones
 */
export function compileSingleAgent(
  agent: AgentDefinition,
  host: CompileHost,
  read: Partial<Pick<ParsedEnsemble, 'problems' | 'dropped' | 'sourceOf'>> = {},
  others: readonly AgentDefinition[] = [],
): CompileResult {
  const { name } = agent;
  const state = /state/i.test(JSON.stringify(agent)) ? { state: { initial: {} } } : {};
  const definition: EnsembleDefinition = { name, ...state, flow: [{ agent: name }], agents: [agent, ...others] };
  const { compiled, problems, calls } = compileEnsemble(
    {
      definition,
      problems: [],
      map: undefined,
      dropped: createDroppedParts(),
      brokenNames: new Set(),
      openNames: true,
      ...read,
      // In the source of a shared agent, its fields are at the top level.
      sourceOf: (path) => (path[0] === 'agents' ? (read.sourceOf?.(path.slice(2)) ?? path.slice(2)) : []),
    },
    host,
  );
  const single: CompiledEnsemble = {
    ...compiled,
    name: ensembleOfAgent(name),
    output: (scope, take) => take('', () => scope.results[0]?.output ?? null),
  };
  // The names of the ensembles that the agent is made for are not known here, so warnings would be wrong.
  return { compiled: single, problems, warnings: [], calls };
}

// The compiler reports places in the definition. This function converts them to places in the source, reports each problem once,
// and drops problems that only follow from a wrong part.
function collectProblems(parsed: ParsedEnsemble) {
  const problems = new Map<string, Problem>();
  const add: Report = (problem) => {
    const key = `${JSON.stringify(problem.path)}|${problem.offset ?? ''}|${problem.message}`;
    if (!problems.has(key)) problems.set(key, problem);
  };
  for (const problem of parsed.problems) add(problem);
  const warnings = new Map<string, Warned>();
  const report: Report = (problem) => {
    const path = parsed.sourceOf(problem.path);
    if (parsed.dropped.has(path)) return;
    if (!problem.warning) add({ ...problem, path });
    else {
      const key = JSON.stringify([problem.path, problem.offset, problem.message]);
      const known = warnings.get(key);
      warnings.set(key, { problem: { ...problem, path }, place: problem.path, times: (known?.times ?? 0) + 1 });
    }
  };
  // An agent that several steps use is compiled for each step. A warning is reported only when all of these steps get it.
  const isForAll = ({ place: [key, index], times }: Warned, uses: ReadonlyMap<string, number>) => {
    const agent = key === 'agents' ? parsed.definition.agents?.[index as number] : undefined;
    return agent === undefined || times >= (uses.get(agent.name) ?? 0);
  };
  const warningsFor = (uses: ReadonlyMap<string, number>) =>
    [...warnings.values()].filter((warned) => isForAll(warned, uses)).map(({ problem }) => problem);
  return { problems, report, warningsFor };
}

interface Warned {
  readonly problem: Problem;
  /** The path in the definition, which may differ from the path in the source. */
  readonly place: Path;
  readonly times: number;
}

function createContext(parsed: ParsedEnsemble, host: CompileHost, report: Report): FlowContext {
  const { definition, dropped, sourceOf } = parsed;
  const requestReads: FlowContext['requestReads'] = new Set();
  const trees = new ParsedExpressions();
  return {
    host,
    trees,
    report,
    ensemble: definition.name,
    hasState: hasState(definition, dropped),
    dropped: (path) => dropped.has(sourceOf(path)),
    agents: declareAgents(definition, report),
    mayBeBroken: (name) => parsed.openNames || parsed.brokenNames.has(name),
    usedAgents: new Map(),
    signalForms: new Map(),
    needs: new Set(),
    requestReads,
    prompts: { hasRoute: false, hasReference: false, missing: [] },
    components: [],
    loops: { hasAny: false },
    inputFields: parsed.openNames ? undefined : definition.inputs && Object.keys(definition.inputs),
    calls: [],
    callers: [],
    namesOfCall: (agent) => ({
      ...outermostNames(parsed, host, requestReads),
      parsed: trees,
      agents: new Set([agent]),
    }),
  };
}

function declareAgents(definition: EnsembleDefinition, report: Report): FlowContext['agents'] {
  const agents = new Map<string, { readonly behaviour: AgentBehaviour; readonly path: Path }>();
  definition.agents?.forEach((agent, i) => {
    const path = ['agents', i];
    const namePath = [...path, 'name'];
    // The steps that use an agent with a reserved name still find it.
    if (agents.has(agent.name))
      report({ path: namePath, message: `agent \`${agent.name}\` is declared twice; choose another name` });
    else agents.set(agent.name, { behaviour: agent, path });
    checkNotReserved(agent.name, namePath, report);
  });
  return agents;
}

function knownNames(parsed: ParsedEnsemble, context: FlowContext): KnownNames {
  const { host, agents } = context;
  // A shared agent that runs alone is made for other flows, and a part that could not be read may contain a `wait`.
  const isWhole = !parsed.openNames && parsed.problems.every(({ path }) => path[0] !== 'flow');
  return {
    ...outermostNames(parsed, host, context.requestReads),
    inputs:
      parsed.dropped.has(['inputs']) || parsed.dropped.has(['input'])
        ? undefined
        : declaredInputs(parsed.definition.inputs),
    parsed: context.trees,
    agents: new Set([...agents.keys(), ...host.sharedAgents.keys()]),
    insideForeach: namesInsideForeach(parsed.definition.flow, context),
    signals: isWhole ? new Set(waitsIn(parsed.definition.flow).map(({ wait }) => wait)) : undefined,
  };
}

/** The names that no part of the flow gives. */
function outermostNames(
  { definition, dropped, brokenNames, openNames }: ParsedEnsemble,
  host: CompileHost,
  requestReads: KnownNames['requestReads'],
): KnownNames {
  return {
    env: host.env,
    anyEnv: host.lenient ?? false,
    unknownVariable: host.unknownVariable,
    inputs: undefined,
    hasState: hasState(definition, dropped),
    agents: new Set(),
    insideForeach: new Map(),
    signals: undefined,
    broken: brokenNames,
    anyName: openNames,
    requestReads,
  };
}

function hasState({ state }: EnsembleDefinition, dropped: ParsedEnsemble['dropped']): boolean {
  return state !== undefined || dropped.has(['state']);
}

function checkUnusedAgents(context: FlowContext, known: KnownNames): void {
  const separate: FlowContext = { ...context, usedAgents: new Map(), needs: new Set(), calls: [] };
  for (const [name, { path }] of context.agents) {
    if (context.usedAgents.has(name)) continue;
    // The agent may be made for use inside a `foreach` or a `catch`.
    const inside = {
      ...known,
      insideForeach: new Map(),
      broken: new Set([...known.broken, ...known.insideForeach.keys()]),
    };
    checkUnusedAgent(name, path, createNames(inside).nest('item').catching(), separate);
  }
}

/** The definition together with the shared agents that it uses, so that the same version can run later, and its hash. */
function storedDefinition(definition: EnsembleDefinition, context: FlowContext): CompiledEnsemble['stored'] {
  const used = [...context.usedAgents.keys()].filter((name) => !context.agents.has(name));
  const shared = used.flatMap((name) => context.host.sharedAgents.get(name) ?? []);
  const agents = shared.length > 0 ? { agents: [...(definition.agents ?? []), ...shared] } : {};
  const json = { ...definition, ...agents } as unknown as JsonObject;
  return { version: hashJson(json), definition: json, needs: [...context.needs].sort() };
}

interface CompiledOutputs {
  readonly evaluate: EvaluateOutputs;
  /** The references of all outputs. Their paths begin with the name of the output. */
  readonly references: CompiledField['references'];
}

/** All outputs share one budget. Each output gets at least this many operations, even after another one used up the budget. */
const MIN_BUDGET = 50_000;

function compileOutputs(definition: JsonObject, fields: FieldCompiler): CompiledOutputs {
  const compiled = Object.entries(definition).map(([name, value]) => {
    return { name, field: fields.value(value, ['outputs', name]) };
  });
  const outputs = compiled.map(({ name, field }) => ({ name, part: `outputs.${name}`, evaluate: field.evaluate }));
  return {
    evaluate(scope, take) {
      const values: Record<string, Json> = {};
      let budget = Number.POSITIVE_INFINITY;
      for (const { name, part, evaluate } of outputs) {
        values[name] = take(name, () => {
          const evaluation = scope.begin('', part);
          evaluation.budget = Math.min(evaluation.budget, budget);
          try {
            return evaluate(evaluation);
          } finally {
            budget = Math.max(evaluation.budget, MIN_BUDGET);
          }
        });
      }
      return values;
    },
    references: compiled.flatMap(({ name, field }) =>
      field.references.map((reference) => ({ ...reference, at: [name, ...reference.at] })),
    ),
  };
}
