/** The syntax tree of an expression. A chain of operators is one flat node, so only brackets make a tree deeper. */

interface Span {
  readonly index: number;
  readonly end: number;
}

export type Node =
  | LiteralNode
  | NameNode
  | MemberNode
  | CallNode
  | UnaryNode
  | ChainNode
  | LogicalNode
  | ConditionalNode
  | ArrowNode
  | ArrayNode
  | ObjectNode;

interface LiteralNode extends Span {
  readonly kind: 'literal';
  readonly value: null | boolean | number | string;
}

export interface NameNode extends Span {
  readonly kind: 'name';
  readonly name: string;
}

/** One access: `.key`, `['key']` or `[0]` with a static key, or `[expression]`. */
export interface Link extends Span {
  readonly key: string | number | Node;
}

/** `object` followed by one or more links. */
export interface MemberNode extends Span {
  readonly kind: 'member';
  readonly object: Node;
  readonly links: readonly Link[];
}

export interface CallNode extends Span {
  readonly kind: 'call';
  readonly name: string;
  readonly args: readonly Node[];
}

export interface UnaryNode extends Span {
  readonly kind: 'unary';
  readonly operator: '!' | '-' | '+';
  readonly operand: Node;
}

export type BinaryOperator = '+' | '-' | '*' | '/' | '%' | '<' | '<=' | '>' | '>=' | '==' | '!=' | '===' | '!==';

/** Operators of one precedence, evaluated from left to right: `first op operand op operand ...`. */
export interface ChainNode extends Span {
  readonly kind: 'chain';
  readonly first: Node;
  readonly rest: readonly { readonly operator: BinaryOperator; readonly index: number; readonly operand: Node }[];
}

export interface LogicalNode extends Span {
  readonly kind: 'logical';
  readonly operator: '&&' | '||' | '??';
  readonly operands: readonly Node[];
}

interface ConditionalNode extends Span {
  readonly kind: 'conditional';
  readonly test: Node;
  readonly then: Node;
  readonly otherwise: Node;
}

/** `x => body` or `(x, i) => body`, an argument of a function over a list. */
export interface ArrowNode extends Span {
  readonly kind: 'arrow';
  /** The element, and its index. */
  readonly params: readonly string[];
  readonly body: Node;
  /** The number of nodes of the body: what one application costs. */
  readonly nodes: number;
}

interface ArrayNode extends Span {
  readonly kind: 'array';
  readonly items: readonly Node[];
}

export interface ObjectNode extends Span {
  readonly kind: 'object';
  readonly entries: readonly { readonly key: string; readonly value: Node }[];
}
