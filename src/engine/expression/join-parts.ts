/** Joins the literal pieces of a text with what stands between them. */

import type { CompiledPart } from './compile-expression.ts';
import type { Evaluate, Evaluation } from './evaluation.ts';
import { failureAt } from './evaluation-problem.ts';
import { joinTexts, toText } from './to-text.ts';

/**
 * @param literals - one more than `parts`
 * @param transform - applied to the text of every part, such as the escaping of HTML
 */
export function joinParts<E extends Evaluation>(
  source: string,
  literals: readonly string[],
  parts: readonly CompiledPart<E>[],
  transform?: (text: string) => string,
): Evaluate<E> {
  const [head = '', ...tails] = literals;
  const site = { text: source, start: 0, end: source.length };
  return (evaluation) => {
    let text = head;
    for (let i = 0; i < tails.length; i++) {
      const value = (parts[i] as CompiledPart<E>).evaluate(evaluation);
      try {
        const written = toText(value, evaluation);
        text = joinTexts(text, transform ? transform(written) : written, evaluation) + (tails[i] as string);
      } catch (error) {
        throw failureAt(site, 0, error);
      }
    }
    return text;
  };
}
