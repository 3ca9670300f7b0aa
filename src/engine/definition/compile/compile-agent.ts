/** Compiles the agent of one step: its operation, its fields and its retries. */

import { OrchestratorError } from '../../base/errors.ts';
import { isMap } from '../../base/json/is-map.ts';
import { formatPath, type JsonObject } from '../../base/json/json.ts';
import { suggestName } from '../../base/suggest-name.ts';
import { toMs } from '../../base/time/duration.ts';
import { oneOf, quoted } from '../../base/wording.ts';
import type { CompiledAgentStep, CompiledCall } from '../../compiled/compiled-ensemble.ts';
import { ExpressionScope } from '../../compiled/expression-scope.ts';
import type { AgentBehaviour } from '../../ensemble/ensemble.ts';
import { SPECIFIED_OPERATIONS } from '../../ensemble/name.ts';
import { schemaIssues } from '../../json-schema/check-by-schema.ts';
import { compileJsonSchema } from '../../json-schema/compile-json-schema.ts';
import type { ValueCheck } from '../../json-schema/rule.ts';
import type { AgentCall, AnyOperation } from '../../operation/operation.port.ts';
import type { Report } from '../forms/check-shape.ts';
import type { Path } from '../source/problem.ts';
import { compileAgentLimit } from './compile-limits.ts';
import { compileRetry } from './compile-retry.ts';
import { checkConfig } from './config/check-config.ts';
import { type CompiledField, createFieldCompiler, type FieldCompiler } from './config/compile-fields.ts';
import {
  type ConfigWithoutReferences,
  checkReferences,
  compileReferences,
  componentKeys,
  type ReferenceCompiler,
  takeReferences,
  UNKNOWN,
} from './config/compile-references.ts';
import type { ConfigTexts, TemplateData } from './config/compile-texts.ts';
import { refuseSecrets, secretIn, secretPaths } from './config/refuse-secrets.ts';
import { warnConfigBraces } from './names/double-braces.ts';
import { createNames, type Names } from './names/names.ts';
import { type FlowContext, type Origin, type ResolvedAgent, resolveAgent } from './resolve-agent.ts';
import type { CompileHost } from './triggers/compile-host.ts';

/** The place of a step in a run. */
export interface AgentPlace {
  readonly key: string;
  readonly name: string;
  readonly last: boolean;
}

/** @param resolved - an agent with an operation (a router is compiled with the flow) */
export function compileAgentStep(
  resolved: ResolvedAgent,
  place: AgentPlace,
  names: Names,
  context: FlowContext,
): CompiledAgentStep | undefined {
  const { behaviour } = resolved;
  const operation = findOperation(resolved, context);
  const { values, references } = takeReferences(behaviour.config ?? {}, operation?.texts ?? {});
  const known = { ...resolved, behaviour: { ...behaviour, ...(behaviour.config && { config: values }) } };
  const fields = compileFields(known, place.name, names, context, operation);
  const { condition, input, config, setState, templates } = fields;
  if (!operation) return undefined;
  const configAt = resolved.at('config');
  const { secretNames, lenient } = context.host;
  const report: Report = (problem) => {
    if (!lenient || !problem.notConfigured) configAt.report(problem);
  };
  const takesPrompt = operation.name === 'think' && !Object.hasOwn(values, 'prompt');
  const hasPrompt = references.some(({ path }) => formatPath(path) === 'prompt');
  const takesModel = operation.name === 'think' && (hasPrompt || (takesPrompt && context.prompts.hasReference));
  const constant = references.length === 0 && !takesModel ? evaluateConstant(config) : undefined;
  // The metadata of a stored prompt may name the model.
  const checked = takesModel ? { model: UNKNOWN, ...values } : values;
  const staticConfig = checkConfig(operation, checked, references, constant, configAt.path, report);
  const shown = config.references.filter(({ at: [key] }) => operation.shows?.includes(key as string));
  refuseSecrets({ references: shown }, configAt.path, `what \`${operation.name}\` gives`, secretNames, configAt.report);
  context.needs.add(`operation:${operation.name}`);
  for (const need of operation.needs?.(values) ?? []) context.needs.add(need);
  reportNoEffect(resolved, operation, references);
  const readsOnlyInput = operation.readsOnlyInput?.(values) ?? true;
  const retryAt = resolved.at('retry');
  if (takesPrompt) context.prompts.missing.push(() => report({ path: configAt.path, message: NEEDS_PROMPT }));
  return {
    kind: 'agent',
    key: place.key,
    name: place.name,
    slot: names.declare(place.name),
    condition,
    operation,
    staticConfig,
    config: config.evaluate,
    templates,
    input: input?.evaluate,
    checkOutput: compileOutputCheck(resolved),
    retry: compileRetry(behaviour.retry, retryAt.path, retryAt.report),
    limit: limitOf(resolved, fields.limitKey, context),
    timeoutMs: behaviour.timeout === undefined ? undefined : toMs(behaviour.timeout),
    continueOnError: behaviour.continueOnError ?? false,
    setState: setState?.evaluate,
    calls: compileCalls(resolved, operation.calls?.(values) ?? [], context),
    takesPrompt,
    ...compileWritten(
      references,
      { ...resolved, operation, readsOnlyInput, takesPrompt, values },
      names,
      context,
      configAt,
    ),
    secrets: [
      ...secretPaths(config, secretNames).map((at) => ['config', ...at]),
      ...(input ? secretPaths(input, secretNames).map((at) => ['input', ...at]) : []),
    ],
    readsState: Boolean(condition?.readsState || input?.readsState || config.readsState || setState?.readsState),
    last: place.last,
  };
}

