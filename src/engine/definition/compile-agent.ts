/** Compiles one agent at one step: finds its definition, its operation, and compiles its fields. */

import type * as z from 'zod';
import type { Json, JsonObject } from '../json.ts';
import type { AgentBehaviour, AgentStep, RetryDefinition } from '../model/ensemble.ts';
import { SEED_OPERATIONS } from '../model/name.ts';
import type { AnyOperation, ConfigIssue } from '../ports/operation.ts';
import type { StandardIssue } from '../ports/standard-schema.ts';
import { explainIssue, type Report } from './check-shape.ts';
import type { CompileHost } from './compile-host.ts';
import type { CompiledField, FieldCompiler } from './compile-fields.ts';
import type { CompiledAgentStep, RetryPolicy } from './compiled-ensemble.ts';
import type { Names } from './names.ts';
import type { Path } from './problem.ts';
import { suggestName } from '../suggest-name.ts';

/** An agent as one step sees it, and where each of its fields stands in the source. */
export interface ResolvedAgent {
  readonly name: string;
  readonly behaviour: AgentBehaviour;
  at(field: keyof AgentBehaviour): Path;
}

/** Everything that compiling a flow needs beside the flow. */
export interface FlowContext {
  readonly host: CompileHost;
  readonly report: Report;
  readonly hasState: boolean;
  /** The author's path of a path in the definition. */
  readonly sourceOf: (path: Path) => Path;
  /** Declared agents by name, with their place. */
  readonly agents: ReadonlyMap<string, { readonly behaviour: AgentBehaviour; readonly path: Path }>;
  readonly brokenNames: ReadonlySet<string>;
  /** Filled while compiling. */
  readonly usedAgents: Set<string>;
  readonly needs: Set<string>;
}

const STEP_FIELDS = ['input', 'condition', 'retry', 'timeout', 'continueOnError', 'setState'] as const;

/** Finds what a step's agent does: defined in place, declared in the ensemble, or shared. */
export function resolveAgent(
  step: AgentStep,
  path: Path,
  context: FlowContext,
  agentPath: Path = context.sourceOf([...path, 'agent']),
): ResolvedAgent | undefined {
  const { agent: name } = step;
  const declared = context.agents.get(name);
  const shared = context.host.sharedAgents.get(name);
  if (declared || shared) context.usedAgents.add(name);
  if (step.operation !== undefined || step.routes !== undefined) {
    if (declared) {
      context.report({ path: agentPath, message: `agent \`${name}\` is declared in \`agents\` and defined here again; keep one of them` });
    }
    return { name, behaviour: step, at: (field) => context.sourceOf([...path, field]) };
  }
  if (step.config !== undefined) {
    const message = 'belongs to an agent: set it where the agent is declared, or give `operation` beside it';
    context.report({ path: context.sourceOf([...path, 'config']), key: true, message });
  }
  const base = declared?.behaviour ?? shared;
  if (!base) {
    if (context.brokenNames.has(name)) return undefined;
    const known = [...context.agents.keys(), ...context.host.sharedAgents.keys()];
    context.report({
      path: agentPath,
      message: `there is no agent \`${name}\`; declare it in \`agents\` or give its \`operation\` here`,
      suggestion: suggestName(name, known),
    });
    return undefined;
  }
  const own = new Set<string>(STEP_FIELDS.filter((field) => step[field] !== undefined));
  const behaviour: AgentBehaviour = { ...base, ...Object.fromEntries([...own].map((field) => [field, step[field as 'input']])) };
  return {
    name,
    behaviour,
    at(field) {
      if (own.has(field)) return context.sourceOf([...path, field]);
      // A shared agent stands in another source: its problems are shown at the step that uses it.
      return declared ? context.sourceOf([...declared.path, field]) : agentPath;
    },
  };
}

/** @param resolved - an agent with an operation (a router is compiled with the flow) */
export function compileAgentStep(
  resolved: ResolvedAgent,
  place: { readonly key: string; readonly name: string; readonly last: boolean; readonly path: Path },
  names: Names,
  fields: FieldCompiler,
  context: FlowContext,
): CompiledAgentStep | undefined {
  const { behaviour, at } = resolved;
  const { report } = context;
  const condition = behaviour.condition === undefined ? undefined : fields.guard(behaviour.condition, at('condition'));
  const input = behaviour.input === undefined ? undefined : fields.value(behaviour.input, at('input'));
  const config = fields.value(behaviour.config ?? {}, at('config'));
  const setState = behaviour.setState === undefined ? undefined : fields.value(behaviour.setState, at('setState'));
  if (setState) {
    if (!context.hasState) report({ path: at('setState'), key: true, message: 'needs `state: { initial: { ... } }` on the ensemble' });
    refuseSecrets(setState, at('setState'), 'the state', context);
  }
  const operation = findOperation(resolved, place.path, context);
  if (!operation) return undefined;
  const staticConfig = checkConfig(operation, behaviour.config ?? {}, config.constant, at('config'), context);
  context.needs.add(`operation:${operation.name}`);
  for (const need of operation.needs?.(behaviour.config ?? {}) ?? []) context.needs.add(need);
  return {
    kind: 'agent',
    key: place.key,
    name: place.name,
    slot: names.declare(place.name),
    condition,
    operation,
    staticConfig,
    config: config.evaluate,
    input: input?.evaluate,
    retry: retryPolicy(behaviour.retry, at('retry'), report),
    timeoutMs: behaviour.timeout,
    continueOnError: behaviour.continueOnError ?? false,
    setState: setState?.evaluate,
    takesPrompt: operation.name === 'think' && !Object.hasOwn(behaviour.config ?? {}, 'prompt'),
    readsState: Boolean(condition?.readsState || input?.readsState || config.readsState || setState?.readsState),
    last: place.last,
  };
}

