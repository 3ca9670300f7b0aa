/** Compiles guards: `condition`, `if`, `while`, `switch` and the entries of a route. */

import type { Evaluation } from '../evaluation.ts';
import { ExpressionSyntaxError } from '../syntax/expression-syntax-error.ts';
import { compileExpression, compilePart } from './compile-expression.ts';
import type { CompiledExpression, CompileOptions } from './compiled-expression.ts';

/**
 * Compiles a bare expression, or exactly one `${...}` with optional spaces around it.
 *
 * @throws ExpressionSyntaxError for everything else, such as text mixed with `${...}`, which would always be true
 */
export function compileGuard<E extends Evaluation>(text: string, options: CompileOptions<E>): CompiledExpression<E> {
  const open = text.length - text.trimStart().length;
  if (!text.startsWith('${', open)) return compileExpression(text, options);
  const { evaluate, references, warnings, constant, end } = compilePart(text, open + 2, '${', options);
  const rest = text.slice(end + 1);
  if (rest.trim() !== '') {
    const message =
      'a condition is one expression: text next to ${...} would make it always true; write all of it inside the brackets';
    throw new ExpressionSyntaxError(message, end + 1 + rest.length - rest.trimStart().length, rest.trim().length);
  }
  return { source: text, evaluate, references, warnings, constant };
}
