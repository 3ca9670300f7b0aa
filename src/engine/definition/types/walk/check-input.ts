/** Whether what a step gives fits the declared input of what it runs. */

import { suggestName } from '../../../base/suggest-name.ts';
import type { Path } from '../../source/problem.ts';
import { intersects, isNever, nameOfType, type Type, withoutNull } from '../type.ts';
import { report, type Walker } from './walker.ts';

/** The declared input of what a step runs. */
export interface WantedInput {
  /** What the step runs, for messages. */
  readonly of: string;
  readonly type: Type;
  /** The fields without which it is refused. */
  readonly needed: ReadonlySet<string>;
}

/** The fields that a value of the type always has. */
export function neededFields(type: Type): ReadonlySet<string> {
  const fields = type.kind === 'record' ? [...type.fields] : [];
  return new Set(fields.flatMap(([name, { optional }]) => (optional ? [] : [name])));
}

/** @param path - of the step's `input`, if the step has one */
export function checkInput(
  { of, type: wanted, needed }: WantedInput,
  given: Type,
  { path, written }: { readonly path: Path; readonly written: boolean },
  walker: Walker,
): void {
  const at = written ? path : path.slice(0, -1);
  if (given.kind !== 'record' || wanted.kind !== 'record') {
    if (intersects(given, wanted) || isNever(given)) return;
    const message = `the input of ${of} is ${nameOfType(withoutNull(wanted))}, and this is ${nameOfType(given)}`;
    report(walker, { path: at, message });
    return;
  }
  for (const [name, { type }] of wanted.fields) {
    const own = given.fields.get(name)?.type;
    if (own === undefined) {
      if (!needed.has(name) || given.rest !== 'closed') continue;
      const message = `${of} requires the input \`${name}\``;
      const undeclared = [...given.fields.keys()].filter((key) => !wanted.fields.has(key));
      const near = written ? suggestName(name, undeclared) : undefined;
      report(walker, {
        message,
        ...(near === undefined ? { path: at } : { path: [...at, near], suggestion: name, key: true }),
      });
    } else if (!intersects(own, type) && !isNever(own)) {
      const message = `input \`${name}\` of ${of} is ${nameOfType(withoutNull(type))}, and this is ${nameOfType(own)}`;
      report(walker, { path: written ? [...at, name] : at, message });
    }
  }
}
