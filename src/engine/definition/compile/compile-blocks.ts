/** Compiles the steps that run inner steps: `foreach`, `while`, `parallel` and `try`. */

import type {
  CompiledBranch,
  CompiledForeachStep,
  CompiledList,
  CompiledParallelStep,
  CompiledTryStep,
  CompiledWhileStep,
} from '../../compiled/compiled-ensemble.ts';
import type { NameSlot } from '../../compiled/name-slot.ts';
import type {
  ForeachStep,
  ParallelStep,
  SleepStep,
  StepDefinition,
  TryStep,
  WaitStep,
  WhileStep,
} from '../../ensemble/ensemble.ts';
import { MAX_FOREACH_ITEMS } from '../../ensemble/ensemble.ts';
import { checkNotReserved } from '../forms/check-shape.ts';
import type { Path } from '../source/problem.ts';
import { createFieldCompiler } from './config/compile-fields.ts';
import { secretIn } from './config/refuse-secrets.ts';
import { namesOf } from './names/declare-names.ts';
import type { Level, StepPlace } from './names/flow-level.ts';
import { guardReads } from './names/guard-reads.ts';

type Parent = CompiledList['parent'];

const DEFAULT_ROUNDS = 1000;

export function compileForeach(step: ForeachStep, place: StepPlace, level: Level, parent: Parent): CompiledForeachStep {
  const { context, names, fields } = level;
  context.loops.hasAny = true;
  const at = (key: string): Path => [...place.path, key];
  const as = step.as ?? 'item';
  checkForeach(step, as, at, level);
  const items =
    typeof step.foreach === 'string'
      ? fields.whole(step.foreach, at('foreach'), 'an expression that gives a list')
      : fields.value(step.foreach, at('foreach'));
  const inner = names.nest(as, secretIn(items, context.host.secretNames));
  const body = level.nested(step.steps, { path: at('steps'), key: 'steps', parent, last: false }, inner, context);
  const innerFields = createFieldCompiler(inner, context.host, context.report);
  return {
    kind: 'foreach',
    key: place.key,
    name: step.name,
    ...resultOf(step, place, level, items.readsState),
    items: items.evaluate,
    itemsReadState: items.readsState,
    body,
    slots: inner.size,
    concurrency: step.concurrency ?? 1,
    breakWhen: step.breakWhen === undefined ? undefined : innerFields.guard(step.breakWhen, at('breakWhen')),
    collect: step.collect ?? true,
    continueOnError: step.continueOnError ?? false,
  };
}

/** The slot for the result of a block or a wait, and its condition. @param readsState - whether its other expressions read the state */
export function resultOf(
  step: ForeachStep | ParallelStep | SleepStep | WaitStep,
  place: StepPlace,
  { names, fields }: Level,
  readsState = false,
) {
  const slot = step.name === undefined ? undefined : names.declare(step.name);
  const condition =
    step.condition === undefined ? undefined : fields.guard(step.condition, [...place.path, 'condition']);
  return { slot, condition, readsState: readsState || (condition?.readsState ?? false) };
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

export function compileWhile(step: WhileStep, place: StepPlace, level: Level, parent: Parent): CompiledWhileStep {
  const path = [...place.path, 'steps'];
  const { names, context } = level;
  context.loops.hasAny = true;
  checkNotEmpty(step.steps, path, level);
  const guard = level.fields.guard(step.while, [...place.path, 'while']);
  // The guard is evaluated again after every round, so it may handle failures of the body.
  const nextRound: CompiledList = { steps: [], parent, guardedAfter: [new Set(guard.reads)] };
  const body = level.list(
    step.steps,
    { path, key: 'steps', parent: { list: nextRound, index: 0 }, last: false },
    level,
  );
  const maxIterations = step.maxIterations ?? DEFAULT_ROUNDS;
  return { kind: 'while', key: place.key, guard, body, maxIterations, names: names.slots };
}

export function compileParallel(
  step: ParallelStep,
  place: StepPlace,
  level: Level,
  parent: Parent,
): CompiledParallelStep {
  const { names, context } = level;
  const path = [...place.path, 'parallel'];
  checkNotEmpty(step.parallel, path, level);
  const declared = step.parallel.map((branch) => namesOf([branch], path, context));
  const block = new Set(declared.flatMap((own) => [...own]));
  const branches = step.parallel.map((branch, i): CompiledBranch => {
    const own = declared[i] as ReadonlySet<string>;
    const branchLevel = level.withNames(names.inBranch(block, own));
    // A failure of one branch ends the block. Guards after the block may handle what the guards of the branch don't handle.
    const at = { path, key: `${place.key}.parallel`, parent, last: false, first: i };
    const label = labelOf(branch) ?? String(i);
    const slots = [...own].flatMap((name) => names.find(name)?.slot ?? []);
    return { label, list: level.list([branch], at, branchLevel), slots };
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

export function compileTry(step: TryStep, place: StepPlace, level: Level, parent: Parent): CompiledTryStep {
  const at = (key: string): Path => [...place.path, key];
  checkNotEmpty(step.try, at('try'), level);
  const { dropped, report } = level.context;
  if (!step.catch && !step.finally && !dropped(at('catch')) && !dropped(at('finally'))) {
    const message = 'needs `catch`, `finally` or both: a `try` alone changes nothing';
    report({ path: at('try'), key: true, message });
  }
  const list = (steps: readonly StepDefinition[], key: string, around: Parent, last: boolean, view = level) =>
    view.list(steps, { path: at(key), key: `${place.key}.${key}`, parent: around, last }, view);
  // After the body, the guards of `catch` and of the steps after the block may handle a failure; those of `finally` never.
  const readsAfterBody = new Set<NameSlot>();
  const followedByCatch: Parent = { list: { steps: [], parent, guardedAfter: [readsAfterBody] }, index: 0 };
  const body = list(step.try, 'try', followedByCatch, false);
  const catchLevel = level.withNames(level.names.catching());
  const handler = step.catch && list(step.catch, 'catch', parent, place.last && !step.finally, catchLevel);
  for (const slot of guardReads(handler)) readsAfterBody.add(slot);
  const cleanup = step.finally && list(step.finally, 'finally', parent, false);
  return { kind: 'try', key: place.key, body, catch: handler, finally: cleanup };
}
