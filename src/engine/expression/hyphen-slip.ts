/** Explains what looks like one word with a hyphen in it, and is read as a subtraction. */

import { suggestName } from '../suggest-name.ts';
import type { ChainNode, NameNode, Node } from './ast.ts';
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

/** Warns of `input.first-name` where `name` is a name: nothing of it is wrong, and nobody means to subtract it. */
export function noteHyphenTraps<E extends Evaluation>(node: ChainNode, context: CompileContext<E>): void {
  let left = node.first;
  for (const { operator, index, operand } of node.rest) {
    if (operator === '-' && operand.kind === 'name' && operand.index === index + 1) noteTrap(left, index, context);
    left = operand;
  }
}

function noteTrap<E extends Evaluation>(left: Node, hyphen: number, context: CompileContext<E>): void {
  const { names, site, warnings } = context;
  const link = left.kind === 'member' ? left.links.at(-1) : undefined;
  // `['first']-name` and `first - name` are written by who means to subtract.
  if (left.kind !== 'member' || typeof link?.key !== 'string' || left.end !== hyphen) return;
  if (site.text[hyphen - 1] === ']') return;
  const from = hyphen - link.key.length;
  const word = /^[\w$-]+/.exec(site.text.slice(from, Math.min(site.end, hyphen + LONGEST_WORD)))?.[0] ?? '';
  const keys = left.links.slice(0, -1).map(({ key }) => key);
  const path = keys.filter((key) => typeof key !== 'object');
  if (left.object.kind === 'name' && path.length === keys.length) {
    // The word is no key there: then a subtraction is all that it can be.
    if ('problem' in names.resolve(left.object.name, [...path, word])) return;
  }
  const message = `\`${word}\` is read as a subtraction; a key with a hyphen is written ['${word}'], a subtraction with spaces around the -`;
  warnings.push({ message, index: from, length: word.length, suggestion: `['${word}']` });
}
