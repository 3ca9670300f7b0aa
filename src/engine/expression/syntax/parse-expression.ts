/** Parses tokens to a syntax tree. It is a Pratt parser that checks the depth before every recursion. */

import { MAX_DEPTH } from '../../base/json/json.ts';
import type { ArrowNode, BinaryOperator, CallNode, Link, LogicalNode, Node, ObjectNode } from './ast.ts';
import { ExpressionSyntaxError } from './expression-syntax-error.ts';
import type { Token } from './lexer.ts';
import {
  deepen,
  type ParserState,
  parseList,
  peek,
  previousEnd,
  take,
  takeIf,
  unexpectedToken,
} from './parser-state.ts';

export interface ParsedExpression {
  readonly root: Node;
  readonly nodes: number;
}

// The precedence of each operator. All of them are left-associative, and the ternary is below all of them.
const POWER: Readonly<Record<string, number>> = {
  ...{ '??': 1, '||': 2, '&&': 3 },
  ...{ '==': 4, '!=': 4, '===': 4, '!==': 4 },
  ...{ '<': 5, '<=': 5, '>': 5, '>=': 5 },
  ...{ '+': 6, '-': 6, '*': 7, '/': 7, '%': 7 },
};
const LOGICAL = 3;
const ORDERING = 5;

/** @throws ExpressionSyntaxError at the first token that doesn't fit */
export function parseExpression(tokens: readonly Token[]): ParsedExpression {
  const state: ParserState = { tokens, position: 0, depth: -1, nodes: 0, grouped: new Set() };
  const root = parseNested(state);
  const token = peek(state);
  if (token.kind !== 'end') throw unexpectedToken(token, 'the end of the expression or an operator');
  return { root, nodes: state.nodes };
}

// Parses one whole expression, one level deeper.
function parseNested(state: ParserState): Node {
  deepen(state);
  const node = parseConditional(state);
  state.depth--;
  return node;
}

function parseConditional(state: ParserState): Node {
  const test = parseBinary(state, 1);
  if (!takeIf(state, '?')) return test;
  const then = parseNested(state);
  take(state, ':', 'the : of the ternary');
  const otherwise = parseNested(state);
  state.nodes++;
  return { kind: 'conditional', test, then, otherwise, index: test.index, end: otherwise.end };
}

function parseBinary(state: ParserState, minPower: number): Node {
  let left = parseUnary(state);
  for (;;) {
    const power = powerOf(peek(state));
    if (power < minPower) return left;
    left = power <= LOGICAL ? parseLogical(state, left, power) : parseChain(state, left, power);
  }
}

function parseLogical(state: ParserState, first: Node, power: number): Node {
  const token = peek(state);
  const operator = token.text as LogicalNode['operator'];
  const operands = [first];
  while (takeIf(state, operator)) {
    operands.push(parseBinary(state, power + 1));
    state.nodes++;
  }
  for (const operand of operands) {
    if (operand.kind !== 'logical' || state.grouped.has(operand)) continue;
    if (operator === '??' || operand.operator === '??') {
      const message = `?? next to ${operator === '??' ? operand.operator : operator} needs parentheses around one of them`;
      throw new ExpressionSyntaxError(message, token.index, token.end - token.index);
    }
  }
  return { kind: 'logical', operator, operands, index: first.index, end: (operands[operands.length - 1] as Node).end };
}

function parseChain(state: ParserState, first: Node, power: number): Node {
  const rest: { operator: BinaryOperator; index: number; operand: Node }[] = [];
  for (let token = peek(state); powerOf(token) === power; token = peek(state)) {
    if (power === ORDERING && rest.length > 0) {
      const message = `${token.text} can not follow another comparison; join two comparisons with &&`;
      throw new ExpressionSyntaxError(message, token.index, token.end - token.index);
    }
    state.position++;
    state.nodes++;
    rest.push({ operator: token.text as BinaryOperator, index: token.index, operand: parseBinary(state, power + 1) });
  }
  return { kind: 'chain', first, rest, index: first.index, end: (rest[rest.length - 1]?.operand ?? first).end };
}

function parseUnary(state: ParserState): Node {
  const token = peek(state);
  if (token.kind !== 'operator' || (token.text !== '!' && token.text !== '-' && token.text !== '+')) {
    return parseLinks(state, parsePrimary(state));
  }
  state.position++;
  state.nodes++;
  deepen(state);
  const operand = parseUnary(state);
  state.depth--;
  return { kind: 'unary', operator: token.text, operand, index: token.index, end: operand.end };
}

// Parses `.key`, `['key']`, `[0]` and `[expression]`: a value with all links that follow, as one flat node.
function parseLinks(state: ParserState, value: Node): Node {
  const inner = value.kind === 'member' ? value.links : [];
  const links: Link[] = [];
  for (;;) {
    const token = peek(state);
    if (takeIf(state, '.')) {
      links.push(parseDotKey(state));
    } else if (takeIf(state, '[')) {
      const key = parseNested(state);
      take(state, ']', 'the closing ]');
      links.push({ key: toKey(key), index: token.index, end: previousEnd(state) });
    } else if (token.kind === 'operator' && token.text === '(') {
      const rule = 'only listed functions can be called, by their bare name as in upper(text): values have no methods';
      const key = links.at(-1)?.key;
      state.position++;
      const message = typeof key === 'string' && readParams(state) ? `${rule}; write ${key}(list, x => ...)` : rule;
      throw new ExpressionSyntaxError(message, token.index, 1);
    } else {
      break;
    }
    state.nodes++;
    // `(a.b).c` equals `a.b.c`, so the links inside the parentheses count too.
    if (links.length + inner.length > MAX_DEPTH) {
      const message = `more than ${MAX_DEPTH} accesses follow one another; read the value in several steps`;
      throw new ExpressionSyntaxError(message, token.index, token.end - token.index);
    }
  }
  if (links.length === 0) return value;
  const end = previousEnd(state);
  const object = value.kind === 'member' ? value.object : value;
  return { kind: 'member', object, links: [...inner, ...links], index: value.index, end };
}

