/** Explains an unknown name that came from a hyphen: what looked like one word was read as a subtraction. */

import { suggestName } from '../suggest-name.ts';
import type { NameNode } from './ast.ts';
import type { CompileContext } from './compile-context.ts';
import type { Evaluation } from './evaluation.ts';
import { ExpressionSyntaxError } from './expression-syntax-error.ts';

const LONGEST_WORD = 64;

/** A better error than `problem` where the name is part of a word with a hyphen in it. */
export function findHyphenSlip<E extends Evaluation>(
  node: NameNode,
  problem: string,
  context: CompileContext<E>,
): ExpressionSyntaxError | undefined {
  const { text, start, end } = context.site;
  let from = node.index;
  while (from > Math.max(start, node.index - LONGEST_WORD) && /[\w$-]/.test(text[from - 1] as string)) from--;
  const word = /^[\w$-]+/.exec(text.slice(from, Math.min(end, node.index + LONGEST_WORD)))?.[0] ?? '';
  if (!word.includes('-')) return undefined;
  if (from > start && text[from - 1] === '.') {
    const key = `['${word}']`;
    return new ExpressionSyntaxError(
      `${problem}; a key with a hyphen is written ${key}`,
      node.index,
      node.name.length,
      key,
    );
  }
  const meant = suggestName(word, context.names.hyphenated);
  if (!meant) return undefined;
  return new ExpressionSyntaxError(`there is no ${word}; did you mean ${meant}?`, from, word.length, meant);
}
