/** Bodies with `{{ ... }}` in them: the same expressions, in brackets that HTML and prose rarely use. */

import { type CompiledPart, compilePart } from './compile-expression.ts';
import type { CompiledText } from './compile-text.ts';
import type { CompileOptions } from './compiled-expression.ts';
import type { Evaluation } from './evaluation.ts';
import { ExpressionSyntaxError } from './expression-syntax-error.ts';
import { joinParts } from './join-parts.ts';
import { MAX_PARTS } from './limits.ts';

export interface TemplateOptions<E extends Evaluation> extends CompileOptions<E> {
  /** Whether every value is escaped for HTML, in text and in quoted attributes alike. There is no way around it. */
  readonly html: boolean;
}

/**
 * Compiles a body. The result is always text, also when it is one `{{ ... }}`.
 *
 * @throws ExpressionSyntaxError with the place in `text`
 */
export function compileTemplate<E extends Evaluation>(text: string, options: TemplateOptions<E>): CompiledText<E> {
  const literals: string[] = [];
  const parts: CompiledPart<E>[] = [];
  let position = 0;
  for (let open = text.indexOf('{{'); open >= 0; open = text.indexOf('{{', position)) {
    if (parts.length === MAX_PARTS) {
      throw new ExpressionSyntaxError(`more than ${MAX_PARTS} expressions stand in one body; split it`, open, 2);
    }
    literals.push(text.slice(position, open));
    const part = compilePart(text, open + 2, '{{', options);
    if (text[part.end + 1] !== '}') {
      throw new ExpressionSyntaxError('{{ is closed by a single }, two are expected', part.end, 1, '}}');
    }
    parts.push(part);
    position = part.end + 2;
  }
  literals.push(text.slice(position));
  return {
    source: text,
    evaluate: parts.length === 0 ? () => text : joinParts(text, literals, parts, options.html ? escapeHtml : undefined),
    references: parts.flatMap(({ references }) => references),
    warnings: parts.flatMap(({ warnings }) => warnings),
    constant: parts.every(({ constant }) => constant),
    hasExpressions: parts.length > 0,
  };
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}
