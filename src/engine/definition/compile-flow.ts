/** Compiles the steps of one level to lists that the interpreter walks, with the names and failures each one concerns. */

import type { AgentBehaviour, AgentStep, ForeachStep, IfStep, RouteDefinition, StepDefinition } from '../model/ensemble.ts';
import { RESERVED_NAMES } from '../model/name.ts';
import { checkNotReserved } from './check-shape.ts';
import { compileAgentStep, type FlowContext, resolveAgent } from './compile-agent.ts';
import { createFieldCompiler, type FieldCompiler } from './compile-fields.ts';
import {
  type CompiledForeachStep,
  type CompiledGuard,
  type CompiledIfStep,
  type CompiledList,
  type CompiledRoute,
  type CompiledRouteStep,
  type CompiledStep,
  MAX_FOREACH_ITEMS,
} from './compiled-ensemble.ts';
import type { Names, NameSlot } from './names.ts';
import type { Path } from './problem.ts';

/** Where a list of steps stands. */
interface ListPlace {
  /** In the definition. */
  readonly path: Path;
  /** In the run: keys of its steps are `${key}[i]`. */
  readonly key: string;
  readonly parent: CompiledList['parent'];
  /** Nothing runs behind the list's last step. */
  readonly last: boolean;
}

/** Compiles the flow of an ensemble. @param names - the outermost level, empty */
export function compileFlow(flow: readonly StepDefinition[], names: Names, context: FlowContext): CompiledList {
  return compileLevel(flow, { path: ['flow'], key: 'flow', parent: undefined, last: true }, names, context);
}

// A level's names are declared before anything is compiled, so that a step may read one that stands behind it.
function compileLevel(steps: readonly StepDefinition[], place: ListPlace, names: Names, context: FlowContext): CompiledList {
  declareNames(steps, place.path, new Map(), names, context);
  return compileList(steps, place, { names, fields: createFieldCompiler(names, context.host, context.report), context });
}

interface Level {
  readonly names: Names;
  readonly fields: FieldCompiler;
  readonly context: FlowContext;
}

type Declared = Map<string, Path>;

/** Declares the names of a sequence; branches of an `if` exclude each other, so that a name may stand in both. */
function declareNames(steps: readonly StepDefinition[], path: Path, before: Declared, names: Names, context: FlowContext): Declared {
  const declared: Declared = new Map(before);
  const declare = (name: string, at: Path) => {
    const source = context.sourceOf(at);
    if (!checkNotReserved(name, source, context.report)) return;
    if (declared.has(name)) {
      context.report({ path: source, message: `the name \`${name}\` is taken by an earlier step; give this one another with \`name:\`` });
      return;
    }
    declared.set(name, at);
    names.declare(name);
  };
  steps.forEach((step, i) => {
    const at = [...path, i];
    if ('if' in step) {
      const inThen = declareNames(step.then, [...at, 'then'], declared, names, context);
      const inElse = declareNames(step.else ?? [], [...at, 'else'], declared, names, context);
      for (const [name, where] of [...inThen, ...inElse]) declared.set(name, where);
    } else if ('foreach' in step) {
      if (step.name !== undefined) declare(step.name, [...at, 'name']);
    } else {
      declare(step.name ?? step.agent, [...at, step.name === undefined ? 'agent' : 'name']);
      const { routes, at: routesAt } = routesOf(step, at, context);
      const members = new Map<string, Path>();
      routes?.forEach((route, r) => {
        if (route.member !== undefined && !members.has(route.member)) members.set(route.member, [...routesAt, r, 'member']);
      });
      for (const [member, where] of members) declare(member, where);
    }
  });
  return declared;
}

function routesOf(step: AgentStep, path: Path, context: FlowContext): { readonly routes: AgentBehaviour['routes']; readonly at: Path } {
  const declared = context.agents.get(step.agent);
  if (step.routes !== undefined || step.operation !== undefined) return { routes: step.routes, at: [...path, 'routes'] };
  if (declared) return { routes: declared.behaviour.routes, at: [...declared.path, 'routes'] };
  return { routes: context.host.sharedAgents.get(step.agent)?.routes, at: [...path, 'agent'] };
}

function compileList(steps: readonly StepDefinition[], place: ListPlace, level: Level): CompiledList {
  const compiled: CompiledStep[] = [];
  const guardedAfter: Set<NameSlot>[] = [];
  const list: CompiledList = { steps: compiled, parent: place.parent, guardedAfter };
  steps.forEach((step, i) => {
    const at = { path: [...place.path, i], key: `${place.key}[${i}]`, last: place.last && i === steps.length - 1 };
    const result = compileStep(step, at, { list, index: compiled.length }, level);
    if (result) compiled.push(result);
  });
  let ahead = new Set<NameSlot>();
  for (let i = compiled.length - 1; i >= 0; i--) {
    guardedAfter[i] = ahead;
    const reads = guardReads(compiled[i] as CompiledStep);
    if (reads.length > 0) ahead = new Set([...ahead, ...reads]);
  }
  return list;
}

/** The names whose failure some guard of a step, or of a step inside it, looks at. */
function guardReads(step: CompiledStep): readonly NameSlot[] {
  const of = (guard: CompiledGuard | undefined) => guard?.reads ?? [];
  const inside = (list: CompiledList | undefined) => (list?.steps ?? []).flatMap(guardReads);
  switch (step.kind) {
    case 'agent':
      return of(step.condition);
    case 'route':
      return [...of(step.condition), ...step.entries.flatMap((entry) => of(entry.condition))];
    case 'if':
      return [...of(step.guard), ...inside(step.then), ...inside(step.else)];
    case 'foreach':
      return [...of(step.condition), ...inside(step.body)];
  }
}

