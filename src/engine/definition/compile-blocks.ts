/** Compiles the steps that run others: loops, branches at the same time, and what is caught. */

import type {
  ForeachStep,
  ParallelStep,
  SleepStep,
  StepDefinition,
  TryStep,
  WaitStep,
  WhileStep,
} from '../model/ensemble.ts';
import { checkNotReserved } from './check-shape.ts';
import { createFieldCompiler } from './compile-fields.ts';
import {
  type CompiledBranch,
  type CompiledForeachStep,
  type CompiledList,
  type CompiledParallelStep,
  type CompiledTryStep,
  type CompiledWhileStep,
  MAX_FOREACH_ITEMS,
} from './compiled-ensemble.ts';
import { namesOf } from './declare-names.ts';
import type { Level, StepPlace } from './flow-level.ts';
import { guardReads } from './guard-reads.ts';
import type { NameSlot } from './names.ts';
import type { Path } from './problem.ts';
import { secretIn } from './refuse-secrets.ts';

type Parent = CompiledList['parent'];

const DEFAULT_ROUNDS = 1000;

export function compileForeach(step: ForeachStep, place: StepPlace, parent: Parent, level: Level): CompiledForeachStep {
  const { context, names, fields } = level;
  const at = (key: string): Path => [...place.path, key];
  const as = step.as ?? 'item';
  checkForeach(step, as, at, level);
  const items =
    typeof step.foreach === 'string'
      ? fields.whole(step.foreach, at('foreach'), 'an expression that gives a list')
      : fields.value(step.foreach, at('foreach'));
  const inner = names.nest(as, secretIn(items, context.host.secretNames));
  const body = level.inside(step.steps, { path: at('steps'), key: 'steps', parent, last: false }, inner, context);
  const innerFields = createFieldCompiler(inner, context.host, context.report);
  return {
    kind: 'foreach',
    key: place.key,
    name: step.name,
    ...resultOf(step, place, level),
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

/** Where the result of a block or a wait goes, and whether it runs at all. */
export function resultOf(
  step: ForeachStep | ParallelStep | SleepStep | WaitStep,
  place: StepPlace,
  { names, fields }: Level,
) {
  const { name, condition } = step;
  return {
    slot: name === undefined ? undefined : names.declare(name),
    condition: condition === undefined ? undefined : fields.guard(condition, [...place.path, 'condition']),
  };
}

function checkForeach(step: ForeachStep, as: string, at: (key: string) => Path, { names, context }: Level): void {
  const { report } = context;
  if ((as === 'item' || checkNotReserved(as, at('as'), report)) && names.find(as)) {
    report({ path: at('as'), message: `the name \`${as}\` is taken by a step; choose another` });
  }
  if (Array.isArray(step.foreach) && step.foreach.length > MAX_FOREACH_ITEMS) {
    report({
      path: at('foreach'),
      message: `has ${step.foreach.length} items; at most ${MAX_FOREACH_ITEMS} are allowed`,
    });
  }
  checkNotEmpty(step.steps, at('steps'), { context });
}

function checkNotEmpty(steps: readonly StepDefinition[], path: Path, { context }: Pick<Level, 'context'>): void {
  if (steps.length === 0) context.report({ path, message: 'must have at least one step' });
}

export function compileWhile(step: WhileStep, place: StepPlace, parent: Parent, level: Level): CompiledWhileStep {
  const path = [...place.path, 'steps'];
  checkNotEmpty(step.steps, path, level);
  const guard = level.fields.guard(step.while, [...place.path, 'while']);
  // Ahead of every round's steps is the guard itself: it is read again.
  const again: CompiledList = { steps: [], parent, guardedAfter: [new Set(guard.reads)] };
  const body = level.list(step.steps, { path, key: 'steps', parent: { list: again, index: 0 }, last: false }, level);
  return { kind: 'while', key: place.key, guard, body, maxIterations: step.maxIterations ?? DEFAULT_ROUNDS };
}

export function compileParallel(
  step: ParallelStep,
  place: StepPlace,
  parent: Parent,
  level: Level,
): CompiledParallelStep {
  const { names, context } = level;
  const path = [...place.path, 'parallel'];
  checkNotEmpty(step.parallel, path, level);
  const declared = step.parallel.map((branch) => namesOf([branch], path, context));
  const block = new Set(declared.flatMap((own) => [...own]));
  const branches = step.parallel.map((branch, i): CompiledBranch => {
    const own = declared[i] as ReadonlySet<string>;
    const beside = level.as(names.beside(block, own));
    // A failure of one branch ends the block: what its own guards don't handle, those behind the block may.
    const at = { path, key: `${place.key}.parallel`, parent, last: false, first: i };
    const label = labelOf(branch) ?? String(i);
    const slots = [...own].flatMap((name) => names.find(name)?.slot ?? []);
    return { label, list: level.list([branch], at, beside), slots };
  });
  return {
    kind: 'parallel',
    key: place.key,
    ...resultOf(step, place, level),
    branches,
    waitFor: step.waitFor ?? 'all',
    concurrency: step.concurrency ?? branches.length,
    continueOnError: step.continueOnError ?? false,
  };
}

function labelOf(step: StepDefinition): string | undefined {
  if ('name' in step && step.name !== undefined) return step.name;
  if ('ensemble' in step) return step.ensemble;
  return 'agent' in step ? step.agent : undefined;
}

export function compileTry(step: TryStep, place: StepPlace, parent: Parent, level: Level): CompiledTryStep {
  const at = (key: string): Path => [...place.path, key];
  checkNotEmpty(step.try, at('try'), level);
  const { dropped, report } = level.context;
  if (!step.catch && !step.finally && !dropped(at('catch')) && !dropped(at('finally'))) {
    const message = 'needs `catch`, `finally` or both: alone it changes nothing';
    report({ path: at('try'), key: true, message });
  }
  const list = (steps: readonly StepDefinition[], key: string, around: Parent, last: boolean, view = level) =>
    view.list(steps, { path: at(key), key: `${place.key}.${key}`, parent: around, last }, view);
  // What stands in `finally` is ahead of the rest as what stands behind the block is; what is in `catch`, of the body.
  const ahead = (reads: ReadonlySet<NameSlot>): Parent => ({
    list: { steps: [], parent, guardedAfter: [reads] },
    index: 0,
  });
  const behindBody = new Set<NameSlot>();
  const behindCatch = new Set<NameSlot>();
  const { names } = level;
  const body = list(step.try, 'try', ahead(behindBody), false);
  const caught = level.as(names.catching());
  const handler = step.catch && list(step.catch, 'catch', ahead(behindCatch), place.last && !step.finally, caught);
  const cleanup = step.finally && list(step.finally, 'finally', parent, false);
  for (const slot of guardReads(cleanup)) behindCatch.add(slot);
  for (const slot of [...guardReads(handler), ...behindCatch]) behindBody.add(slot);
  return { kind: 'try', key: place.key, body, catch: handler, finally: cleanup };
}
