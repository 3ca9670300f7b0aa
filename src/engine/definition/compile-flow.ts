/** Compiles the steps of one level to lists that the interpreter walks, with the names and failures each one concerns. */

import type { AgentStep, ForeachStep, IfStep, StepDefinition } from '../model/ensemble.ts';
import { RESERVED_NAMES } from '../model/name.ts';
import { compileAgentStep } from './compile-agent.ts';
import { createFieldCompiler, type FieldCompiler } from './compile-fields.ts';
import { compileRouter } from './compile-routes.ts';
import {
  type CompiledForeachStep,
  type CompiledGuard,
  type CompiledIfStep,
  type CompiledList,
  type CompiledStep,
  MAX_FOREACH_ITEMS,
} from './compiled-ensemble.ts';
import { declareNames } from './declare-names.ts';
import type { NameSlot, Names } from './names.ts';
import type { Path } from './problem.ts';
import { type FlowContext, resolveAgent } from './resolve-agent.ts';

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

function compileLevel(
  steps: readonly StepDefinition[],
  place: ListPlace,
  names: Names,
  context: FlowContext,
): CompiledList {
  declareNames(steps, place.path, new Map(), names, context);
  return compileList(steps, place, {
    names,
    fields: createFieldCompiler(names, context.host, context.report),
    context,
  });
}

interface Level {
  readonly names: Names;
  readonly fields: FieldCompiler;
  readonly context: FlowContext;
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

function compileStep(
  step: StepDefinition,
  place: StepPlace,
  parent: CompiledList['parent'],
  level: Level,
): CompiledStep | undefined {
  if ('if' in step) return compileIf(step, place, parent, level);
  if ('foreach' in step) return compileForeach(step, place, parent, level);
  return compileAgent(step, place, level);
}

function compileAgent(step: AgentStep, place: StepPlace, { names, context }: Level): CompiledStep | undefined {
  const nameAt = { path: [...place.path, 'agent'], report: context.report };
  const resolved = resolveAgent(step, place.path, nameAt, context);
  const at = { key: place.key, name: step.name ?? step.agent, last: place.last };
  if (resolved.behaviour.routes) return compileRouter(resolved, at, names, context);
  return compileAgentStep(resolved, at, names, context);
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

function compileForeach(
  step: ForeachStep,
  place: StepPlace,
  parent: CompiledList['parent'],
  level: Level,
): CompiledForeachStep {
  const { context, names, fields } = level;
  const at = (key: string): Path => [...place.path, key];
  const as = step.as ?? 'item';
  checkForeach(step, as, at, level);
  const items =
    typeof step.foreach === 'string'
      ? fields.whole(step.foreach, at('foreach'), 'an expression that gives a list')
      : fields.value(step.foreach, at('foreach'));
  const condition = step.condition === undefined ? undefined : fields.guard(step.condition, at('condition'));
  const inner = names.nest(as);
  const body = compileLevel(step.steps, { path: at('steps'), key: 'steps', parent, last: false }, inner, context);
  const innerFields = createFieldCompiler(inner, context.host, context.report);
  return {
    kind: 'foreach',
    key: place.key,
    name: step.name,
    slot: step.name === undefined ? undefined : names.declare(step.name),
    condition,
    items: items.evaluate,
    readsState: items.readsState,
    body,
    slots: inner.size,
    concurrency: step.concurrency ?? 1,
    breakWhen: step.breakWhen === undefined ? undefined : innerFields.guard(step.breakWhen, at('breakWhen')),
    collect: step.collect ?? true,
    continueOnError: step.continueOnError ?? false,
  };
}

function checkForeach(step: ForeachStep, as: string, at: (key: string) => Path, { names, context }: Level): void {
  const { report } = context;
  if (as !== 'item' && RESERVED_NAMES.has(as)) {
    report({
      path: at('as'),
      message: `\`${as}\` is a reserved name: it means something else in every expression; choose another`,
    });
  } else if (names.find(as)) {
    report({ path: at('as'), message: `the name \`${as}\` is taken by a step; choose another` });
  }
  if (Array.isArray(step.foreach) && step.foreach.length > MAX_FOREACH_ITEMS) {
    report({
      path: at('foreach'),
      message: `has ${step.foreach.length} items; at most ${MAX_FOREACH_ITEMS} are allowed`,
    });
  }
  if (step.steps.length === 0) report({ path: at('steps'), message: 'must have at least one step' });
}

/** Checks an agent that no step names as if one did: its author will use it next. @param names - a level of its own */
export function checkUnusedAgent(agent: string, path: Path, names: Names, context: FlowContext): void {
  const resolved = resolveAgent({ agent }, path, { path, report: context.report }, context);
  const at = { key: '', name: agent, last: false };
  if (resolved.behaviour.routes) compileRouter(resolved, at, names, context);
  else compileAgentStep(resolved, at, names, context);
}
