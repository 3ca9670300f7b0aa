/** The types of steps without a block: `wait`, `sleep`, and the start of another ensemble. */

import type { EnsembleStep, SleepStep, WaitStep } from '../../../ensemble/ensemble.ts';
import type { CallNode, Node } from '../../../expression/syntax/ast.ts';
import { mayHaveFields } from '../infer/infer.ts';
import {
  ANY,
  mayBe,
  NUMBER,
  nameOfType,
  nullByAccident,
  recordOf,
  required,
  STRING,
  type Type,
  union,
} from '../type.ts';
import { checkInput } from './check-input.ts';
import { finish, guarded } from './guard.ts';
import { valueType } from './value-type.ts';
import { type At, report, type Walker } from './walker.ts';

export function walkWait(step: WaitStep, at: At, walker: Walker): Type {
  const guard = guarded(step.condition, at, [...at.path, 'condition'], walker);
  const payload = step.fields && !hasOwnForm(step.wait, walker) ? walker.schemas.of(step.fields) : ANY;
  const late = nullByAccident(`no signal \`${step.wait}\` may come in time`);
  const output = step.onTimeout === 'continue' ? union([payload, late]) : payload;
  if (typeof step.timeout === 'string')
    checkDuration(step.timeout, { ...at, place: guard.inner, path: [...at.path, 'timeout'] }, walker);
  return finish(step.name, output, guard, at, walker, { canFail: false });
}

/** Whether a link of the signal may have a form of its own, in place of that of its waits. */
function hasOwnForm(signal: string, walker: Walker): boolean {
  for (const { root } of walker.parsed.withWord('signalUrl'))
    for (const { name, args } of callsIn(root)) {
      const [of, , page] = args;
      const isOther = of?.kind === 'literal' && of.value !== signal;
      if (name === 'signalUrl' && !isOther && mayHaveFields(page)) return true;
    }
  return false;
}

function* callsIn(node: unknown): Iterable<CallNode> {
  if (typeof node !== 'object' || node === null) return;
  if ((node as Node).kind === 'call') yield node as CallNode;
  for (const inner of Object.values(node)) yield* callsIn(inner);
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
  if (types && !guard.inner.dead) {
    const wanted = { of: `ensemble \`${step.ensemble}\``, type: types.inputs, needed: types.needed };
    checkInput(wanted, input, { path: inner.path, written: step.input !== undefined }, walker);
  }
  const output = step.detached ? recordOf([['executionId', required(STRING)]]) : (types?.outputs ?? ANY);
  return finish(step.name ?? step.ensemble, output, guard, at, walker, { canFail: step.continueOnError ?? false });
}
