/** Compiles a router: an agent that chooses which agent runs, or which prompt the next `think` uses. */

import { quoted } from '../../base/wording.ts';
import type { CompiledGuard, CompiledRoute, CompiledRouteStep } from '../../compiled/compiled-ensemble.ts';
import { isReference } from '../../component/component.ts';
import type { RouteDefinition } from '../../ensemble/ensemble.ts';
import type { Path } from '../source/problem.ts';
import { compileAgentStep } from './compile-agent.ts';
import { createFieldCompiler } from './config/compile-fields.ts';
import { checkReferences } from './config/compile-references.ts';
import { refuseSecrets } from './config/refuse-secrets.ts';
import type { Names } from './names/names.ts';
import { type FlowContext, type Origin, type ResolvedAgent, resolveAgent } from './resolve-agent.ts';

/** The place of a router in a run. */
export interface RouterPlace {
  readonly key: string;
  readonly name: string;
  readonly last: boolean;
}

const NOT_FOR_ROUTERS = [
  'operation',
  'config',
  'fromComponent',
  'input',
  'output',
  'retry',
  'concurrency',
  'timeout',
  'continueOnError',
  'setState',
] as const;

/** @param resolved - an agent with `routes` */
export function compileRouter(
  resolved: ResolvedAgent,
  place: RouterPlace,
  names: Names,
  context: FlowContext,
): CompiledRouteStep {
  const { behaviour, at } = resolved;
  for (const field of NOT_FOR_ROUTERS) {
    if (behaviour[field] === undefined) continue;
    const { path, report } = at(field);
    report({
      path,
      key: true,
      message: `\`${field}\` is not for a router: an agent with \`routes\` only chooses what runs`,
    });
  }
  const slot = names.declare(place.name);
  const condition = compileGuard(behaviour.condition, at('condition'), names, context);
  const entries = compileRoutes(behaviour.routes ?? [], at('routes'), place, names, context);
  const readsState = [{ condition }, ...entries].some((entry) => entry.condition?.readsState);
  return { kind: 'route', key: place.key, name: place.name, slot, condition, readsState, entries };
}

function compileGuard(
  guard: string | boolean | undefined,
  origin: Origin,
  names: Names,
  context: FlowContext,
): CompiledGuard | undefined {
  if (guard === undefined) return undefined;
  return createFieldCompiler(names, context.host, origin.report).guard(guard, origin.path);
}

function compileRoutes(
  routes: readonly RouteDefinition[],
  origin: Origin,
  place: RouterPlace,
  names: Names,
  context: FlowContext,
): CompiledRoute[] {
  const { report } = origin;
  return routes.flatMap((route, i): CompiledRoute[] => {
    const at = [...origin.path, i];
    checkRoute(route, at, i === routes.length - 1, origin, context);
    const condition = compileGuard(route.condition, { path: [...at, 'condition'], report }, names, context);
    if (route.prompt !== undefined && route.member === undefined) {
      context.prompts.hasRoute = true;
      const promptAt = [...at, 'prompt'];
      const isReferring = isReference(route.prompt);
      if (isReferring) {
        context.prompts.hasReference = true;
        checkReferences([{ path: ['prompt'], at: ['prompt'], text: route.prompt }], at, report);
      }
      const fields = createFieldCompiler(names, context.host, report);
      const prompt = fields.value(route.prompt, promptAt, { templates: !isReferring });
      refuseSecrets(prompt, promptAt, 'the target of a route', context.host.secretNames, report);
      return [{ condition, target: { kind: 'prompt', prompt: prompt.evaluate, isReference: isReferring } }];
    }
    if (route.member === undefined) return [];
    const memberAt = { path: [...at, 'member'], report };
    const resolved = resolveAgent({ agent: route.member }, at, memberAt, context);
    if (resolved.behaviour.routes) {
      const message = `${quoted(route.member)} is a router itself; a route leads to an agent with an operation`;
      report({ path: memberAt.path, message });
      return [];
    }
    const memberPlace = { key: `${place.key}.${route.member}`, name: route.member, last: place.last };
    const step = compileAgentStep(resolved, memberPlace, names, context);
    return step ? [{ condition, target: { kind: 'member', step } }] : [];
  });
}

function checkRoute(
  route: RouteDefinition,
  at: Path,
  last: boolean,
  { report }: Origin,
  { dropped }: FlowContext,
): void {
  if (route.default === true) {
    if (route.condition !== undefined) {
      report({
        path: [...at, 'condition'],
        key: true,
        message: 'a default entry has no `condition`; remove one of the two',
      });
    }
    if (!last) {
      report({
        path: [...at, 'default'],
        key: true,
        message: 'the default entry must be the last: the entries after it are never reached',
      });
    }
  } else if (route.condition === undefined && !['condition', 'when', 'default'].some((key) => dropped([...at, key]))) {
    report({ path: at, message: 'needs a `condition`, or `default: true` as the last entry' });
  }
  if (route.member !== undefined && route.prompt !== undefined) {
    report({
      path: [...at, 'prompt'],
      key: true,
      message: 'a route has one target, but this route also has `member`; keep one of them',
    });
  } else if (route.member === undefined && route.prompt === undefined) {
    if (!['member', 'agent', 'prompt'].some((key) => dropped([...at, key]))) {
      report({ path: at, message: 'needs a target: `member` (an agent that runs) or `prompt`' });
    }
  }
}
