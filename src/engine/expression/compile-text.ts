/** Compiles texts that contain `${...}`. */

import type { Json } from '../base/json.ts';
import { type CompiledPart, compilePart } from './compile-expression.ts';
import type { CompiledExpression, CompileOptions } from './compiled-expression.ts';
import type { Evaluate, Evaluation } from './evaluation.ts';
import { failureAt } from './evaluation-problem.ts';
import { joinTexts, toText } from './to-text.ts';
import { ExpressionSyntaxError } from './expression-syntax-error.ts';
import { MAX_PARTS } from './limits.ts';

export interface CompiledText<E extends Evaluation = Evaluation> extends CompiledExpression<E> {
  /** Whether the text contains an expression. Without one it is plain text. */
  readonly hasExpressions: boolean;
}

/**
 * Compiles a text. A text that is one whole `${...}` keeps the type of the value. Otherwise the result is text, in which null
 * is '' and objects are JSON. `$${` writes `${`. The result of an expression is never searched for expressions again.
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
      throw new ExpressionSyntaxError(`more than ${MAX_PARTS} expressions are in one text; split it`, open, 2);
    }
    literals.push(literal + text.slice(position, open));
    literal = '';
    const part = compilePart(text, open + 2, true, options);
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

/** @param literals - the texts around the parts, one more than `parts` */
function joinParts<E extends Evaluation>(
  source: string,
  literals: readonly string[],
  parts: readonly CompiledPart<E>[],
): Evaluate<E> {
  const [head = '', ...tails] = literals;
  const site = { text: source, start: 0, end: source.length };
  return (evaluation) => {
    let text = head;
    for (let i = 0; i < tails.length; i++) {
      const value = (parts[i] as CompiledPart<E>).evaluate(evaluation);
      try {
        text = joinTexts(text, toText(value, evaluation), evaluation) + (tails[i] as string);
      } catch (error) {
        throw failureAt(site, 0, error);
      }
    }
    return text;
  };
}
