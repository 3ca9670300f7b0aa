/** Refuses null in the values of a config where it would do harm, when a step runs: with the expression, and why it is null. */

import { OrchestratorError } from '../../../base/errors.ts';
import type { Json } from '../../../base/json/json.ts';
import { quoted } from '../../../base/wording.ts';
import type { ExpressionScope } from '../../../compiled/expression-scope.ts';
import type { CompiledPart } from '../../../expression/compile/compile-expression.ts';
import type { NameResolver, PathSegment, Reference } from '../../../expression/compile/compiled-expression.ts';
import type { Evaluate } from '../../../expression/evaluation.ts';
import { readIndex, readKey } from '../../../expression/syntax/read-member.ts';
import { isAt, isInPart, type NeededValue } from '../../../operation/needed-value.ts';

type Part = CompiledPart<ExpressionScope>;

/**
 * @param at - the path of a text in the config
 * @returns the evaluation of one expression of the text; undefined if no value is needed there
 */
export function refuseNull(
  needs: readonly NeededValue[],
  at: readonly PathSegment[],
  names: NameResolver<ExpressionScope>,
): ((text: string, start: number, part: Part) => Evaluate<ExpressionScope>) | undefined {
  const here = needs.filter((need) => !need.accidentOnly && isAt(need, at));
  if (here.length === 0) return undefined;
  return (text, start, { evaluate, references, end }) => {
    const need = here.find((one) => isInPart(one, text.slice(0, start)));
    if (!need) return evaluate;
    const source = text.slice(start, end).trim();
    return (scope) => {
      const value = evaluate(scope);
      if (value !== null) return value;
      const why = reasonOf(references, names, scope);
      const message = `${quoted(source)} is null${why === undefined ? '' : `, because ${why}`}: ${need.what}`;
      throw new OrchestratorError('INVALID_INPUT', message);
    };
  };
}

/** Why the first name of an expression gives null; undefined if the value itself is null. */
function reasonOf(
  [first]: readonly Reference[],
  names: NameResolver<ExpressionScope>,
  scope: ExpressionScope,
): string | undefined {
  if (!first) return undefined;
  const { name, path } = first;
  const [field] = path;
  if (name === 'input') return field === undefined ? undefined : `the input has no ${quoted(String(field))}`;
  const read = (member: string) => readOf(names, name, member)?.(scope);
  if (read('failed') === true) return `${quoted(name)} has failed`;
  if (read('executed') === false) return `${quoted(name)} did not run`;
  const output = field === 'output' ? read('output') : undefined;
  if (output === undefined) return undefined;
  let value: Json = output;
  let shown = `${name}.output`;
  for (const key of path.slice(1)) {
    if (value === null) return `${quoted(shown)} is null`;
    if (Array.isArray(value) && value.length === 0) return `${quoted(shown)} is an empty list`;
    value = typeof key === 'string' ? readKey(value, key) : readIndex(value, key);
    shown += typeof key === 'string' ? `.${key}` : `[${key}]`;
  }
  return undefined;
}

function readOf(
  names: NameResolver<ExpressionScope>,
  name: string,
  member: string,
): Evaluate<ExpressionScope> | undefined {
  const found = names.resolve(name, [member]);
  return 'problem' in found || found.consumed === 0 ? undefined : found.read;
}
