/** The types of steps without a block: `wait`, `sleep`, and the start of another ensemble. */

import { suggestName } from '../../../base/suggest-name.ts';
import type { Path, Problem } from '../../source/problem.ts';
import type { EnsembleStep, SleepStep, WaitStep } from '../../../ensemble/ensemble.ts';
import {
  ANY,
  intersects,
  isNever,
  mayBe,
  NUMBER,
  nameOfType,
  nullByAccident,
  type RecordType,
  recordOf,
  required,
  STRING,
  type Type,
  union,
  withoutNull,
} from '../type.ts';
import { finish, guarded } from './guard.ts';
import { valueType } from './value-type.ts';
import { type At, type EnsembleTypes, report, type Walker } from './walker.ts';

export function walkWait(step: WaitStep, at: At, walker: Walker): Type {
  const guard = guarded(step.condition, at, [...at.path, 'condition'], walker);
  const output =
    step.onTimeout === 'continue' ? union([ANY, nullByAccident(`no signal \`${step.wait}\` may come in time`)]) : ANY;
  if (typeof step.timeout === 'string')
    checkDuration(step.timeout, { ...at, place: guard.inner, path: [...at.path, 'timeout'] }, walker);
  return finish(step.name, output, guard, at, walker, { canFail: false });
}

export function walkSleep(step: SleepStep, at: At, walker: Walker): Type {
  const guard = guarded(step.condition, at, [...at.path, 'condition'], walker);
  const { sleep } = step;
  if (typeof sleep === 'string')
    checkDuration(sleep, { ...at, place: guard.inner, path: [...at.path, 'sleep'] }, walker);
  return finish(step.name, NUMBER, guard, at, walker, { canFail: false });
}

function checkDuration(text: string, at: At, walker: Walker): void {
  const type = valueType(text, at, walker);
  if (!text.includes('${') || mayBe(type, ['string', 'number']) || at.place.dead) return;
  report(walker, { path: at.path, message: `must be a duration, and this is ${nameOfType(type)}` });
}

export function walkChild(step: EnsembleStep, at: At, walker: Walker): Type {
  const guard = guarded(step.condition, at, [...at.path, 'condition'], walker);
  const inner = { ...at, place: guard.inner, path: [...at.path, 'input'] };
  const input = valueType(step.input ?? {}, inner, walker);
  const types = walker.child(step.ensemble);
  if (types && !guard.inner.dead) checkChildInput(step, input, types, inner.path, walker);
  const output = step.detached ? recordOf([['executionId', required(STRING)]]) : (types?.outputs ?? ANY);
  return finish(step.name ?? step.ensemble, output, guard, at, walker, { canFail: step.continueOnError ?? false });
}

function checkChildInput(
  step: EnsembleStep,
  given: Type,
  { inputs: wanted, needed }: EnsembleTypes,
  path: Path,
  walker: Walker,
): void {
  if (given.kind !== 'record' || wanted.kind !== 'record') return;
  for (const [name, { type }] of wanted.fields) {
    const own = given.fields.get(name)?.type;
    if (own === undefined) {
      if (needed.has(name) && given.rest === 'closed') report(walker, missingInput(step, name, given, wanted, path));
    } else if (!intersects(own, type) && !isNever(own)) {
      const message = `input \`${name}\` of ensemble \`${step.ensemble}\` is ${nameOfType(withoutNull(type))}, and this is ${nameOfType(own)}`;
      report(walker, { path: [...path, name], message });
    }
  }
}

function missingInput(step: EnsembleStep, name: string, given: RecordType, wanted: RecordType, path: Path): Problem {
  const message = `ensemble \`${step.ensemble}\` requires the input \`${name}\``;
  const undeclared = [...given.fields.keys()].filter((key) => !wanted.fields.has(key));
  const near = suggestName(name, undeclared);
  if (near !== undefined) return { path: [...path, near], message, suggestion: name, key: true };
  return { path: step.input === undefined ? path.slice(0, -1) : path, message };
}
