/** Reads a number or a quoted string of an expression. */

import { ExpressionSyntaxError } from './expression-syntax-error.ts';
import { MAX_EXPRESSION_LENGTH } from './limits.ts';

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

/** Reads a decimal number with a fraction and an exponent as in JSON. @param index - of the first digit */
export function readNumber(text: string, index: number): { value: number; end: number } {
  const pattern = /(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
  pattern.lastIndex = index;
  const match = pattern.exec(text) as RegExpExecArray;
  const end = pattern.lastIndex;
  const value = Number(match[0]);
  const tail = /^[\w$]+/.exec(text.slice(end, end + 20));
  if (tail) {
    const message = `${match[0]}${tail[0]} is not a number: write digits, a fraction such as 0.5, an exponent such as 1e6`;
    throw new ExpressionSyntaxError(message, index, end - index + tail[0].length);
  }
  const isInteger = match[1] === undefined && match[2] === undefined;
  if (!Number.isFinite(value) || (isInteger && !Number.isSafeInteger(value))) {
    const message = `${match[0].slice(0, 40)} is too large to be held exactly; write it as text, in quotes`;
    throw new ExpressionSyntaxError(message, index, end - index);
  }
  return { value, end };
}

/** Reads a string in single or double quotes with the escapes of JSON. @param index - of the opening quote */
export function readString(text: string, index: number): { value: string; end: number } {
  const quote = text[index] as string;
  const last = Math.min(text.length, index + MAX_EXPRESSION_LENGTH);
  let value = '';
  let plain = index + 1;
  for (let i = index + 1; i < last; i++) {
    const character = text[i];
    if (character === quote) return { value: value + text.slice(plain, i), end: i + 1 };
    if (character === '\\') {
      const escaped = readEscape(text, i);
      value += text.slice(plain, i) + escaped.value;
      plain = escaped.end;
      i = escaped.end - 1;
    } else if (character === '\n' || character === '\r') {
      throw unclosedString(quote, index);
    }
  }
  if (last === text.length) throw unclosedString(quote, index);
  throw new ExpressionSyntaxError(`the text is longer than ${MAX_EXPRESSION_LENGTH} characters`, index, 1);
}

function unclosedString(quote: string, index: number): ExpressionSyntaxError {
  const message = `the text is not closed: ${quote} is missing (a line break in it is written \\n)`;
  return new ExpressionSyntaxError(message, index, 1);
}

function readEscape(text: string, index: number): { value: string; end: number } {
  const letter = text[index + 1] ?? '';
  if (letter === 'u') {
    const digits = text.slice(index + 2, index + 6);
    if (/^[0-9a-fA-F]{4}$/.test(digits)) {
      return { value: String.fromCharCode(Number.parseInt(digits, 16)), end: index + 6 };
    }
    throw new ExpressionSyntaxError('\\u takes four hexadecimal digits', index, 2);
  }
  const value = Object.hasOwn(ESCAPES, letter) ? ESCAPES[letter] : undefined;
  if (value === undefined) {
    const message = `\\${letter} is not an escape: use \\\\ \\' \\" \\/ \\b \\f \\n \\r \\t \\uXXXX`;
    throw new ExpressionSyntaxError(message, index, letter ? 2 : 1);
  }
  return { value, end: index + 2 };
}
