/** Measures what a frame marks: the whole key or value at a place, as far as its line goes. */

import type { Json } from '../json.ts';

/**
 * How many characters the key or value that starts at a place takes up on its line.
 *
 * @param line - from that place to the end of the line
 * @param value - what it gives, when that is known: tells where unquoted text ends
 */
export function markLength(line: string, value: Json | undefined): number {
  const text = line.trimEnd();
  const first = text[0];
  if (first === '"' || first === "'") return quotedLength(text, first);
  if (first === '[' || first === '{') return collectionLength(text);
  if (first === '|' || first === '>') return (/^[|>][-+0-9]*/.exec(text) as RegExpExecArray)[0].length;
  if (typeof value === 'string' && value !== '' && text.startsWith(value)) return value.length;
  return plainLength(text);
}

function quotedLength(text: string, quote: string): number {
  for (let at = 1; at < text.length; at++) {
    if (text[at] === '\\' && quote === '"') at++;
    else if (text[at] === quote && text[at + 1] === quote && quote === "'") at++;
    else if (text[at] === quote) return at + 1;
  }
  return text.length;
}

// To the bracket that closes it; brackets inside quotes don't count.
function collectionLength(text: string): number {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at] as string;
    if (char === '"' || (char === "'" && /[\s,[{:]/.test(text[at - 1] ?? '')))
      at += quotedLength(text.slice(at), char) - 1;
    else if (char === '[' || char === '{') depth++;
    else if ((char === ']' || char === '}') && --depth === 0) return at + 1;
  }
  return text.length;
}

// Without its value, unquoted text ends where a key, a comment or an entry of a flow collection would.
function plainLength(text: string): number {
  if (/^[-?](\s|$)/.test(text)) return 1;
  const end = /:(?=\s|$)|\s#|[,\]}]/.exec(text)?.index ?? text.length;
  return Math.max(1, text.slice(0, end).trimEnd().length);
}
