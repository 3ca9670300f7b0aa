/** The position of the parser in its tokens, with the functions that move it and report errors. */

import { MAX_DEPTH } from '../../base/json/json.ts';
import type { Node } from './ast.ts';
import { ExpressionSyntaxError } from './expression-syntax-error.ts';
import type { Token } from './lexer.ts';

/** The state that the parsing functions share. */
export interface ParserState {
  readonly tokens: readonly Token[];
  position: number;
  depth: number;
  /** The number of nodes so far. One evaluation costs at most this many operations, plus the work of functions. */
  nodes: number;
  // Nodes in parentheses. `a ?? (b || c)` is valid and `a ?? b || c` is not, but both have the same tree.
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
  if (!takeIf(state, operator)) throw unexpectedToken(peek(state), expected);
}

export function previousEnd(state: ParserState): number {
  return (state.tokens[state.position - 1] as Token).end;
}

/** The error for a token that doesn't fit, with what was expected. */
export function unexpectedToken(token: Token, expected: string): ExpressionSyntaxError {
  if (token.kind === 'operator' && token.text === '=>') {
    const message = 'an arrow can only be an argument of a function over a list, as in map(list, x => x.id)';
    return new ExpressionSyntaxError(message, token.index, token.end - token.index);
  }
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

// Called after the opening bracket. A comma before the closing bracket is allowed.
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
