/** Text for labels of a Mermaid diagram: any text is shown unchanged, and can't end its label or the diagram. */

import { cutText, oneLine } from '../terminal/text.ts';

/**
 * Characters without a meaning in Mermaid, its Markdown or its HTML inside a quoted label. Every other character is written as
 * its code point, which Mermaid converts back when it draws the label.
 */
const PLAIN = /[\p{L}\p{N}\p{M} .,=()!?+'/…_-]/u;
const LETTER = /[\p{L}\p{N}]/u;

/**
 * @param columns - the longest text, in columns; a longer one is cut
 * @returns the text between the quotes of a label
 */
export function mermaidText(text: string, columns: number): string {
  // Mermaid accepts no empty label.
  const chars = [...(cutText(oneLine(text).trim(), columns) || '""')];
  return chars.map((char, i) => (isPlain(char, i, chars) ? char : numbered(char))).join('');
}

function isPlain(char: string, i: number, chars: readonly string[]): boolean {
  if (!PLAIN.test(char)) return false;
  const before = chars[i - 1];
  const after = chars[i + 1];
  // `_word_` is shown in italics; `a_b` is not.
  if (char === '_' || char === '-') return isLetter(before) && isLetter(after);
  // A line that begins with `1.`, `+` or `=` is a list or a heading, and `www.` a link.
  if (i === 0) return LETTER.test(char);
  if (char === '.' || char === ')') return !/^(?:\d+|.*www)$/i.test(chars.slice(0, i).join(''));
  return true;
}

function isLetter(char: string | undefined): boolean {
  return char !== undefined && LETTER.test(char);
}

function numbered(char: string): string {
  const code = char.codePointAt(0) as number;
  // Half of a surrogate pair is not a character.
  return `#${code >= 0xd800 && code <= 0xdfff ? 0xfffd : code};`;
}