function compileOutputCheck({ behaviour: { output }, at }: ResolvedAgent): ValueCheck | undefined {
  if (output === undefined) return undefined;
  const { path, report } = at('output');
  const problems = schemaIssues(output, path);
  for (const problem of problems) report(problem);
  return problems.length === 0 ? compileJsonSchema(output, 'the output') : undefined;
}

/** Reports fields that are written and that nothing reads. */
function reportNoEffect(
  resolved: ResolvedAgent,
  operation: AnyOperation,
  references: ConfigWithoutReferences['references'],
): void {
  const { input, fromComponent } = resolved.behaviour;
  // A template of a component may read it.
  if (input !== undefined && operation.ignoresInput && references.length === 0) {
    const { path, report } = resolved.at('input');
    const message = `has no effect: ${quoted(operation.name)} does not read it. ${CONFIG_RULE}`;
    report({ path, key: true, message, warning: true });
  }
  if (fromComponent && !references.some(({ path }) => path.length === 0)) {
    const { path, report } = resolved.at('fromComponent');
    report({ path, key: true, message: 'has no effect: the `config` has no `config://`, as a whole or under `<<`' });
  }
}

/** Compiles the references of a config: each is text that may read variables and results. */
function compileWritten(
  references: ConfigWithoutReferences['references'],
  agent: Pick<ResolvedAgent, 'name' | 'behaviour'> & {
    readonly operation: AnyOperation;
    readonly readsOnlyInput: boolean;
    readonly takesPrompt: boolean;
    readonly values: JsonObject;
  },
  names: Names,
  { host, components, inputFields }: FlowContext,
  { path, report }: Origin,
): Pick<CompiledAgentStep, 'references' | 'routed'> {
  checkReferences(references, path, report);
  const fields = createFieldCompiler(names, host, report);
  const { input, fromComponent } = agent.behaviour;
  const keys = componentKeys(fromComponent, agent.values, input);
  const known = input === undefined ? inputFields : isMap(input) ? Object.keys(input) : undefined;
  for (const { text, at } of references)
    if (!text.includes('${')) {
      const use = { reference: text, agent: agent.name, path: [...path, ...at] };
      components.push({ ...use, fields: agent.readsOnlyInput ? known : undefined });
    }
  const all: ReferenceCompiler['all'] = references.map(({ text, path: inner, at }) => {
    const { evaluate } = fields.value(text, [...path, ...at]);
    return { path: inner, evaluate };
  });
  const compile = (paths: typeof all) =>
    compileReferences({ ...agent, keys, functions: host.functions, templates: host.templates, all: paths });
  return {
    references: all.length === 0 ? undefined : compile(all),
    routed: agent.takesPrompt ? compile([...all, { path: ['prompt'], evaluate: undefined }]) : undefined,
  };
}

const CONFIG_RULE =
  "A `config` reads the execution's input as `input`: write the expression in the step's own `config`, or put a script (`operation: code`) before it";

