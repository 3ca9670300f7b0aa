/** Compiles one agent at one step: its operation and its fields. */

import { SEED_OPERATIONS } from '../model/name.ts';
import type { AnyOperation } from '../ports/operation.ts';
import { suggestName } from '../suggest-name.ts';
import { checkConfig } from './check-config.ts';
import { createFieldCompiler, type FieldCompiler } from './compile-fields.ts';
import type { CompiledAgentStep } from './compiled-ensemble.ts';
import type { Names } from './names.ts';
import { refuseSecrets } from './refuse-secrets.ts';
import type { FlowContext, Origin, ResolvedAgent } from './resolve-agent.ts';
import { retryPolicy } from './retry-policy.ts';
import { quoted } from './wording.ts';

export { issuePath } from './check-config.ts';

/** Where a step stands in the run. */
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
  const fields = compileFields(resolved, names, context);
  const { condition, input, config, setState } = fields;
  const operation = findOperation(resolved, context);
  if (!operation) return undefined;
  const configAt = resolved.at('config');
  const values = behaviour.config ?? {};
  const staticConfig = checkConfig(operation, values, config.constant, configAt.path, configAt.report);
  const { secretNames } = context.host;
  const shown = config.references.filter(({ at: [key] }) => operation.shows?.includes(key as string));
  refuseSecrets({ references: shown }, configAt.path, `what \`${operation.name}\` gives`, secretNames, configAt.report);
  context.needs.add(`operation:${operation.name}`);
  for (const need of operation.needs?.(values) ?? []) context.needs.add(need);
  const retryAt = resolved.at('retry');
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
    retry: retryPolicy(behaviour.retry, retryAt.path, retryAt.report),
    timeoutMs: behaviour.timeout,
    continueOnError: behaviour.continueOnError ?? false,
    setState: setState?.evaluate,
    takesPrompt: operation.name === 'think' && !Object.hasOwn(values, 'prompt'),
    readsState: Boolean(condition?.readsState || input?.readsState || config.readsState || setState?.readsState),
    last: place.last,
  };
}

function compileFields({ behaviour, at }: ResolvedAgent, names: Names, context: FlowContext) {
  const compile = <T>(field: keyof typeof behaviour, with_: (fields: FieldCompiler, origin: Origin) => T) => {
    if (behaviour[field] === undefined) return undefined;
    const origin = at(field);
    return with_(createFieldCompiler(names, context.host, origin.report), origin);
  };
  const condition = compile('condition', (fields, { path }) => fields.guard(behaviour.condition as string, path));
  const input = compile('input', (fields, { path }) => fields.value(behaviour.input ?? null, path));
  const config = compile('config', (fields, { path }) => fields.value(behaviour.config ?? {}, path));
  const setState = compile('setState', (fields, { path, report }) => {
    const compiled = fields.value(behaviour.setState ?? {}, path);
    if (!context.hasState) {
      report({ path, key: true, message: '`setState` needs `state: { initial: { ... } }` on the ensemble' });
    }
    refuseSecrets(compiled, path, 'the state', context.host.secretNames, report);
    return compiled;
  });
  return { condition, input, config: config ?? NO_CONFIG, setState };
}

const NO_CONFIG = { evaluate: () => ({}), constant: true, readsState: false, references: [] };

function findOperation({ behaviour, broken, at, name }: ResolvedAgent, context: FlowContext): AnyOperation | undefined {
  const { host } = context;
  const { path, report } = at('operation');
  if (behaviour.operation === undefined) {
    const excused =
      broken || context.dropped([...path.slice(0, -1), 'routes']) || context.dropped([...path.slice(0, -1), 'type']);
    if (!excused) report({ path, message: `agent ${quoted(name)} needs an \`operation\` (or \`routes\`)` });
    return undefined;
  }
  const operation = host.operations.get(behaviour.operation);
  if (operation) return operation;
  if ((SEED_OPERATIONS as readonly string[]).includes(behaviour.operation)) {
    if (host.lenient) return undefined;
    const option = `\`operations: [defineOperation({ name: '${behaviour.operation}', ... })]\``;
    const message = `operation \`${behaviour.operation}\` is not part of this version; hand one to createOrchestrator with ${option}`;
    report({ path, notConfigured: true, message });
    return undefined;
  }
  const suggestion = suggestName(behaviour.operation, [...host.operations.keys(), ...SEED_OPERATIONS]);
  if (host.lenient && suggestion === undefined) return undefined;
  report({
    path,
    message: `there is no operation ${quoted(behaviour.operation)}; use a built-in one, or hand it to createOrchestrator in \`operations\``,
    suggestion,
  });
  return undefined;
}
