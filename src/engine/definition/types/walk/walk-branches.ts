/** The types of blocks that take one of several ways: `if`, `switch` and `try`. */

import type { IfStep, SwitchStep, TryStep } from '../../../ensemble/ensemble.ts';
import type { Node } from '../../../expression/syntax/ast.ts';
import { assume, impliedKey } from '../infer/assume.ts';
import { infer } from '../infer/infer.ts';
import type { InferContext } from '../infer/infer-context.ts';
import { nearestValue } from '../infer/operators.ts';
import { keyOf, type Place } from '../place.ts';
import { ANY, isNever, literal, mayBe, NULL, nameOfType, type Type, withoutNull } from '../type.ts';
import { narrowTo, valuesOf, withoutValue } from '../values-of-type.ts';
import { stepNames } from './agent-of-step.ts';
import { forgetAll, guardNode, isSteady } from './guard.ts';
import { ALL, type At, report, type Walker, walkList } from './walker.ts';

export function walkIf(step: IfStep, at: At, walker: Walker): Type {
  const { place } = at;
  const found = guardNode(step.if, { ...at, path: [...at.path, 'if'] }, walker);
  if (found) infer(found.node, found.context);
  const ways = [
    { steps: step.then, key: 'then', holds: true },
    { steps: step.else ?? [], key: 'else', holds: false },
  ].map(({ steps, key, holds }) => {
    const inner = place.fork();
    if (found) assume(found.node, holds, { ...found.context, place: inner });
    else if (step.if === !holds) inner.dead = true;
    // What the condition implies already need not be noted again.
    const implied = new Map(inner.changed());
    walkList(steps, [...at.path, key], at.level, inner, walker);
    return { inner, holds, implied };
  });
  const wasDead = place.dead;
  walker.fuel -= place.merge(ways.map(({ inner }) => inner));
  place.dead = wasDead;
  if (found && isSteady(step.if as string))
    for (const { inner, holds, implied } of ways) {
      const condition = impliedKey(found.node, holds, found.context);
      for (const [key, status] of inner.changed()) if (implied.get(key) !== status) place.imply(condition, key, status);
    }
  return ANY;
}

export function walkSwitch(step: SwitchStep, at: At, walker: Walker): Type {
  const { place } = at;
  const found = guardNode(step.switch, { ...at, path: [...at.path, 'switch'] }, walker);
  const type = found ? infer(found.node, found.context) : ANY;
  // A value that is written down is compared on purpose.
  const values = found?.node.kind === 'literal' ? undefined : valuesOf(type);
  const forks: Place[] = [];
  const rest = place.fork();
  for (const [name, steps] of Object.entries(step.cases)) {
    const inner = place.fork();
    const meant = values?.find((value) => String(value) === name);
    const isNull = name === '' && mayBe(type, ['null']);
    if (values && meant === undefined && !isNull && !place.dead && !isNever(type)) {
      const source = step.switch as string;
      const message = `this case never runs: \`${stripped(source)}\` is ${nameOfType(isNever(withoutNull(type)) ? NULL : withoutNull(type))}`;
      const suggestion = nearestValue(literal(name), type);
      report(walker, { path: [...at.path, 'cases', name], message, suggestion, key: true });
      inner.dead = true;
    }
    if (found) {
      const value = meant ?? (mayBe(type, ['string']) && !mayBe(type, ['number', 'boolean']) ? name : undefined);
      if (value !== undefined)
        narrowPath(found.node, (one) => narrowTo(one, value), { ...found.context, place: inner });
      if (value !== undefined)
        narrowPath(found.node, (one) => withoutValue(one, value), { ...found.context, place: rest });
    }
    walkList(steps, [...at.path, 'cases', name], at.level, inner, walker);
    forks.push(inner);
  }
  walkList(step.default ?? [], [...at.path, 'default'], at.level, rest, walker);
  const wasDead = place.dead;
  walker.fuel -= place.merge([...forks, rest]);
  place.dead = wasDead;
  return ANY;
}

function stripped(text: string): string {
  return text.trim().replace(/^\$\{\s*|\s*\}$/g, '');
}

function narrowPath(node: Node, change: (type: Type) => Type, context: InferContext): void {
  // `x == value` and `x != value` say the same, and know how to narrow.
  const before = infer(node, { ...context, report: () => {} });
  const after = change(before);
  if (isNever(after) && !isNever(before)) context.place.dead = true;
  const values = valuesOf(after);
  const [value] = values ?? [];
  if (values?.length === 1 && value !== undefined) {
    const text: Node = { kind: 'literal', value, index: 0, end: 0 };
    assume(
      { kind: 'chain', first: node, rest: [{ operator: '==', index: 0, operand: text }], index: 0, end: 0 },
      true,
      context,
    );
  }
}

export function walkTry(step: TryStep, at: At, walker: Walker): Type {
  const { place, level } = at;
  const body = place.fork();
  walkList(step.try, [...at.path, 'try'], level, body, walker);
  const broken = place.fork();
  const tried = new Set(stepNames(step.try, walker));
  const names = [...tried, ...stepNames(step.catch ?? [], walker)];
  const last = stepNames(step.finally ?? [], walker);
  for (const name of tried) broken.setStatus(keyOf(level.id, name), ALL);
  let afterCatch: Place | undefined;
  if (step.catch) {
    afterCatch = broken.fork();
    // `error` is known only inside; the names are those of the level.
    walkList(step.catch, [...at.path, 'catch'], { ...level, caught: true }, afterCatch, walker);
  }
  if (step.finally) {
    const always = place.fork();
    for (const name of names) always.setStatus(keyOf(level.id, name), ALL);
    walkList(step.finally, [...at.path, 'finally'], level, always, walker);
    for (const name of last) place.setStatus(keyOf(level.id, name), always.status(keyOf(level.id, name)));
  }
  forgetAll([...names, ...last], level, place);
  for (const name of names) {
    const key = keyOf(level.id, name);
    const caught = afterCatch ? afterCatch.status(key) | (tried.has(name) ? ALL : 0) : 0;
    place.setStatus(key, body.status(key) | caught);
  }
  return ANY;
}