/** An `input` that a config reads, and that only the step's own `input` has. */
function explainOwnInput(written: AgentBehaviour['input'], report: Report): Report {
  const names = isMap(written) ? Object.keys(written) : [];
  return (problem) => {
    const isOwn = names.some((name) => problem.message.startsWith(`input ${quoted(name)} is not declared`));
    report(isOwn ? { ...problem, message: `${problem.message}. ${CONFIG_RULE}` } : problem);
  };
}

const NEEDS_PROMPT = 'needs a `prompt`: no router of this definition has one for it';

/** Compiles the agents that an operation may call. Such an agent reads what it is called with as `input`, and no results of the flow. */
function compileCalls(
  caller: ResolvedAgent,
  calls: readonly AgentCall[],
  context: FlowContext,
): CompiledAgentStep['calls'] {
  const compiled = new Map<string, CompiledCall>();
  if (calls.length === 0) return compiled;
  const { path, report } = caller.at('config');
  const callers = [...context.callers, caller.name];
  for (const { agent, path: inner } of calls) {
    if (compiled.has(agent)) continue;
    const at = [...path, ...inner];
    if (callers.includes(agent)) {
      const message = `agent ${quoted(agent)} can't be called here, because that leads back to it: ${callers.join(' -> ')}`;
      report({ path: at, message });
      continue;
    }
    const resolved = resolveAgent({ agent }, at, { path: at, report }, context);
    if (resolved.behaviour.routes) {
      report({
        path: at,
        message: `agent ${quoted(agent)} has \`routes\`; only an agent with an \`operation\` can be called`,
      });
      continue;
    }
    if (resolved.broken) continue;
    const names = createNames(context.namesOfCall(agent));
    const step = compileAgentStep(resolved, { key: 'flow[0]', name: agent, last: false }, names, {
      ...context,
      callers,
    });
    if (!step) continue;
    const flow = { steps: [step], parent: undefined, guardedAfter: [new Set<never>()] };
    compiled.set(agent, { flow, slots: names.size, description: resolved.behaviour.description });
  }
  return compiled;
}

function limitOf(
  { name, behaviour, at }: ResolvedAgent,
  key: CompiledField['evaluate'] | undefined,
  context: FlowContext,
) {
  const { concurrency } = behaviour;
  if (!concurrency) return undefined;
  return { of: compileAgentLimit(concurrency, `${context.ensemble}/${name}`, at('concurrency'), context), key };
}

function compileFields(
  { behaviour, at }: ResolvedAgent,
  name: string,
  names: Names,
  context: FlowContext,
  operation: AnyOperation | undefined,
) {
  const texts: ConfigTexts['texts'] = operation?.texts ?? {};
  const compile = <T>(field: keyof typeof behaviour, compileField: (fields: FieldCompiler, origin: Origin) => T) => {
    if (behaviour[field] === undefined) return undefined;
    const origin = at(field);
    return compileField(createFieldCompiler(names, context.host, origin.report), origin);
  };
  const condition = compile('condition', (fields, { path }) => fields.guard(behaviour.condition as string, path));
  const input = compile('input', (fields, { path }) => fields.value(behaviour.input ?? null, path));
  const templates: ConfigTexts['templates'] = new Map();
  const config = compile('config', (_, { path, report: reportPlain }) => {
    const report = explainOwnInput(behaviour.input, reportPlain);
    const fields = createFieldCompiler(names, context.host, report);
    const values = (behaviour.config ?? {}) as JsonObject;
    warnConfigBraces(behaviour.operation ?? '', values, texts, path, report);
    const data = templateData(behaviour, input, names, context);
    const needs = operation?.needsValues?.(values) ?? [];
    return fields.value(values, path, { templates: true, texts: { texts, data, needs, templates } });
  });
  const key = behaviour.concurrency?.key;
  const limitKey = compile('concurrency', (fields, { path }) =>
    key === undefined ? undefined : fields.value(key, [...path, 'key']).evaluate,
  );
  // `setState` is evaluated after the agent, and may read its output.
  names.reach(name);
  const setState = compile('setState', (fields, { path, report }) => {
    const compiled = fields.value(behaviour.setState ?? {}, path);
    if (!context.hasState) {
      report({ path, key: true, message: '`setState` needs `state: { initial: { ... } }` on the ensemble' });
    }
    refuseSecrets(compiled, path, 'the state', context.host.secretNames, report);
    return compiled;
  });
  return { condition, input, config: config ?? NO_CONFIG, limitKey, setState, templates };
}

