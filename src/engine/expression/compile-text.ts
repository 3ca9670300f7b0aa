/** Texts with `${...}` in them. */

import type { Json } from '../json.ts';
import { type CompiledPart, compilePart } from './compile-expression.ts';
import type { CompiledExpression, CompileOptions } from './compiled-expression.ts';
import type { Evaluation } from './evaluation.ts';
import { ExpressionSyntaxError } from './expression-syntax-error.ts';
import { joinParts } from './join-parts.ts';
import { MAX_PARTS } from './limits.ts';

export interface CompiledText<E extends Evaluation = Evaluation> extends CompiledExpression<E> {
  /** Whether any expression stands in it; without one it is plain text. */
  readonly hasExpressions: boolean;
}

/**
 * Compiles a text: one whole `${...}` keeps the value's type, otherwise the result is text, in which null is '' and
 * objects are JSON. `$${` writes `${`. What an expression gives is never looked at again.
 *
 * @throws ExpressionSyntaxError with the place in `text`
 */
export function compileText<E extends Evaluation>(text: string, options: CompileOptions<E>): CompiledText<E> {
  const literals: string[] = [];
  const parts: CompiledPart<E>[] = [];
  let literal = '';
  let position = 0;
  for (;;) {
    const open = text.indexOf('${', position);
    if (open < 0) break;
    if (open > position && text[open - 1] === '$') {
      literal += `${text.slice(position, open - 1)}\${`;
      position = open + 2;
      continue;
    }
    if (parts.length === MAX_PARTS) {
      throw new ExpressionSyntaxError(`more than ${MAX_PARTS} expressions stand in one text; split it`, open, 2);
    }
    literals.push(literal + text.slice(position, open));
    literal = '';
    const part = compilePart(text, open + 2, '${', options);
    parts.push(part);
    position = part.end + 1;
  }
  literals.push(literal + text.slice(position));
  return toCompiledText(text, literals, parts);
}

function toCompiledText<E extends Evaluation>(
  source: string,
  literals: readonly string[],
  parts: readonly CompiledPart<E>[],
): CompiledText<E> {
  const [part] = parts;
  if (!part) {
    const value: Json = literals[0] ?? '';
    return { source, evaluate: () => value, references: [], warnings: [], constant: true, hasExpressions: false };
  }
  const isWhole = parts.length === 1 && literals.every((literal) => literal === '');
  return {
    source,
    evaluate: isWhole ? part.evaluate : joinParts(source, literals, parts),
    references: parts.flatMap(({ references }) => references),
    warnings: parts.flatMap(({ warnings }) => warnings),
    constant: parts.every(({ constant }) => constant),
    hasExpressions: true,
  };
}