interface StepPlace {
  readonly path: Path;
  readonly key: string;
  readonly last: boolean;
}

function compileStep(step: StepDefinition, place: StepPlace, parent: CompiledList['parent'], level: Level): CompiledStep | undefined {
  if ('if' in step) return compileIf(step, place, parent, level);
  if ('foreach' in step) return compileForeach(step, place, parent, level);
  const { context, names, fields } = level;
  const resolved = resolveAgent(step, place.path, context);
  if (!resolved) return undefined;
  const name = step.name ?? step.agent;
  if (!resolved.behaviour.routes) {
    return compileAgentStep(resolved, { ...place, name, path: context.sourceOf([...place.path, 'agent']) }, names, fields, context);
  }
  for (const field of ['operation', 'config', 'input', 'retry', 'timeout', 'continueOnError', 'setState'] as const) {
    if (resolved.behaviour[field] !== undefined) {
      context.report({ path: resolved.at(field), key: true, message: `is not for a router: an agent with \`routes\` only chooses which agent runs` });
    }
  }
  const condition = resolved.behaviour.condition;
  return {
    kind: 'route',
    key: place.key,
    name,
    slot: names.declare(name),
    condition: condition === undefined ? undefined : fields.guard(condition, resolved.at('condition')),
    entries: compileRoutes(resolved.behaviour.routes, resolved.at('routes'), place, level),
  } satisfies CompiledRouteStep;
}

function compileRoutes(routes: readonly RouteDefinition[], path: Path, place: StepPlace, level: Level): CompiledRoute[] {
  const { context, fields } = level;
  const { report } = context;
  return routes.flatMap((route, i): CompiledRoute[] => {
    const at = [...path, i];
    if (route.default === true) {
      if (route.condition !== undefined) report({ path: at, message: 'a default entry has no `condition`' });
      if (i < routes.length - 1) report({ path: at, message: 'the default entry must be the last: those behind it are never reached' });
    } else if (route.condition === undefined) {
      report({ path: at, message: 'needs a `condition`, or `default: true` as the last entry' });
    }
    const condition = route.condition === undefined ? undefined : fields.guard(route.condition, [...at, 'condition']);
    if ((route.member === undefined) === (route.prompt === undefined)) {
      report({ path: at, message: 'needs exactly one target: `member` or `prompt`' });
      return [];
    }
    if (route.prompt !== undefined) {
      return [{ condition, target: { kind: 'prompt', prompt: fields.value(route.prompt, [...at, 'prompt']).evaluate } }];
    }
    const member = { agent: route.member as string };
    const resolved = resolveAgent(member, at, context, [...at, 'member']);
    if (!resolved) return [];
    if (resolved.behaviour.routes) {
      report({ path: [...at, 'member'], message: `\`${member.agent}\` is a router itself; a route leads to an agent with an operation` });
      return [];
    }
    const step = compileAgentStep(
      resolved,
      { key: `${place.key}.${member.agent}`, name: member.agent, last: place.last, path: [...at, 'member'] },
      level.names,
      fields,
      context,
    );
    return step ? [{ condition, target: { kind: 'member', step } }] : [];
  });
}

function compileIf(step: IfStep, place: StepPlace, parent: CompiledList['parent'], level: Level): CompiledIfStep {
  const branch = (steps: readonly StepDefinition[], key: string) =>
    compileList(steps, { path: [...place.path, key], key: `${place.key}.${key}`, parent, last: place.last }, level);
  return {
    kind: 'if',
    key: place.key,
    guard: level.fields.guard(step.if, [...place.path, 'if']),
    then: branch(step.then, 'then'),
    else: step.else && branch(step.else, 'else'),
  };
}

function compileForeach(step: ForeachStep, place: StepPlace, parent: CompiledList['parent'], level: Level): CompiledForeachStep {
  const { context, names, fields } = level;
  const { report, sourceOf } = context;
  const as = step.as ?? 'item';
  const asPath = [...place.path, 'as'];
  if (as !== 'item' && RESERVED_NAMES.has(as)) report({ path: asPath, message: `\`${as}\` is a reserved name; choose another` });
  else if (names.find(as)) report({ path: asPath, message: `the name \`${as}\` is taken by a step; choose another` });
  const itemsPath = [...place.path, 'foreach'];
  if (Array.isArray(step.foreach) && step.foreach.length > MAX_FOREACH_ITEMS) {
    report({ path: itemsPath, message: `has ${step.foreach.length} items; at most ${MAX_FOREACH_ITEMS} are allowed` });
  }
  const items = typeof step.foreach === 'string' ? fields.whole(step.foreach, itemsPath, 'an expression that gives a list') : fields.value(step.foreach, itemsPath);
  const inner = names.nest(as);
  const body = compileLevel(step.steps, { path: [...place.path, 'steps'], key: 'steps', parent, last: false }, inner, context);
  if (step.steps.length === 0) report({ path: [...place.path, 'steps'], message: 'must have at least one step' });
  return {
    kind: 'foreach',
    key: place.key,
    name: step.name,
    slot: step.name === undefined ? undefined : names.declare(step.name),
    condition: step.condition === undefined ? undefined : fields.guard(step.condition, sourceOf([...place.path, 'condition'])),
    items: items.evaluate,
    readsState: items.readsState,
    body,
    slots: inner.size,
    concurrency: step.concurrency ?? 1,
    breakWhen:
      step.breakWhen === undefined
        ? undefined
        : createFieldCompiler(inner, context.host, report).guard(step.breakWhen, [...place.path, 'breakWhen']),
    collect: step.collect ?? true,
    continueOnError: step.continueOnError ?? false,
  };
}
