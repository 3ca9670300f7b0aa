/** The parser's place in its tokens, and how it moves and complains. */

import { MAX_DEPTH } from '../json.ts';
import type { Node } from './ast.ts';
import { ExpressionSyntaxError } from './expression-syntax-error.ts';
import type { Token } from './lexer.ts';

/** What the parsing functions share. */
export interface ParserState {
  readonly tokens: readonly Token[];
  position: number;
  depth: number;
  /** Nodes made so far: what one evaluation costs at most, functions' own work apart. */
  nodes: number;
  // `a ?? (b || c)` is clear, `a ?? b || c` is not; the tree alone doesn't tell them apart.
  readonly grouped: Set<Node>;
}

export function peek(state: ParserState): Token {
  return state.tokens[Math.min(state.position, state.tokens.length - 1)] as Token;
}

export function takeIf(state: ParserState, operator: string): boolean {
  const token = peek(state);
  if (token.kind !== 'operator' || token.text !== operator) return false;
  state.position++;
  return true;
}

export function take(state: ParserState, operator: string, expected: string): void {
  if (!takeIf(state, operator)) throw unexpected(peek(state), expected);
}

export function previousEnd(state: ParserState): number {
  return (state.tokens[state.position - 1] as Token).end;
}

/** A token that doesn't fit, and what would have. */
export function unexpected(token: Token, expected: string): ExpressionSyntaxError {
  const suggestion = token.kind === 'name' && Object.hasOwn(WORDS, token.text) ? WORDS[token.text] : undefined;
  const found = token.kind === 'end' ? 'the expression ends here' : `found ${describeToken(token)}`;
  const hint = suggestion ? `; write ${suggestion}` : '';
  return new ExpressionSyntaxError(
    `expected ${expected}, but ${found}${hint}`,
    token.index,
    token.end - token.index,
    suggestion,
  );
}

const WORDS: Readonly<Record<string, string>> = { and: '&&', or: '||', not: '!', is: '==', eq: '==' };

function describeToken(token: Token): string {
  if (token.kind === 'string') return 'a quoted text';
  return token.kind === 'number' ? `the number ${token.number}` : token.text;
}

// The opening bracket is taken already. A comma may stand before the closing one.
export function parseList<T>(state: ParserState, close: string, parseItem: () => T): T[] {
  const items: T[] = [];
  deepen(state);
  while (!takeIf(state, close)) {
    items.push(parseItem());
    if (takeIf(state, ',')) continue;
    take(state, close, `, or the closing ${close}`);
    break;
  }
  state.depth--;
  return items;
}

/** Called before every recursion. */
export function deepen(state: ParserState): void {
  if (++state.depth <= MAX_DEPTH) return;
  const token = peek(state);
  const message = `the expression is nested deeper than ${MAX_DEPTH} levels; split it over several outputs or steps`;
  throw new ExpressionSyntaxError(message, token.index, token.end - token.index);
}
