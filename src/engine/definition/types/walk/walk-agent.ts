/** The types of an agent step: its input, its config, its routes and its output. */

import type { JsonObject } from '../../../base/json/json.ts';
import type { AgentStep } from '../../../ensemble/ensemble.ts';
import { isMap } from '../../../json-schema/check-json-schema.ts';
import { COMPLETED, keyOf, type Place } from '../place.ts';
import { ANY, literal, NUMBER, nullByAccident, recordOf, required, STRING, type Type, union } from '../type.ts';
import { type Agent, agentOf } from './agent-of-step.ts';
import { finish, guarded } from './guard.ts';
import { valueType } from './value-type.ts';
import { ALL, type At, type Walker } from './walker.ts';

export function walkAgent(step: AgentStep, at: At, walker: Walker): Type {
  const agent = agentOf(step, at.path, walker);
  const name = step.name ?? step.agent;
  const { behaviour } = agent;
  const guard = guarded(behaviour.condition, at, agent.at('condition'), walker);
  const output = behaviour.routes
    ? walkRoutes(agent, { ...at, place: guard.inner }, at.place, walker)
    : walkOperation(agent, { ...at, place: guard.inner }, walker);
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
      const output = walkOperation(member, { ...at, place: guard.inner }, walker);
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

function walkOperation(agent: Agent, at: At, walker: Walker): Type {
  const { behaviour } = agent;
  const operation = walker.host.operations.get(behaviour.operation ?? '');
  const input =
    behaviour.input === undefined
      ? (walker.outermost.input as Type)
      : valueType(behaviour.input, { ...at, path: agent.at('input') }, walker);
  const config = (isMap(behaviour.config) ? behaviour.config : {}) as JsonObject;
  const readsOnlyInput = operation?.readsOnlyInput?.(config) ?? false;
  const configAt = agent.at('config');
  const needs = operation?.needsValues?.(config) ?? [];
  const configPlace = { ...at, path: configAt, data: readsOnlyInput ? input : ANY };
  valueType(config, configPlace, walker, { root: configAt, operation, needs });
  if (behaviour.config !== undefined && !isMap(behaviour.config)) return ANY;
  if (Object.hasOwn(config, '<<')) return ANY;
  const output = operation?.output;
  const schema = typeof output === 'function' ? output(config) : output;
  return schema === undefined ? ANY : walker.schemas.of(schema);
}
