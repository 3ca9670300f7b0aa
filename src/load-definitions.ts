/** Loads everything that the host's code defines, once, when an orchestrator is created. */

import type { EnsembleSource } from './define.ts';
import { issuePath } from './engine/definition/compile-agent.ts';
import { compileEnsemble, compileSingleAgent } from './engine/definition/compile-ensemble.ts';
import type { CompileHost } from './engine/definition/compile-host.ts';
import type { CompiledEnsemble } from './engine/definition/compiled-ensemble.ts';
import type { DefinitionIssue } from './engine/definition/definition-issue.ts';
import { invalidDefinition, parseDefinition, readAgent } from './engine/definition/parse-ensemble.ts';
import { type Problem, toIssues } from './engine/definition/problem.ts';
import type { Call } from './engine/definition/resolve-agent.ts';
import { messageOf, OrchestratorError } from './engine/errors.ts';
import type { OutputCheck } from './engine/execution/run-ensemble.ts';
import { copyJson, type Json } from './engine/json.ts';
import type { AgentDefinition } from './engine/model/ensemble.ts';
import type { Logger } from './engine/ports/logger.ts';
import type { StandardResult, StandardSchema } from './engine/ports/standard-schema.ts';
import type { StoredDefinition } from './engine/ports/storage.ts';
import { suggestName } from './engine/suggest-name.ts';

export interface LoadedEnsemble {
  readonly compiled: CompiledEnsemble;
  readonly checkOutput: OutputCheck | undefined;
  /** Ensembles that its steps start and that are not among the given names, as problems of this definition. */
  unknownCalls(known: ReadonlySet<string>): readonly DefinitionIssue[];
}

/**
 * Parses and compiles one definition.
 *
 * @throws INVALID_DEFINITION with every problem; NOT_CONFIGURED when the definition is right and the host lacks something
 */
export function loadEnsemble(source: EnsembleSource, host: CompileHost): LoadedEnsemble {
  const { definition, outputSchema } = takeOutputSchema(source);
  const parsed = parseDefinition(definition);
  const { compiled, problems, calls } = compileEnsemble(parsed, host);
  refuseProblems(problems, toIssues(problems, parsed.map), parsed.definition.name);
  return {
    compiled,
    checkOutput: outputSchema && outputCheck(outputSchema),
    unknownCalls: (known) => toIssues(unknownCalls(calls, known), parsed.map),
  };
}

/** Loads all ensembles. @throws INVALID_DEFINITION as for one, for a name that two have, and for a webhook that two have */
export function loadEnsembles(
  sources: readonly EnsembleSource[],
  host: CompileHost,
): ReadonlyMap<string, LoadedEnsemble> {
  const ensembles = new Map<string, LoadedEnsemble>();
  const webhooks = new Map<string, string>();
  for (const source of sources) {
    const loaded = loadEnsemble(source, host);
    const { name, definition } = loaded.compiled;
    if (ensembles.has(name)) throw new OrchestratorError('INVALID_DEFINITION', `two ensembles are named \`${name}\``);
    for (const trigger of definition.trigger ?? []) {
      if (trigger.type !== 'webhook') continue;
      for (const method of trigger.methods ?? ['POST']) {
        const route = `${method} ${trigger.path}`;
        const other = webhooks.get(route);
        if (other !== undefined)
          throw new OrchestratorError(
            'INVALID_DEFINITION',
            `ensembles \`${other}\` and \`${name}\` both have a trigger for ${route}`,
          );
        webhooks.set(route, name);
      }
    }
    ensembles.set(name, loaded);
  }
  refuseUnknownCalls(ensembles);
  return ensembles;
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
): readonly DefinitionIssue[] {
  let parsed: ReturnType<typeof parseDefinition>;
  try {
    parsed = parseDefinition(takeOutputSchema(source).definition);
  } catch (error) {
    const issues = (error as OrchestratorError).details?.issues as readonly DefinitionIssue[] | undefined;
    if (!issues) throw error;
    return issues.map((issue) => (file === undefined ? issue : { ...issue, source: file }));
  }
  const { problems, calls } = compileEnsemble(parsed, host);
  const unknown = ensembles ? unknownCalls(calls, ensembles) : [];
  return toIssues([...problems, ...unknown], parsed.map, file);
}

function unknownCalls(calls: readonly Call[], known: ReadonlySet<string>): Problem[] {
  return calls
    .filter(({ ensemble }) => !known.has(ensemble))
    .map(({ ensemble, path }) => ({
      path,
      message: `there is no ensemble \`${ensemble}\``,
      suggestion: suggestName(ensemble, known),
    }));
}

