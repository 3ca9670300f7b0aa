/** Declares all names of one level of a flow before the level is compiled, so that a step can read the name of a later step. */

import type { AgentBehaviour, AgentStep, ForeachStep, StepDefinition } from '../../../ensemble/ensemble.ts';
import { hasExclusiveLists, innerLists } from '../../../ensemble/inner-lists.ts';
import { checkNotReserved } from '../../forms/check-shape.ts';
import type { Path } from '../../source/problem.ts';
import type { FlowContext } from '../resolve-agent.ts';
import type { Names } from './names.ts';
import { OUTERMOST } from './outermost-names.ts';

type Declared = Map<string, Path>;

/** Declares the names of a list of steps. Branches that exclude each other may use the same name. */
export function declareNames(
  steps: readonly StepDefinition[],
  path: Path,
  before: ReadonlyMap<string, Path>,
  names: Names,
  context: FlowContext,
): Declared {
  const declared: Declared = new Map(before);
  const declare = (name: string, at: Path, advice: string) => {
    // A reserved name of a declared agent is reported where the agent is declared.
    if (!context.agents.has(name) && !checkNotReserved(name, at, context.report, advice)) {
      // Who reads it means this step, which needs no second problem.
      if (!OUTERMOST.includes(name)) names.declare(name);
      return;
    }
    if (name === names.item) {
      context.report({ path: at, message: `\`${name}\` is the item of this \`foreach\`; ${advice}` });
    } else if (declared.has(name)) {
      context.report({ path: at, message: `the name \`${name}\` is taken by an earlier step; ${advice}` });
    } else {
      declared.set(name, at);
      names.declare(name);
    }
  };
  steps.forEach((step, i) => {
    const at = [...path, i];
    if ('foreach' in step) {
      if (step.name !== undefined) declare(step.name, [...at, 'name'], 'choose another');
    } else if (!('agent' in step)) {
      // Branches that exclude each other may use the same name.
      const exclusive = hasExclusiveLists(step);
      const before = exclusive ? new Map(declared) : declared;
      for (const { path: inner, steps } of innerLists(step)) {
        const within = declareNames(steps, [...at, ...inner], before, names, context);
        for (const [name, where] of within) declared.set(name, where);
      }
      if ('name' in step && step.name !== undefined) declare(step.name, [...at, 'name'], 'choose another');
      else if ('ensemble' in step && !context.dropped([...at, 'name'])) {
        declare(step.ensemble, [...at, 'ensemble'], 'give this one another with `name`');
      }
    } else {
      const named = step.name !== undefined;
      // When the `name` of the step could not be read, its name is not known.
      if (named || !context.dropped([...at, 'name'])) {
        const advice = named ? 'choose another' : 'give this one another with `name`';
        declare(step.name ?? step.agent, [...at, named ? 'name' : 'agent'], advice);
      }
      for (const [member, where] of routeMembers(step, at, context)) {
        declare(member, where, 'an agent runs once in a flow: declare a second agent for the route');
      }
    }
  });
  return declared;
}

function routeMembers(step: AgentStep, path: Path, context: FlowContext): Declared {
  const { routes, at } = routesOf(step, path, context);
  const members: Declared = new Map();
  routes?.forEach((route, i) => {
    if (route.member !== undefined && !members.has(route.member)) members.set(route.member, at(i));
  });
  return members;
}

function routesOf(
  step: AgentStep,
  path: Path,
  context: FlowContext,
): { readonly routes: AgentBehaviour['routes']; readonly at: (index: number) => Path } {
  const inRoutes = (base: Path) => (index: number) => [...base, 'routes', index, 'member'];
  if (step.routes !== undefined || step.operation !== undefined) return { routes: step.routes, at: inRoutes(path) };
  const declared = context.agents.get(step.agent);
  if (declared) return { routes: declared.behaviour.routes, at: inRoutes(declared.path) };
  return { routes: context.host.sharedAgents.get(step.agent)?.routes, at: () => [...path, 'agent'] };
}

/** The names that can be read from a step on: the name of the step, and for a `while` the names of its inner steps. */
export function reachedWith(step: StepDefinition, path: Path, context: FlowContext): Iterable<string> {
  if ('while' in step) return namesOf(step.steps, path, context);
  if ('agent' in step) return [step.name ?? step.agent, ...routeMembers(step, path, context).keys()];
  if ('name' in step && step.name !== undefined) return [step.name];
  return 'ensemble' in step ? [step.ensemble] : [];
}

/** The meaning of a name that can be read only inside a `foreach`. */
export type InnerName = 'step' | 'item';

/** The names that have a meaning only inside a `foreach`. */
export function namesInsideForeach(flow: readonly StepDefinition[], context: FlowContext): Map<string, InnerName> {
  const inside = new Map<string, InnerName>();
  const outside = new Set<string>();
  const findInside = (block: ForeachStep, path: Path) => {
    if (block.as !== undefined) inside.set(block.as, 'item');
    walkNames(block.steps, path, context, (name) => inside.set(name, 'step'), findInside);
  };
  walkNames(flow, ['flow'], context, (name) => outside.add(name), findInside);
  for (const name of outside) inside.delete(name);
  return inside;
}

/** The names that the steps declare at their level. */
export function namesOf(steps: readonly StepDefinition[], path: Path, context: FlowContext): Set<string> {
  const names = new Set<string>();
  walkNames(
    steps,
    path,
    context,
    (name) => names.add(name),
    () => {},
  );
  return names;
}

/** @param inBlock - called for each `foreach`, whose body is a separate level */
function walkNames(
  steps: readonly StepDefinition[],
  path: Path,
  context: FlowContext,
  found: (name: string) => void,
  inBlock: (block: ForeachStep, path: Path) => void,
): void {
  steps.forEach((step, i) => {
    const at = [...path, i];
    if ('agent' in step) {
      found(step.name ?? step.agent);
      for (const member of routeMembers(step, at, context).keys()) found(member);
      return;
    }
    if ('name' in step && step.name !== undefined) found(step.name);
    else if ('ensemble' in step) found(step.ensemble);
    if ('foreach' in step) inBlock(step, at);
    else for (const inner of innerLists(step)) walkNames(inner.steps, at, context, found, inBlock);
  });
}
