/** Splits an expression into tokens in one pass, which also finds the end of an expression inside `${...}`. */

import { ExpressionSyntaxError } from './expression-syntax-error.ts';
import { MAX_EXPRESSION_LENGTH } from './limits.ts';
import { readNumber, readString } from './read-literal.ts';

type TokenKind = 'name' | 'number' | 'string' | 'operator' | 'end';

export interface Token {
  readonly kind: TokenKind;
  /** A name, an operator or the value of a string; empty at the end. */
  readonly text: string;
  /** The value of a number. */
  readonly number: number;
  readonly index: number;
  readonly end: number;
}

/** The bracket before an expression inside a text; empty for an expression that is the whole text. */
export type Opener = '' | '${' | '{{';

interface LexerInput {
  readonly text: string;
  readonly start: number;
  /** What is before `start`. After a bracket the tokens end at the `}` that closes it, otherwise at the end of the text. */
  readonly opener: Opener;
  readonly hyphenated: readonly string[];
}

// Longer operators are first, so that the first match is the right one.
const OPERATORS = [
  ...['===', '!==', '=>', '==', '!=', '<=', '>=', '&&', '||', '??'],
  ...['+', '-', '*', '/', '%', '<', '>', '!', '?', ':', '.', ',', '(', ')', '[', ']', '{', '}'],
];

// Syntax of other languages, and what to write instead.
const REFUSED: readonly (readonly [string, string])[] = [
  ['=', 'an expression can not assign; compare with =='],
  ['&', 'there is no &; write &&'],
  ['|', 'there is no |; write ||, or call a function as in upper(name)'],
  ['#', '# has no meaning in an expression: there are no blocks such as #if; write ? : or call a function'],
  ['`', "template literals are not part of the language; join with +, quote with '"],
  ['$', '${ can not be used inside an expression; write the whole as one expression'],
];

/** Splits one expression into tokens. The last token is `end`, at the closing bracket or the end of the text. */
export function tokenize(input: LexerInput): Token[] {
  const { text, start, opener } = input;
  const bracketed = opener !== '';
  const tokens: Token[] = [];
  let position = start;
  let braces = 0;
  for (;;) {
    while (position < text.length && isSpace(text.charCodeAt(position))) position++;
    if (position - start > MAX_EXPRESSION_LENGTH) throw tooLongExpression(start);
    if (position >= text.length) {
      if (bracketed) throw unclosedBracket(start, opener);
      tokens.push({ kind: 'end', text: '', number: 0, index: position, end: position });
      return tokens;
    }
    const token = readToken(input, position, tokens[tokens.length - 1]);
    if (token.text === '{' && token.kind === 'operator') braces++;
    if (token.text === '}' && token.kind === 'operator' && --braces < 0 && bracketed) {
      if (opener === '{{' && text[position + 1] !== '}') throw unclosedBracket(start, opener);
      tokens.push({ kind: 'end', text: '', number: 0, index: position, end: position });
      return tokens;
    }
    tokens.push(token);
    position = token.end;
  }
}

function readToken(input: LexerInput, index: number, previous: Token | undefined): Token {
  const { text } = input;
  const code = text.charCodeAt(index);
  if (isNameStart(code) && !(code === 36 && text.charCodeAt(index + 1) === 123)) {
    const afterDot = previous?.kind === 'operator' && previous.text === '.';
    const end = nameEnd(text, index, afterDot ? [] : input.hyphenated);
    return { kind: 'name', text: text.slice(index, end), number: 0, index, end };
  }
  if (isDigit(code)) {
    const { value, end } = readNumber(text, index);
    return { kind: 'number', text: '', number: value, index, end };
  }
  if (code === 34 || code === 39) {
    const { value, end } = readString(text, index);
    return { kind: 'string', text: value, number: 0, index, end };
  }
  if (text.startsWith('?.', index)) {
    throw new ExpressionSyntaxError('there is no ?. here; write a plain dot: a member of null is null', index, 2, '.');
  }
  for (const operator of OPERATORS) {
    if (text.startsWith(operator, index)) {
      return { kind: 'operator', text: operator, number: 0, index, end: index + operator.length };
    }
  }
  throw unexpectedCharacter(text, index);
}

// When `fetch-user` is declared, `fetch-user.output` begins with that name. The longest matching declared name wins.
function nameEnd(text: string, index: number, hyphenated: readonly string[]): number {
  let end = index + 1;
  while (isNamePart(text.charCodeAt(end)) && !text.startsWith('${', end)) end++;
  if (text.charCodeAt(end) !== 45) return end;
  for (const name of hyphenated) {
    const candidate = index + name.length;
    if (candidate > end && text.startsWith(name, index) && !isNamePart(text.charCodeAt(candidate))) end = candidate;
  }
  return end;
}

function isSpace(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function isNameStart(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95 || code === 36;
}

function isNamePart(code: number): boolean {
  return isNameStart(code) || isDigit(code);
}

function unexpectedCharacter(text: string, index: number): ExpressionSyntaxError {
  for (const [start, message] of REFUSED) {
    if (text.startsWith(start, index)) return new ExpressionSyntaxError(message, index, start.length);
  }
  const character = String.fromCodePoint(text.codePointAt(index) as number);
  const code = `U+${(character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}`;
  const printable = /^[\x21-\x7e]$/.test(character);
  return new ExpressionSyntaxError(
    printable
      ? `${character} has no meaning in an expression`
      : `the character ${code} has no meaning in an expression: names are ASCII`,
    index,
    character.length,
  );
}

function tooLongExpression(start: number): ExpressionSyntaxError {
  const message = `the expression is longer than ${MAX_EXPRESSION_LENGTH} characters; split it or put the work into a script`;
  return new ExpressionSyntaxError(message, start, 0);
}

function unclosedBracket(start: number, opener: Opener): ExpressionSyntaxError {
  const message =
    opener === '{{'
      ? "{{ is not closed by }}; to write the two characters, use {{ '{{' }}"
      : '${ is not closed by }; to write the two characters, use $${';
  return new ExpressionSyntaxError(message, start - 2, 2);
}
