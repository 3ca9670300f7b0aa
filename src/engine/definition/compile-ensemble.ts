/** Definition to frozen `CompiledEnsemble`: expressions to closures, names to slots, agents to operations. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { canonicalJson, type Json, type JsonObject } from '../json.ts';
import type { AgentBehaviour, AgentDefinition, EnsembleDefinition } from '../model/ensemble.ts';
import { compileInputCheck, declaredInputs } from './check-input.ts';
import { checkNotReserved, type Report } from './check-shape.ts';
import { checkTriggers } from './check-triggers.ts';
import { type FlowContext, refuseSecrets, resolveAgent, compileAgentStep } from './compile-agent.ts';
import { createFieldCompiler } from './compile-fields.ts';
import { compileFlow } from './compile-flow.ts';
import type { CompileHost } from './compile-host.ts';
import type { CompiledEnsemble } from './compiled-ensemble.ts';
import { createNames } from './names.ts';
import type { ParsedEnsemble } from './parse-ensemble.ts';
import type { Path, Problem } from './problem.ts';

export interface CompileResult {
  /** Usable only when there are no problems. */
  readonly compiled: CompiledEnsemble;
  /** Those of the parser too, each once. */
  readonly problems: readonly Problem[];
}

/** @param parsed - what `parseDefinition` gave, with or without problems: what can be checked is checked */
export function compileEnsemble(parsed: ParsedEnsemble, host: CompileHost): CompileResult {
  const { definition, sourceOf } = parsed;
  const problems = new Map<string, Problem>();
  const report: Report = (problem) => {
    const key = `${JSON.stringify(problem.path)}|${problem.offset ?? ''}|${problem.message}`;
    if (!problems.has(key)) problems.set(key, problem);
  };
  for (const problem of parsed.problems) report(problem);

  const agents = declareAgents(definition, sourceOf, report);
  const known = {
    env: host.env,
    anyEnv: host.lenient ?? false,
    inputs: declaredInputs(definition.inputs),
    hasState: definition.state !== undefined,
    agents: new Set([...agents.keys(), ...host.sharedAgents.keys(), ...parsed.brokenNames]),
  };
  const context: FlowContext = {
    host,
    report,
    hasState: known.hasState,
    sourceOf,
    agents,
    brokenNames: parsed.brokenNames,
    usedAgents: new Set(),
    needs: new Set(),
  };
  const names = createNames(known);
  const flow = compileFlow(definition.flow, names, context);
  checkUnusedAgents(context, known);
  checkTriggers(definition, host, (problem) => report({ ...problem, path: sourceOf(problem.path) }));
  for (const [i] of (definition.notifications ?? []).entries()) {
    report({ path: ['notifications', i], notConfigured: true, message: 'notifications are not sent by this version; use `orchestrator.on(event, listener)`' });
  }

  const fields = createFieldCompiler(names, host, report);
  const outputsPath = sourceOf(['outputs']);
  const outputs = fields.value(definition.outputs ?? {}, outputsPath);
  refuseSecrets(outputs, outputsPath, 'the outputs', context);

  const compiled: CompiledEnsemble = {
    name: definition.name,
    definition,
    stored: storedDefinition(definition, context),
    checkInput: compileInputCheck(definition.inputs, sourceOf(['inputs']), report),
    flow,
    slots: names.size,
    output: outputs.evaluate,
    initialState: definition.state?.initial,
    timeoutMs: definition.timeout,
    durability: definition.execution?.durability ?? 'step',
  };
  return { compiled, problems: [...problems.values()] };
}

/** An ensemble of one step that runs a shared agent: its input is the agent's, its output the agent's output. */
export function compileSingleAgent(agent: AgentDefinition, host: CompileHost): CompileResult {
  const definition: EnsembleDefinition = { name: agent.name, flow: [{ agent: agent.name }], agents: [agent] };
  const parsed: ParsedEnsemble = { definition, problems: [], map: undefined, brokenNames: new Set(), sourceOf: agentPath };
  const { compiled, problems } = compileEnsemble(parsed, host);
  const single: CompiledEnsemble = {
    ...compiled,
    name: `agent:${agent.name}`,
    output: (scope) => scope.results[0]?.output ?? null,
  };
  return { compiled: single, problems };
}

// In the source of a shared agent, its fields stand at the top.
function agentPath(path: Path): Path {
  return path[0] === 'agents' ? path.slice(2) : [];
}

function declareAgents(definition: EnsembleDefinition, sourceOf: (path: Path) => Path, report: Report) {
  const agents = new Map<string, { readonly behaviour: AgentBehaviour; readonly path: Path }>();
  definition.agents?.forEach((agent, i) => {
    const path = ['agents', i];
    const namePath = sourceOf([...path, 'name']);
    if (!checkNotReserved(agent.name, namePath, report)) return;
    if (agents.has(agent.name)) report({ path: namePath, message: `agent \`${agent.name}\` is declared twice` });
    else agents.set(agent.name, { behaviour: agent, path });
  });
  return agents;
}

// An agent that no step names is checked all the same: its author will use it next.
function checkUnusedAgents(context: FlowContext, known: Parameters<typeof createNames>[0]): void {
  for (const [name, { behaviour, path }] of context.agents) {
    if (context.usedAgents.has(name) || behaviour.routes) continue;
    const names = createNames(known).nest('item');
    const aside: FlowContext = { ...context, usedAgents: new Set(), needs: new Set() };
    const resolved = resolveAgent({ agent: name }, path, aside);
    const place = { key: '', name, last: false, path: context.sourceOf(path) };
    if (resolved) compileAgentStep(resolved, place, names, createFieldCompiler(names, context.host, context.report), aside);
  }
}

/** The definition with the shared agents that it uses, so that it can be run again as it is now; and its hash. */
function storedDefinition(definition: EnsembleDefinition, context: FlowContext): CompiledEnsemble['stored'] {
  const used = [...context.usedAgents].filter((name) => !context.agents.has(name));
  const shared = used.flatMap((name) => context.host.sharedAgents.get(name) ?? []);
  const whole = { ...definition, ...(shared.length > 0 ? { agents: [...(definition.agents ?? []), ...shared] } : {}) };
  const json = whole as unknown as JsonObject;
  const version = bytesToHex(sha256(utf8ToBytes(canonicalJson(json as Json)))).slice(0, 32);
  return { version, definition: json, needs: [...context.needs].sort() };
}