/** @throws INVALID_DEFINITION when a step starts an ensemble that there is not */
function refuseUnknownCalls(ensembles: ReadonlyMap<string, LoadedEnsemble>): void {
  const known = new Set(ensembles.keys());
  for (const [name, ensemble] of ensembles) {
    const issues = ensemble.unknownCalls(known);
    if (issues.length > 0) throw invalidDefinition(issues, name);
  }
}

/** Checks the shared agents' forms; what they do is checked where an ensemble uses them, and by {@link loadSharedAgent}. */
export function readSharedAgents(agents: readonly AgentDefinition[]): ReadonlyMap<string, AgentDefinition> {
  const problems: Problem[] = [];
  const byName = new Map<string, AgentDefinition>();
  agents.forEach((given, i) => {
    const report = (problem: Problem) => problems.push({ ...problem, path: ['agents', i, ...problem.path] });
    const agent = readAgent(copyJson(given), { path: [], source: [] }, { spellings: new Map(), report });
    if (!agent) return;
    if (byName.has(agent.name)) report({ path: ['name'], message: `agent \`${agent.name}\` is shared twice` });
    byName.set(agent.name, agent);
  });
  refuseProblems(problems, toIssues(problems, undefined));
  return byName;
}

/** Compiles a shared agent to run alone. */
export function loadSharedAgent(agent: AgentDefinition, host: CompileHost): LoadedEnsemble {
  const { compiled, problems } = compileSingleAgent(agent, host);
  refuseProblems(problems, toIssues(problems, undefined), agent.name);
  // A shared agent is one step, and starts no ensemble.
  return { compiled, checkOutput: undefined, unknownCalls: () => [] };
}

/**
 * Makes ready what an execution began with: the ensemble of this process where it is still the same definition, otherwise the
 * stored one, compiled once.
 *
 * @returns a function that gives a text when this process lacks what the definition needs
 */
export function createRestore(known: {
  readonly ensembles: ReadonlyMap<string, LoadedEnsemble>;
  readonly agents: ReadonlyMap<string, LoadedEnsemble>;
  readonly host: CompileHost;
}): (definition: StoredDefinition, ensemble: string) => LoadedEnsemble | string {
  const { ensembles, agents, host } = known;
  const restored = new Map<string, LoadedEnsemble | string>();
  const agentName = (ensemble: string) => (ensemble.startsWith('agent:') ? ensemble.slice('agent:'.length) : undefined);

  const load = ({ definition }: StoredDefinition, ensemble: string): LoadedEnsemble | string => {
    const agent = agentName(ensemble);
    try {
      if (agent === undefined) {
        // What the code of today checks of an output, it checks of a run of yesterday too.
        const checkOutput = ensembles.get(ensemble)?.checkOutput;
        const loaded = loadEnsemble(definition as unknown as EnsembleSource, host);
        const [missing] = loaded.unknownCalls(new Set(ensembles.keys()));
        return missing ? missing.message : { ...loaded, checkOutput };
      }
      const [shared] = definition.agents as unknown as readonly AgentDefinition[];
      return loadSharedAgent(shared as AgentDefinition, host);
    } catch (error) {
      return messageOf(error);
    }
  };

  return (definition, ensemble) => {
    const agent = agentName(ensemble);
    const current = agent === undefined ? ensembles.get(ensemble) : agents.get(agent);
    if (current?.compiled.stored.version === definition.version) return current;
    const key = `${definition.version} ${ensemble}`;
    let found = restored.get(key);
    if (found === undefined) {
      found = load(definition, ensemble);
      restored.set(key, found);
    }
    return found;
  };
}

function refuseProblems(problems: readonly Problem[], issues: readonly DefinitionIssue[], name?: string): void {
  if (problems.length === 0) return;
  const error = invalidDefinition(issues, name);
  if (!problems.every((problem) => problem.notConfigured)) throw error;
  throw new OrchestratorError('NOT_CONFIGURED', error.message, { details: error.details });
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

/** What is right, and does nothing yet, is not passed over in silence. */
export function warnOfWebhooks(ensembles: Iterable<LoadedEnsemble>, logger: Logger): void {
  for (const { compiled } of ensembles) {
    if (!compiled.definition.trigger?.some(({ type }) => type === 'webhook')) continue;
    const message = `ensemble \`${compiled.name}\` has a webhook, which this version checks and does not serve; start it from a route of your own`;
    logger.warn({ ensemble: compiled.name }, message);
  }
}
