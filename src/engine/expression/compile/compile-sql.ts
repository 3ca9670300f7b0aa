/** Compiles the text of an SQL query, in which each `${...}` becomes a bound parameter. */

import type { Json } from '../../base/json/json.ts';
import type { Evaluation } from '../evaluation.ts';
import { ExpressionSyntaxError } from '../syntax/expression-syntax-error.ts';
import { type CompiledText, splitText, summary } from './compile-text.ts';
import type { CompileOptions } from './compiled-expression.ts';
import { scanSql } from './scan-sql.ts';

/**
 * The value of the query is `{ strings, values }`: the texts around the expressions, and the values of the expressions.
 *
 * @throws ExpressionSyntaxError for an expression where no value can stand, and for a second statement
 */
export function compileSql<E extends Evaluation>(text: string, options: CompileOptions<E>): CompiledText<E> {
  const { literals: strings, parts } = splitText(text, options);
  const problem = scanSql(strings);
  if (problem) {
    const part = problem.gap === undefined ? undefined : parts[problem.gap];
    if (part) {
      const end = part.end + 1;
      throw new ExpressionSyntaxError(
        `\`${shorten(text.slice(part.open, end))}\` ${problem.message}`,
        part.open,
        end - part.open,
      );
    }
    throw new ExpressionSyntaxError(problem.message, offsetOf(text, problem.text, problem.index, parts), 1);
  }
  return {
    source: text,
    evaluate(evaluation) {
      const values: Json[] = parts.map(({ evaluate }) => evaluate(evaluation));
      return { strings: [...strings], values };
    },
    ...summary(parts),
    hasExpressions: parts.length > 0,
    isWhole: false,
  };
}

const MAX_SHOWN = 60;

function shorten(expression: string): string {
  return expression.length > MAX_SHOWN ? `${expression.slice(0, MAX_SHOWN)}...` : expression;
}

/** The place of an index of one of the texts. Each `$${` before it is one character longer in the source. */
function offsetOf(text: string, segment: number, index: number, parts: readonly { readonly end: number }[]): number {
  const start = segment === 0 ? 0 : (parts[segment - 1]?.end ?? 0) + 1;
  let at = start;
  for (let done = 0; done < index; done++) at += text.startsWith('$${', at) ? 2 : 1;
  return at;
}
