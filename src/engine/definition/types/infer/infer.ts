/** Infers the type of an expression from its syntax tree, and finds what can't be right in it. */

import type { Node } from '../../../expression/syntax/ast.ts';
import { SIGNATURES } from '../function-types.ts';
import {
  ANY,
  BOOLEAN,
  isNever,
  listOf,
  literal,
  mayBe,
  NUMBER,
  nameOfType,
  recordOf,
  required,
  type Type,
  union,
  without,
  withoutNull,
} from '../type.ts';
import { falsyPart, isFalsy, nullsOf } from '../values-of-type.ts';
import { assume } from './assume.ts';
import { type InferContext, impossible } from './infer-context.ts';
import { assumeNull } from './narrow.ts';
import { inferBinary } from './operators.ts';
import { textKey, inferPath } from './read-path.ts';

export function infer(node: Node, context: InferContext): Type {
  if (context.fuel.left-- <= 0) return ANY;
  switch (node.kind) {
    case 'literal':
      return literal(node.value);
    case 'name':
    case 'member':
      return inferPath(node, context);
    case 'call': {
      const type = inferCall(node, context);
      return context.place.fact(textKey(node, context)) ?? type;
    }
    case 'unary': {
      const operand = infer(node.operand, context);
      if (node.operator === '!') return BOOLEAN;
      if (!mayBe(operand, ['number', 'null'])) {
        impossible(context, node.operand, `${node.operator} needs a number, and this is ${nameOfType(operand)}`);
      }
      return union([NUMBER, ...nullsOf(operand)]);
    }
    case 'chain': {
      let left = infer(node.first, context);
      let from: Node = node.first;
      for (const { operator, operand, index } of node.rest) {
        const right = infer(operand, context);
        left = inferBinary(operator, left, right, { index, left: from, right: operand }, context);
        from = { ...node, end: operand.end };
      }
      return left;
    }
    case 'logical': {
      const type = inferLogical(node.operator, node.operands, context);
      return context.place.fact(textKey(node, context)) ?? type;
    }
    case 'conditional': {
      infer(node.test, context);
      const holds = context.place.fork();
      assume(node.test, true, { ...context, place: holds });
      const fails = context.place.fork();
      assume(node.test, false, { ...context, place: fails });
      const then = infer(node.then, { ...context, place: holds });
      const otherwise = infer(node.otherwise, { ...context, place: fails });
      if (holds.dead) return otherwise;
      return fails.dead ? then : union([then, otherwise]);
    }
    case 'array':
      return listOf(union(node.items.map((item) => infer(item, context))), node.items.length);
    case 'object':
      return recordOf(node.entries.map(({ key, value }) => [key, required(infer(value, context))] as const));
  }
}

function inferLogical(operator: '&&' | '||' | '??', operands: readonly Node[], context: InferContext): Type {
  const place = context.place.fork();
  const inner = { ...context, place };
  const types: Type[] = [];
  operands.forEach((operand, i) => {
    const type = infer(operand, inner);
    const last = i === operands.length - 1;
    if (last) types.push(type);
    else if (operator === '??') types.push(withoutNull(type));
    else if (operator === '||') types.push(without(type, isFalsy));
    else types.push(falsyPart(type));
    if (last) return;
    if (operator === '??') assumeNull(operand, true, inner);
    else assume(operand, operator === '&&', inner);
  });
  // `x ?? y` of an unknown `x` may be anything, but it is null only if `y` is.
  return union(types);
}

function inferCall(node: Extract<Node, { kind: 'call' }>, context: InferContext): Type {
  const args = node.args.map((arg) => infer(arg, context));
  const signature = Object.hasOwn(SIGNATURES, node.name) ? SIGNATURES[node.name] : undefined;
  if (!signature) return context.returnOf(node.name);
  const { takes } = signature;
  args.forEach((type, i) => {
    const kinds = takes[Math.min(i, takes.length - 1)];
    if (!kinds || mayBe(type, [...kinds, 'null']) || isNever(type)) return;
    const expected = kinds.map((kind) => KIND_WORDS[kind]).join(' or ');
    impossible(context, node.args[i] as Node, `${node.name}() takes ${expected} here, and this is ${nameOfType(type)}`);
  });
  // What is evaluated after it can rely on its value.
  if (node.name === 'required' && node.args[0]) assumeNull(node.args[0], false, context);
  const [first] = args;
  if (!signature.passesNull || !first) return signature.returns(args);
  const returned = signature.returns([withoutNull(first), ...args.slice(1)]);
  return union([returned, ...nullsOf(first)]);
}

const KIND_WORDS = {
  string: 'text',
  number: 'a number',
  boolean: 'true or false',
  list: 'a list',
  record: 'an object',
};
