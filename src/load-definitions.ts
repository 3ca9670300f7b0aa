/** Loads everything that the host's code defines, once, when an orchestrator is created. */

import type { EnsembleSource } from './define.ts';
import { issuePath } from './engine/definition/compile-agent.ts';
import { compileEnsemble, compileSingleAgent } from './engine/definition/compile-ensemble.ts';
import type { CompileHost } from './engine/definition/compile-host.ts';
import type { CompiledEnsemble } from './engine/definition/compiled-ensemble.ts';
import type { DefinitionIssue } from './engine/definition/definition-issue.ts';
import { invalidDefinition, parseDefinition, readAgent } from './engine/definition/parse-ensemble.ts';
import { type Problem, toIssues } from './engine/definition/problem.ts';
import { messageOf, OrchestratorError } from './engine/errors.ts';
import type { OutputCheck } from './engine/execution/run-ensemble.ts';
import { copyJson, type Json } from './engine/json.ts';
import type { AgentDefinition } from './engine/model/ensemble.ts';
import type { StandardResult, StandardSchema } from './engine/ports/standard-schema.ts';

export interface LoadedEnsemble {
  readonly compiled: CompiledEnsemble;
  readonly checkOutput: OutputCheck | undefined;
}

/**
 * Parses and compiles one definition.
 *
 * @throws INVALID_DEFINITION with every problem; NOT_CONFIGURED when the definition is right and the host lacks something
 */
export function loadEnsemble(source: EnsembleSource, host: CompileHost): LoadedEnsemble {
  const { definition, outputSchema } = takeOutputSchema(source);
  const parsed = parseDefinition(definition);
  const { compiled, problems } = compileEnsemble(parsed, host);
  refuseProblems(problems, toIssues(problems, parsed.map), parsed.definition.name);
  return { compiled, checkOutput: outputSchema && outputCheck(outputSchema) };
}

/** Every problem of one definition, without throwing: what `ensemble validate` prints. */
export function checkEnsemble(source: EnsembleSource, host: CompileHost, file?: string): readonly DefinitionIssue[] {
  let parsed: ReturnType<typeof parseDefinition>;
  try {
    parsed = parseDefinition(takeOutputSchema(source).definition);
  } catch (error) {
    const issues = (error as OrchestratorError).details?.issues as readonly DefinitionIssue[] | undefined;
    if (!issues) throw error;
    return issues.map((issue) => (file === undefined ? issue : { ...issue, source: file }));
  }
  return toIssues(compileEnsemble(parsed, host).problems, parsed.map, file);
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
  return { compiled, checkOutput: undefined };
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
