/** Infers the type of an expression from its syntax tree, and finds what can't be right in it. */

import { suggestName } from '../../../base/suggest-name.ts';
import type { ArrowNode, CallNode, Node } from '../../../expression/syntax/ast.ts';
import { ARROW_TYPES, type ArrowType } from '../arrow-types.ts';
import { itemOf, SIGNATURES } from '../function-types.ts';
import type { LevelTypes } from '../place.ts';
import {
  ANY,
  BOOLEAN,
  intersects,
  isNever,
  listOf,
  literal,
  mayBe,
  NUMBER,
  nameOfType,
  namesOf,
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
import { inferPath, textKey } from './read-path.ts';

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
    case 'arrow':
      // It is read together with the list that it is applied to.
      return ANY;
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

function inferCall(node: CallNode, context: InferContext): Type {
  const [list, arrow] = node.args;
  if (list && arrow?.kind === 'arrow' && Object.hasOwn(ARROW_TYPES, node.name))
    return inferArrow(node, list, arrow, context);
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
  const wrong = signature.wrong?.(args);
  if (wrong) impossible(context, node.args[wrong.argument] as Node, wrong.message, wrong.suggestion);
  if (node.name === 'signalUrl') checkPayload(node, args[1], context);
  // What is evaluated after it can rely on its value.
  if (node.name === 'required' && node.args[0]) assumeNull(node.args[0], false, context);
  const [first] = args;
  if (!signature.passesNull || !first) return signature.returns(args);
  const returned = signature.returns([withoutNull(first), ...args.slice(1)]);
  return union([returned, ...nullsOf(first)]);
}

/** Whether the page of a link may have fields of its own. @param page - the third argument of `signalUrl()` */
export function mayHaveFields(page: Node | undefined): boolean {
  return page !== undefined && (page.kind !== 'object' || page.entries.some(({ key }) => key === 'fields'));
}

/** The payload of a link must have fields of the form of its signal, unless the link has a form of its own. */
function checkPayload({ args: [name, payload, page] }: CallNode, given: Type | undefined, context: InferContext): void {
  if (!payload || name?.kind !== 'literal' || given?.kind !== 'record' || mayHaveFields(page)) return;
  const wanted = context.payloadOf(String(name.value));
  if (wanted?.kind !== 'record') return;
  for (const [key, { type }] of given.fields) {
    const field = wanted.fields.get(key);
    if (field && !intersects(type, field.type) && !isNever(type)) {
      const message = `\`${key}\` of the signal \`${name.value}\` is ${nameOfType(field.type)}, and this is ${nameOfType(type)}`;
      impossible(context, payload, message);
    } else if (!field && typeof wanted.rest !== 'object') {
      const known = [...wanted.fields.keys()];
      const message = `the signal \`${name.value}\` has no field \`${key}\`; its \`fields\` are ${namesOf(known)}`;
      impossible(context, payload, message, suggestName(key, known));
    }
  }
}

/** A call of a function over a list: the body of the arrow has the type of the elements. */
function inferArrow(node: CallNode, list: Node, arrow: ArrowNode, context: InferContext): Type {
  const type = infer(list, context);
  if (!mayBe(type, ['list', 'null']) && !isNever(type))
    impossible(context, list, `${node.name}() takes a list here, and this is ${nameOfType(type)}`);
  const item = itemOf(type);
  const [name = '', index] = arrow.params;
  const level: LevelTypes = {
    id: -1 - arrow.index,
    parent: context.level,
    item: undefined,
    results: new Map(),
    locals: new Map([[name, item], ...(index === undefined ? [] : [[index, NUMBER] as const])]),
    caught: context.level.caught,
  };
  const inner = { ...context, level, place: context.place.fork() };
  const result = infer(arrow.body, inner);
  const { kinds, of } = ARROW_TYPES[node.name] as ArrowType;
  if (kinds && !mayBe(result, [...kinds, 'null']) && !isNever(result)) {
    const expected = kinds.map((kind) => KIND_WORDS[kind]).join(' or ');
    impossible(inner, arrow.body, `the arrow of ${node.name}() gives ${expected}, and this is ${nameOfType(result)}`);
  }
  // What the elements are for which the arrow holds.
  const holds = { ...inner, place: inner.place.fork() };
  assume(arrow.body, true, holds);
  const held = holds.place.fact(`${level.id}#${name}`) ?? item;
  for (const rest of node.args.slice(2)) infer(rest, context);
  return union([of({ list: withoutNull(type), item, result, held }), ...nullsOf(type)]);
}

const KIND_WORDS = {
  string: 'text',
  number: 'a number',
  boolean: 'true or false',
  list: 'a list',
  record: 'an object',
};
