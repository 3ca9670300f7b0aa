/** The types of blocks that run their steps many times or at once: `foreach`, `parallel` and `while`. */

import type { ForeachStep, ParallelStep, WhileStep } from '../../../ensemble/ensemble.ts';
import { assume } from '../infer/assume.ts';
import { infer } from '../infer/infer.ts';
import { FAILED, keyOf, type LevelTypes, NOT_RUN, SKIPPED } from '../place.ts';
import {
  ANY,
  isNever,
  listOf,
  literal,
  mayBe,
  membersOf,
  NULL,
  NUMBER,
  nameOfType,
  recordOf,
  required,
  type Type,
  union,
} from '../type.ts';
import { hasHandled, hasOutput, labelOf, stepNames } from './agent-of-step.ts';
import { finish, forgetAll, guarded, guardNode } from './guard.ts';
import { valueType } from './value-type.ts';
import { ALL, type At, report, type Walker, walkList } from './walker.ts';

export function walkForeach(step: ForeachStep, at: At, walker: Walker): Type {
  const guard = guarded(step.condition, at, [...at.path, 'condition'], walker);
  const listAt = { ...at, place: guard.inner, path: [...at.path, 'foreach'] };
  const found = typeof step.foreach === 'string' ? guardNode(step.foreach, listAt, walker) : undefined;
  const list = found
    ? infer(found.node, found.context)
    : typeof step.foreach === 'string'
      ? ANY
      : valueType(step.foreach, listAt, walker);
  if (!mayBe(list, ['list']) && !isNever(list) && !guard.inner.dead)
    report(walker, { path: listAt.path, message: `must be a list, and this is ${nameOfType(list)}` });
  const items = membersOf(list).flatMap((member): Type[] =>
    member.kind === 'list' ? [member.item] : member.kind === 'any' ? [ANY] : [],
  );
  const level: LevelTypes = {
    id: ++walker.levels,
    parent: at.level,
    item: { name: step.as ?? 'item', type: items.length === 0 ? ANY : union(items) },
    results: new Map(),
    caught: at.level.caught,
  };
  const inner = guard.inner.fork();
  const last = walkList(step.steps, [...at.path, 'steps'], level, inner, walker);
  if (step.breakWhen !== undefined) {
    const wanted = guardNode(step.breakWhen, { level, place: inner, path: [...at.path, 'breakWhen'] }, walker);
    if (wanted) infer(wanted.node, wanted.context);
  }
  // An item whose last step is another block has the output of the last step that ran in it. An item that failed has null.
  const item = hasOutput(step.steps.at(-1)) ? (step.continueOnError ? union([last, NULL]) : last) : ANY;
  const output = step.collect === false ? NUMBER : listOf(step.breakWhen === undefined ? item : union([item, NULL]));
  return finish(step.name, output, guard, at, walker, {
    canFail: (step.continueOnError ?? false) || hasHandled(step, walker),
    keepsOutput: true,
  });
}

export function walkParallel(step: ParallelStep, at: At, walker: Walker): Type {
  const guard = guarded(step.condition, at, [...at.path, 'condition'], walker);
  const isRace = (step.waitFor ?? 'all') !== 'all';
  const isSure = !isRace && !step.continueOnError && !guard.isConditional && !hasHandled(step, walker);
  const labels: string[] = [];
  const outputs: Type[] = [];
  step.parallel.forEach((branch, i) => {
    const inner = guard.inner.fork();
    const last = walker.walkStep(branch, [...at.path, 'parallel', i], at.level, inner, walker);
    labels.push(labelOf(branch) ?? String(i));
    outputs.push(hasOutput(branch) ? last : ANY);
    const names = stepNames([branch], walker);
    forgetAll(names, at.level, at.place);
    // Only the steps of the branch: what its conditions say of other steps holds only inside.
    for (const inside of names) {
      const key = keyOf(at.level.id, inside);
      const status = inner.status(key);
      at.place.setStatus(key, isSure ? status : status | NOT_RUN | FAILED | SKIPPED);
    }
  });
  const output = isRace
    ? recordOf([
        ['winner', required(union([...labels.map(literal), NULL]))],
        ['output', required(union([...outputs, NULL]))],
      ])
    : recordOf(
        labels.map((label, i) => [
          label,
          required(isSure || guard.isConditional ? (outputs[i] as Type) : union([outputs[i] as Type, NULL])),
        ]),
      );
  return finish(step.name, output, guard, at, walker, {
    canFail: (step.continueOnError ?? false) || hasHandled(step, walker),
    keepsOutput: true,
  });
}

export function walkWhile(step: WhileStep, at: At, walker: Walker): Type {
  const { place, level } = at;
  const guard = guardNode(step.while, { ...at, path: [...at.path, 'while'] }, walker);
  // The first walk finds the results of a round, which the second walk may read from the round before.
  const wasQuiet = walker.quiet;
  walker.quiet = true;
  const first = place.fork();
  const names = stepNames(step.steps, walker);
  for (const name of names) {
    level.results.set(name, { output: ANY, keepsOutput: false, why: `\`${name}\` may not have run`, isGuess: true });
    first.setStatus(keyOf(level.id, name), ALL);
  }
  // Inside the first walk of a loop around it, one walk is enough: otherwise the time would double with each loop inside a loop.
  if (!wasQuiet) walkList(step.steps, [...at.path, 'steps'], level, first, walker);
  walker.quiet = wasQuiet;
  const round = place.fork();
  for (const name of names) {
    const key = keyOf(level.id, name);
    const after = first.status(key);
    round.setStatus(key, after | NOT_RUN | (walker.handled.has(name) ? FAILED : 0));
  }
  const before = round.fork();
  if (guard) {
    infer(guard.node, { ...guard.context, place: before });
    assume(guard.node, true, { ...guard.context, place: before });
  }
  walkList(step.steps, [...at.path, 'steps'], level, before, walker);
  const after = round.fork();
  if (guard) assume(guard.node, false, { ...guard.context, place: after });
  forgetAll(names, level, place);
  for (const [key, status] of round.changed()) place.setStatus(key, status);
  for (const [key, status] of after.changed()) place.setStatus(key, status);
  return ANY;
}
