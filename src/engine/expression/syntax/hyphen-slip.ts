/** Explains names with a hyphen that are read as a subtraction. */

import { suggestName } from '../../base/suggest-name.ts';
import type { CompileContext } from '../compile/compile-context.ts';
import type { Evaluation } from '../evaluation.ts';
import type { ChainNode, NameNode, Node } from './ast.ts';
import { ExpressionSyntaxError } from './expression-syntax-error.ts';

const MAX_WORD_LENGTH = 64;

/** @returns a better error than `problem` when the name is part of a word with a hyphen */
export function findHyphenSlip<E extends Evaluation>(
  node: NameNode,
  problem: string,
  context: CompileContext<E>,
): ExpressionSyntaxError | undefined {
  const { text, start, end } = context.site;
  let from = node.index;
  while (from > Math.max(start, node.index - MAX_WORD_LENGTH) && /[\w$-]/.test(text[from - 1] as string)) from--;
  const word = /^[\w$-]+/.exec(text.slice(from, Math.min(end, node.index + MAX_WORD_LENGTH)))?.[0] ?? '';
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
  const suggestion = suggestName(word, context.names.hyphenated);
  if (!suggestion) return undefined;
  return new ExpressionSyntaxError(`there is no ${word}; did you mean ${suggestion}?`, from, word.length, suggestion);
}

/** Warns about `input.first-name` when `name` is a known name: it is valid, but hardly anybody means a subtraction there. */
export function warnOfHyphens<E extends Evaluation>(node: ChainNode, context: CompileContext<E>): void {
  let left = node.first;
  for (const { operator, index, operand } of node.rest) {
    if (operator === '-' && operand.kind === 'name' && operand.index === index + 1) warnOfHyphen(left, index, context);
    left = operand;
  }
}

function warnOfHyphen<E extends Evaluation>(left: Node, hyphen: number, context: CompileContext<E>): void {
  const { names, site, warnings } = context;
  if (left.kind === 'name' && names.readsData && left.end === hyphen) {
    const rest = /^[\w$-]+/.exec(site.text.slice(hyphen, Math.min(site.end, hyphen + MAX_WORD_LENGTH)))?.[0] ?? '';
    const word = `${left.name}${rest}`;
    const message = `\`${word}\` is read as a subtraction; a field with a hyphen in its name can't be read here: rename it, or write a subtraction with spaces around the -`;
    warnings.push({ message, index: left.index, length: word.length });
    return;
  }
  const link = left.kind === 'member' ? left.links.at(-1) : undefined;
  // An author who writes `['first']-name` or `first - name` means a subtraction.
  if (left.kind !== 'member' || typeof link?.key !== 'string' || left.end !== hyphen) return;
  if (site.text[hyphen - 1] === ']') return;
  const from = hyphen - link.key.length;
  const word = /^[\w$-]+/.exec(site.text.slice(from, Math.min(site.end, hyphen + MAX_WORD_LENGTH)))?.[0] ?? '';
  const keys = left.links.slice(0, -1).map(({ key }) => key);
  const path = keys.filter((key) => typeof key !== 'object');
  if (left.object.kind === 'name' && path.length === keys.length) {
    // The object has no such key, so it can only be a subtraction.
    if ('problem' in names.resolve(left.object.name, [...path, word])) return;
  }
  const message = `\`${word}\` is read as a subtraction; a key with a hyphen is written ['${word}'], a subtraction with spaces around the -`;
  warnings.push({ message, index: from, length: word.length, suggestion: `['${word}']` });
}
