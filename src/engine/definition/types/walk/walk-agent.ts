/** The types of an agent step: its input, its config, its routes and its output. */

import { isMap } from '../../../base/json/is-map.ts';
import type { JsonObject } from '../../../base/json/json.ts';
import type { AgentStep } from '../../../ensemble/ensemble.ts';
import type { AgentCall, AnyOperation } from '../../../operation/operation.port.ts';
import { type AnySchema, isStandardSchema } from '../../../operation/standard-schema.port.ts';
import type { Path } from '../../source/problem.ts';
import { findMisfit, refine } from '../accepts.ts';
import { COMPLETED, keyOf, Place } from '../place.ts';
import { ANY, literal, NUMBER, nullByAccident, recordOf, required, STRING, type Type, union } from '../type.ts';
import { type Agent, agentOf } from './agent-of-step.ts';
import { checkInput, neededFields } from './check-input.ts';
import { finish, guarded } from './guard.ts';
import { valueType } from './value-type.ts';
import { ALL, type At, report, type Walker } from './walker.ts';

export function walkAgent(step: AgentStep, at: At, walker: Walker): Type {
  const agent = agentOf(step, at.path, walker);
  const name = step.name ?? step.agent;
  const { behaviour } = agent;
  const guard = guarded(behaviour.condition, at, agent.at('condition'), walker);
  const output = behaviour.routes
    ? walkRoutes(agent, { ...at, place: guard.inner }, at.place, walker)
    : walkOperation(agent, step.agent, { ...at, place: guard.inner }, walker);
  // A router fails with the agent that it runs.
  const isHandled = (behaviour.routes ?? []).some(
    ({ member }) =>
      member !== undefined &&
      (walker.handled.has(member) || agentOf({ agent: member }, [], walker).behaviour.continueOnError),
  );
  const result = finish(name, output, guard, at, walker, {
    canFail: (behaviour.continueOnError ?? false) || isHandled,
    keepsOutput: behaviour.routes !== undefined,
  });
  if (behaviour.setState) {
    const after = { level: at.level, place: at.place.fork(), path: agent.at('setState') };
    after.place.setStatus(keyOf(at.level.id, name), COMPLETED);
    valueType(behaviour.setState, after, walker);
  }
  return result;
}

/** @param after - the place after the step, where the members are known */
function walkRoutes(agent: Agent, at: At, after: Place, walker: Walker): Type {
  const targets: Type[] = [];
  const outputs: Type[] = [];
  const path = agent.at('routes');
  let isOpen = true;
  for (const [i, route] of (agent.behaviour.routes ?? []).entries()) {
    const guard = guarded(route.condition, at, [...path, i, 'condition'], walker);
    if (route.default === true) isOpen = false;
    if (route.member !== undefined) {
      targets.push(literal(route.member));
      const member = agentOf({ agent: route.member }, [...path, i], walker);
      const output = walkOperation(member, route.member, { ...at, place: guard.inner }, walker);
      outputs.push(output);
      at.level.results.set(route.member, {
        output,
        keepsOutput: false,
        why: `the route to \`${route.member}\` may not be taken`,
      });
      after.setStatus(keyOf(at.level.id, route.member), ALL);
    } else if (route.prompt !== undefined) {
      targets.push(STRING);
      valueType(route.prompt, { ...at, place: guard.inner, path: [...path, i, 'prompt'] }, walker);
    }
  }
  const none = isOpen ? [nullByAccident('no route may be taken')] : [];
  return recordOf([
    ['route', required(union([NUMBER, ...none]))],
    ['target', required(union([...targets, ...none]))],
    ['output', required(union([...outputs, nullByAccident('the route may have no output')]))],
  ]);
}

function walkOperation(agent: Agent, name: string, at: At, walker: Walker): Type {
  const { behaviour } = agent;
  const operation = walker.host.operations.get(behaviour.operation ?? '');
  const input =
    behaviour.input === undefined
      ? (at.input ?? (walker.outermost.input as Type))
      : valueType(behaviour.input, { ...at, path: agent.at('input') }, walker);
  const limitKey = behaviour.concurrency?.key;
  if (limitKey !== undefined) valueType(limitKey, { ...at, path: [...agent.at('concurrency'), 'key'] }, walker);
  const config = (isMap(behaviour.config) ? behaviour.config : {}) as JsonObject;
  const readsOnlyInput = operation?.readsOnlyInput?.(config) ?? false;
  const configAt = agent.at('config');
  const needs = operation?.needsValues?.(config) ?? [];
  const configPlace = { ...at, path: configAt, data: readsOnlyInput ? input : ANY };
  valueType(config, configPlace, walker, { root: configAt, operation, needs });
  for (const call of operation?.calls?.(config) ?? []) walkCalled(call, [...configAt, ...call.path], walker);
  // What a stored config brings is not known.
  const isKnown = (behaviour.config === undefined || isMap(behaviour.config)) && !Object.hasOwn(config, '<<');
  if (isKnown) checkOperationInput(agent, name, input, schemaOf(operation?.input, config), at, walker);
  const schema = isKnown ? schemaOf(operation?.output, config) : undefined;
  const own = schema === undefined ? ANY : walker.schemas.of(schema);
  if (!behaviour.output) return own;
  const declared = walker.schemas.of(behaviour.output);
  const misfit = findMisfit(declared, own);
  if (misfit) {
    const what = misfit.path === '' ? 'it' : `\`${misfit.path}\``;
    const message = `does not fit what \`${operation?.name}\` returns: ${what} ${misfit.message}`;
    report(walker, { path: agent.at('output'), message });
  }
  // `output: {}` says that it may be anything, whatever is known without it.
  return misfit || declared.kind === 'any' ? declared : refine(own, declared);
}

/** An agent that an operation calls reads what it is called with as `input`, and no results of the flow. */
function walkCalled({ agent, input }: AgentCall, path: Path, walker: Walker): void {
  const level = { id: ++walker.levels, parent: undefined, item: undefined, results: new Map(), caught: false };
  const given = input ? walker.schemas.of(input) : ANY;
  walkOperation(agentOf({ agent }, path, walker), agent, { level, place: new Place(), path, input: given }, walker);
}

function schemaOf(schema: AnyOperation['output'], config: JsonObject): AnySchema | undefined {
  return typeof schema === 'function' && !isStandardSchema(schema) ? schema(config) : schema;
}

/** @param given - what the agent gets as its input */
function checkOperationInput(
  agent: Agent,
  name: string,
  given: Type,
  schema: AnySchema | undefined,
  at: At,
  walker: Walker,
): void {
  if (schema === undefined || at.place.dead) return;
  const type = walker.schemas.of(schema, 'input');
  const written = agent.behaviour.input !== undefined;
  const path = written ? agent.at('input') : [...at.path, 'input'];
  checkInput({ of: `agent \`${name}\``, type, needed: neededFields(type) }, given, { path, written }, walker);
}