function findOperation(resolved: ResolvedAgent, path: Path, context: FlowContext): AnyOperation | undefined {
  const { behaviour, at, name } = resolved;
  const { host, report } = context;
  if (behaviour.operation === undefined) {
    report({ path, message: `agent \`${name}\` needs an \`operation\` (or \`routes\`)` });
    return undefined;
  }
  const operation = host.operations.get(behaviour.operation);
  if (operation) return operation;
  if ((SEED_OPERATIONS as readonly string[]).includes(behaviour.operation)) {
    if (host.lenient) return undefined;
    const option = `\`operations: [defineOperation({ name: '${behaviour.operation}', ... })]\``;
    report({
      path: at('operation'),
      notConfigured: true,
      message: `operation \`${behaviour.operation}\` is not part of this version; hand one to createOrchestrator with ${option}`,
    });
    return undefined;
  }
  const suggestion = suggestName(behaviour.operation, [...host.operations.keys(), ...SEED_OPERATIONS]);
  if (!host.lenient || suggestion !== undefined) {
    report({ path: at('operation'), message: `there is no operation \`${behaviour.operation}\``, suggestion });
  }
  return undefined;
}

/** The checked config when it holds no expression; otherwise only what can be said of it before it is evaluated. */
function checkConfig(operation: AnyOperation, config: JsonObject, constant: boolean, path: Path, context: FlowContext): JsonObject | undefined {
  for (const issue of operation.check?.(config) ?? []) reportConfig(issue, path, context.report);
  const result = operation.config?.['~standard'].validate(config);
  if (result instanceof Promise) {
    throw new TypeError(`operation \`${operation.name}\`: its config schema must check without waiting`);
  }
  for (const issue of result?.issues ?? []) {
    const inner = issuePath(issue);
    // A text that will be evaluated may turn into what the schema asks for.
    if (!constant && holdsExpression(config, inner)) continue;
    if (isZodIssue(issue)) for (const problem of explainIssue(issue, config, path)) context.report(problem);
    else reportConfig({ path: inner, message: issue.message }, path, context.report);
  }
  if (!constant || result?.issues) return undefined;
  return deepFreeze(structuredClone((result?.value ?? config) as JsonObject));
}

function reportConfig(issue: ConfigIssue, path: Path, report: Report): void {
  report({ path: [...path, ...issue.path], message: issue.message, suggestion: issue.suggestion });
}

function isZodIssue(issue: StandardIssue): issue is StandardIssue & z.core.$ZodIssue {
  return typeof (issue as { code?: unknown }).code === 'string';
}

export function issuePath(issue: StandardIssue): (string | number)[] {
  return (issue.path ?? []).map((part) => {
    const key = typeof part === 'object' ? part.key : part;
    return typeof key === 'symbol' ? String(key) : key;
  });
}

function holdsExpression(config: JsonObject, path: readonly (string | number)[]): boolean {
  let value: Json | undefined = config;
  for (const part of path) {
    if (typeof value === 'string') break;
    value = (value as JsonObject | null)?.[part] as Json | undefined;
  }
  return value !== undefined && JSON.stringify(value).includes('${') && path.length > 0;
}

function deepFreeze<T extends Json>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const inner of Object.values(value)) deepFreeze(inner as Json);
    Object.freeze(value);
  }
  return value;
}

/** What is kept and shown must hold no secret: one that is read straight into it is refused. */
export function refuseSecrets(field: CompiledField, path: Path, where: string, context: Pick<FlowContext, 'host' | 'report'>): void {
  for (const reference of field.references) {
    const [variable] = reference.path;
    if (reference.name !== 'env' || typeof variable !== 'string' || !context.host.secretNames.has(variable)) continue;
    context.report({
      path: [...path, ...reference.at],
      offset: reference.index,
      length: reference.length,
      message: `\`env.${variable}\` is a secret and may not flow into ${where}, which is stored and shown`,
    });
  }
}

const MAX_BACKOFF_MS = 60_000;

function retryPolicy(retry: RetryDefinition | undefined, path: Path, report: Report): RetryPolicy {
  if (!retry) return { maxAttempts: 1, delayAfter: () => 0 };
  const { maxAttempts, backoff = 'exponential', delay = 1000 } = retry;
  if (backoff === 'exponential') {
    if (retry.delay !== undefined) {
      report({ path: [...path, 'delay'], key: true, message: 'is for `backoff: fixed` and `backoff: linear`; `exponential` waits 1, 2, 4 s' });
    }
    return { maxAttempts, delayAfter: (attempt) => Math.min(MAX_BACKOFF_MS, 1000 * 2 ** (attempt - 1)) };
  }
  return { maxAttempts, delayAfter: backoff === 'fixed' ? () => delay : (attempt) => delay * attempt };
}