/** What the templates of an agent read: the fields of its input. */
function templateData(
  { operation, config = {}, input: written }: AgentBehaviour,
  input: CompiledField | undefined,
  names: Names,
  { host: { operations, secretNames } }: FlowContext,
): TemplateData {
  const readsOnlyInput = operations.get(operation ?? '')?.readsOnlyInput?.(config as JsonObject) ?? false;
  return {
    has: (name) => isMap(written) && Object.hasOwn(written, name),
    mayHave(name) {
      if (!readsOnlyInput) return true;
      // Without an `input` of its own, the agent has the input of the execution.
      return written === undefined ? !('problem' in names.resolve('input', [name])) : !isMap(written);
    },
    secretOf(name) {
      const references = input?.references.filter(({ at }) => at.length === 0 || at[0] === name) ?? [];
      return secretIn({ references }, secretNames);
    },
  };
}

/** The config when all its expressions are constant; undefined when it is not, or can't be evaluated. */
function evaluateConstant({
  constant,
  evaluate,
}: Pick<CompiledField, 'constant' | 'evaluate'>): JsonObject | undefined {
  if (!constant) return undefined;
  const nothing = { seed: '', input: null, env: {}, headers: {}, trigger: {}, execution: {}, createdAt: 0 };
  try {
    return evaluate(new ExpressionScope(nothing, undefined, 0)) as JsonObject;
  } catch (error) {
    // The attempt fails with the same error.
    if (error instanceof OrchestratorError) return undefined;
    throw error;
  }
}

const NO_CONFIG = { evaluate: () => ({}), constant: true, readsState: false, references: [] };

function findOperation({ behaviour, broken, at, name }: ResolvedAgent, context: FlowContext): AnyOperation | undefined {
  const { host } = context;
  const { path, report } = at('operation');
  if (behaviour.operation === undefined) {
    const isReported =
      broken || context.dropped([...path.slice(0, -1), 'routes']) || context.dropped([...path.slice(0, -1), 'type']);
    if (!isReported) report({ path, message: `agent ${quoted(name)} needs an \`operation\` (or \`routes\`)` });
    return undefined;
  }
  const operation = host.operations.get(behaviour.operation);
  if (operation) return operation;
  reportUnknownOperation(behaviour.operation, path, report, host);
  return undefined;
}

/** What other systems call the operations. */
const OTHER_NAMES: Readonly<Record<(typeof SPECIFIED_OPERATIONS)[number], readonly string[]>> = {
  api: ['http', 'https', 'fetch', 'request', 'rest', 'webhook', 'graphql'],
  code: [
    'function',
    'script',
    'javascript',
    'js',
    'typescript',
    'ts',
    'node',
    'lambda',
    'run',
    'exec',
    'shell',
    'bash',
  ],
  think: ['llm', 'ai', 'gpt', 'chat', 'prompt', 'model', 'openai', 'anthropic', 'claude'],
  storage: ['db', 'kv', 'database', 'data', 'cache', 'store', 'redis', 'r2', 's3', 'd1', 'sql'],
  tools: ['mcp', 'tool'],
  email: ['mail', 'smtp'],
  sms: ['text', 'twilio'],
  pdf: [],
};
const MAX_OPERATIONS = 20;

function reportUnknownOperation(name: string, path: Path, report: Report, { operations, lenient }: CompileHost): void {
  const similar = suggestName(name, [...operations.keys(), ...SPECIFIED_OPERATIONS]);
  const meant = SPECIFIED_OPERATIONS.find((one) => OTHER_NAMES[one].includes(name.toLowerCase()));
  const suggestion = meant ?? similar;
  // A host that is not known may have any operation.
  if (lenient && suggestion === undefined) return;
  const specified = SPECIFIED_OPERATIONS.find((one) => one === name) ?? meant;
  if (specified !== undefined && !operations.has(specified)) {
    const called = specified === name ? '' : ` (here: ${quoted(name)})`;
    const message = `the operation ${quoted(specified)}${called} is not among those of this Worker; add \`${specified}()\` of ensemble-orchestrator/workers to \`operations\``;
    report({ path, message, suggestion: specified === name ? undefined : specified });
    return;
  }
  const known = oneOf([...operations.keys()].slice(0, MAX_OPERATIONS), 'and');
  const message = `there is no operation ${quoted(name)}; the operations are ${known}; the option \`operations\` adds your own`;
  report({ path, message, suggestion, ...(lenient && similar === undefined && { warning: true }) });
}