function parseDotKey(state: ParserState): Link {
  const token = peek(state);
  if (token.kind === 'number') {
    const message = `an index is written in brackets: [${token.number}]`;
    throw new ExpressionSyntaxError(message, token.index, token.end - token.index, `[${token.number}]`);
  }
  if (token.kind !== 'name') throw unexpectedToken(token, 'a name after the dot');
  state.position++;
  return { key: token.text, index: token.index, end: token.end };
}

function toKey(node: Node): Link['key'] {
  if (node.kind === 'literal') {
    if (typeof node.value === 'string') return node.value;
    if (typeof node.value === 'number' && Number.isSafeInteger(node.value)) return node.value;
  } else if (node.kind !== 'array' && node.kind !== 'object') {
    return node;
  }
  throw new ExpressionSyntaxError('a key must be text or an integer', node.index, node.end - node.index);
}

function parsePrimary(state: ParserState): Node {
  const token = peek(state);
  state.position++;
  state.nodes++;
  const { index, end } = token;
  if (token.kind === 'number') return { kind: 'literal', value: token.number, index, end };
  if (token.kind === 'string') return { kind: 'literal', value: token.text, index, end };
  if (token.kind === 'name') return parseName(state, token);
  if (token.kind === 'operator') {
    if (token.text === '(') {
      const node = parseNested(state);
      take(state, ')', 'the closing )');
      state.grouped.add(node);
      return node;
    }
    if (token.text === '[') {
      const items = parseList(state, ']', () => parseConditional(state));
      return { kind: 'array', items, index, end: previousEnd(state) };
    }
    if (token.text === '{') return parseObject(state, token);
  }
  throw unexpectedToken(token, 'a value: a name, a literal, a function call or (');
}

function parseName(state: ParserState, token: Token): Node {
  const { index, end, text } = token;
  if (peek(state).kind === 'operator' && peek(state).text === '(') return parseCall(state, token);
  if (text === 'true' || text === 'false') return { kind: 'literal', value: text === 'true', index, end };
  if (text === 'null') return { kind: 'literal', value: null, index, end };
  return { kind: 'name', name: text, index, end };
}

function parseCall(state: ParserState, name: Token): CallNode {
  state.position++;
  const args = parseList(state, ')', () => parseArrow(state) ?? parseConditional(state));
  return { kind: 'call', name: name.text, args, index: name.index, end: previousEnd(state) };
}

/** @returns undefined if the tokens don't begin with the parameters of an arrow */
function parseArrow(state: ParserState): ArrowNode | undefined {
  const first = peek(state);
  const params = readParams(state);
  if (!params) return undefined;
  const names = params.map(({ text }) => text);
  const wrong = params.find(({ text }, i) => RESERVED.includes(text) || names.indexOf(text) !== i);
  if (wrong || params.length > 2) {
    const { text, index, end } = wrong ?? (params[2] as Token);
    const why = wrong ? `${text} can't be the name of it` : `${text} is too many`;
    const message = `an arrow has the element and, if it needs it, the index: ${why}`;
    throw new ExpressionSyntaxError(message, index, end - index);
  }
  const before = state.nodes;
  const body = parseNested(state);
  return { kind: 'arrow', params: names, body, nodes: state.nodes - before, index: first.index, end: body.end };
}

const RESERVED = ['true', 'false', 'null'];

/** Reads `x =>` or `(x, i) =>`, or nothing. */
function readParams(state: ParserState): Token[] | undefined {
  const { position } = state;
  const params: Token[] = [];
  const isList = takeIf(state, '(');
  do {
    const token = peek(state);
    if (token.kind !== 'name') break;
    params.push(token);
    state.position++;
  } while (isList && takeIf(state, ','));
  if (params.length > 0 && (!isList || takeIf(state, ')')) && takeIf(state, '=>')) return params;
  state.position = position;
  return undefined;
}

function parseObject(state: ParserState, open: Token): ObjectNode {
  const keys = new Set<string>();
  const entries = parseList(state, '}', () => {
    const token = peek(state);
    if (token.kind !== 'name' && token.kind !== 'string')
      throw unexpectedToken(token, 'a key: a name or a quoted string');
    if (token.text === '__proto__' || keys.has(token.text)) {
      const message = keys.has(token.text)
        ? `the key ${token.text} is given twice`
        : 'the key __proto__ is never allowed';
      throw new ExpressionSyntaxError(message, token.index, token.end - token.index);
    }
    keys.add(token.text);
    state.position++;
    take(state, ':', 'a : after the key');
    return { key: token.text, value: parseConditional(state) };
  });
  return { kind: 'object', entries, index: open.index, end: previousEnd(state) };
}

function powerOf(token: Token): number {
  return token.kind === 'operator' && Object.hasOwn(POWER, token.text) ? (POWER[token.text] as number) : 0;
}
