/** Conditions of steps, and the result that a step declares when it ends. */

import type { Node } from '../../../expression/syntax/ast.ts';
import type { Path } from '../../source/problem.ts';
import { assume, impliedKey } from '../infer/assume.ts';
import { infer } from '../infer/infer.ts';
import { COMPLETED, FAILED, keyOf, type LevelTypes, NOT_RUN, type Place, SKIPPED } from '../place.ts';
import { NULL, type Type, union } from '../type.ts';
import { type At, contextOf, type Walker } from './walker.ts';

interface Guarded {
  readonly inner: Place;
  readonly isConditional: boolean;
  readonly text: string;
  readonly node: Node | undefined;
}

/** Enters a step with a `condition`: what is known if it holds. */
export function guarded(condition: string | boolean | undefined, at: At, path: Path, walker: Walker): Guarded {
  const inner = at.place.fork();
  if (condition === undefined || condition === true) return { inner, isConditional: false, text: '', node: undefined };
  if (condition === false) inner.dead = true;
  const found = guardNode(condition, { ...at, path }, walker);
  if (found) {
    infer(found.node, found.context);
    assume(found.node, true, { ...found.context, place: inner });
  }
  return { inner, isConditional: true, text: String(condition), node: found?.node };
}

export function guardNode(guard: string | boolean, at: At, walker: Walker) {
  if (typeof guard === 'boolean') return undefined;
  const text = guard.trimEnd();
  const open = text.length - text.trimStart().length;
  const start = text.startsWith('${', open) ? open + 2 : 0;
  const node = walker.parsed.find(text, start)?.root;
  return node && { node, context: contextOf(text, at, walker) };
}

/** Whether a condition has the same value when it is evaluated again. */
export function isSteady(condition: string): boolean {
  return !/\b(?:state|random|now|uuid)\b/.test(condition);
}

/** Forgets what is known about steps that run again, in a round of a loop. */
export function forgetAll(names: readonly string[], { id }: LevelTypes, place: Place): void {
  for (const name of names) if (place.status(keyOf(id, name)) !== NOT_RUN) place.forget(name);
}

/** Declares the result of a step, and what its end may be. */
export function finish(
  name: string | undefined,
  output: Type,
  guard: Guarded,
  at: At,
  walker: Walker,
  how: { canFail: boolean; keepsOutput?: boolean; why?: string },
): Type {
  const mayFail = how.canFail || (name !== undefined && walker.handled.has(name));
  const status = COMPLETED | (mayFail ? FAILED : 0) | (guard.isConditional ? SKIPPED : 0);
  if (name !== undefined) {
    if (!walker.quiet) walker.answers.push({ name, path: at.path, output });
    const before = at.level.results.get(name);
    const why =
      how.why ??
      (guard.isConditional
        ? `\`${name}\` may be skipped`
        : mayFail
          ? `\`${name}\` may have failed`
          : `\`${name}\` may not have run`);
    const known =
      before && !before.isGuess && at.place.status(keyOf(at.level.id, name)) !== NOT_RUN
        ? union([before.output, output])
        : output;
    at.level.results.set(name, { output: known, keepsOutput: how.keepsOutput ?? false, why });
    const key = keyOf(at.level.id, name);
    forgetAll([name], at.level, at.place);
    at.place.setStatus(key, status);
    if (guard.node && isSteady(guard.text)) {
      const context = { text: guard.text.trimEnd(), level: at.level };
      at.place.imply(impliedKey(guard.node, true, context), key, ~SKIPPED);
      at.place.imply(impliedKey(guard.node, false, context), key, SKIPPED);
    }
  }
  if (status !== COMPLETED) return union([output, NULL]);
  // The step has completed in every case, so what its texts require holds after it.
  at.place.merge([guard.inner]);
  return output;
}
