/** Compiles texts that contain `${...}`, and templates, which contain `{{ ... }}` too. */

import { escapeHtml } from '../../base/escape-html.ts';
import type { Json } from '../../base/json/json.ts';
import type { Evaluate, Evaluation } from '../evaluation.ts';
import { failureAt } from '../evaluation-problem.ts';
import { ExpressionSyntaxError } from '../syntax/expression-syntax-error.ts';
import { MAX_PARTS } from '../syntax/limits.ts';
import { joinTexts, toText } from '../to-text.ts';
import { type CompiledPart, compilePart } from './compile-expression.ts';
import type { CompiledExpression, CompileOptions, NameResolver } from './compiled-expression.ts';

export interface CompiledText<E extends Evaluation = Evaluation> extends CompiledExpression<E> {
  /** Whether the text contains an expression. Without one it is plain text. */
  readonly hasExpressions: boolean;
  /** Whether the text is one whole `${...}`. */
  readonly isWhole: boolean;
}

/** How the `{{ ... }}` of a template are read. */
export interface TemplateOptions<E extends Evaluation> {
  readonly names: NameResolver<E>;
  /** Whether their values are escaped for HTML. */
  readonly escapes: boolean;
}

/** One expression of a text, with its bracket. */
interface TextPart<E extends Evaluation> extends CompiledPart<E> {
  /** The index of the bracket. */
  readonly open: number;
  /** Whether its brackets are `{{ }}`. */
  readonly isFilled: boolean;
}

/** A text, cut at its expressions. */
export interface SplitText<E extends Evaluation> {
  /** The texts around the parts, one more than `parts`. */
  readonly literals: readonly string[];
  readonly parts: readonly TextPart<E>[];
}

/**
 * Compiles a text. A text that is one whole `${...}` keeps the type of the value. Otherwise the result is text, in which null
 * is '' and objects are JSON. `$${` writes `${`. The result of an expression is never searched for expressions again.
 *
 * @param template - for a text that may contain `{{ ... }}`
 * @throws ExpressionSyntaxError with the place in `text`
 */
export function compileText<E extends Evaluation>(
  text: string,
  options: CompileOptions<E>,
  template?: TemplateOptions<E>,
): CompiledText<E> {
  const { literals, parts } = splitText(text, options, template);
  const [part] = parts;
  const isWhole = parts.length === 1 && part?.isFilled === false && literals.every((literal) => literal === '');
  const value: Json = literals[0] ?? '';
  const join = () => joinParts(text, literals, parts, template?.escapes ?? false);
  return {
    source: text,
    evaluate: part ? (isWhole ? part.evaluate : join()) : () => value,
    ...summary(parts),
    hasExpressions: part !== undefined,
    isWhole,
  };
}

/** Compiles the expressions of a text. @throws ExpressionSyntaxError with the place in `text` */
export function splitText<E extends Evaluation>(
  text: string,
  options: CompileOptions<E>,
  template?: TemplateOptions<E>,
): SplitText<E> {
  const brackets = template ? /\$\{|\{\{/g : /\$\{/g;
  const literals: string[] = [];
  const parts: TextPart<E>[] = [];
  let literal = '';
  let position = 0;
  for (;;) {
    brackets.lastIndex = position;
    const found = brackets.exec(text);
    if (!found) break;
    const open = found.index;
    const isFilled = found[0] === '{{';
    if (!isFilled && open > position && text[open - 1] === '$') {
      literal += `${text.slice(position, open - 1)}\${`;
      position = open + 2;
      continue;
    }
    if (parts.length === MAX_PARTS) {
      throw new ExpressionSyntaxError(`more than ${MAX_PARTS} expressions are in one text; split it`, open, 2);
    }
    if (isFilled && text[open + 2] === '{') throw new ExpressionSyntaxError(THREE_BRACES, open, 3);
    literals.push(literal + text.slice(position, open));
    literal = '';
    const names = isFilled && template ? template.names : options.names;
    const part = compilePart(text, open + 2, isFilled ? '{{' : '${', { ...options, names });
    const evaluate = options.checkPart?.(text, open + 2, part) ?? part.evaluate;
    parts.push({ ...part, evaluate, open, isFilled });
    position = part.end + (isFilled ? 2 : 1);
  }
  literals.push(literal + text.slice(position));
  return { literals, parts };
}

const THREE_BRACES =
  '{{{ has no meaning; write {{ ... }}, or ${...} for a value that is inserted as it is, without escapes for HTML';

/** What the parts of a text read. */
export function summary<E extends Evaluation>(parts: readonly CompiledPart<E>[]) {
  return {
    references: parts.flatMap(({ references }) => references),
    warnings: parts.flatMap(({ warnings }) => warnings),
    constant: parts.every(({ constant }) => constant),
  };
}

function joinParts<E extends Evaluation>(
  source: string,
  literals: readonly string[],
  parts: readonly TextPart<E>[],
  escapes: boolean,
): Evaluate<E> {
  const [head = '', ...tails] = literals;
  const site = { text: source, start: 0, end: source.length };
  return (evaluation) => {
    let text = head;
    for (let i = 0; i < tails.length; i++) {
      const { evaluate, isFilled } = parts[i] as TextPart<E>;
      evaluation.missing = undefined;
      const value = evaluate(evaluation);
      if (isFilled && value === null && evaluation.missing !== undefined)
        evaluation.refuseMissing?.(evaluation.missing);
      try {
        const inserted = toText(value, evaluation);
        text =
          joinTexts(text, escapes && isFilled ? escapeHtml(inserted) : inserted, evaluation) + (tails[i] as string);
      } catch (error) {
        throw failureAt(site, 0, error);
      }
    }
    return text;
  };
}
