/** What follows when a condition holds, or does not: narrower types, and steps that ran. */

import type { Node } from '../../../expression/syntax/ast.ts';
import type { Scalar } from '../type.ts';
import { narrowTo, withoutValue } from '../values-of-type.ts';
import type { InferContext } from './infer-context.ts';
import { assumeCount, assumeLength, assumeNull, assumeTruth, narrow } from './narrow.ts';
import { pathKey } from './read-path.ts';

/** Adds to a place what follows when an expression is true, or not. */
export function assume(node: Node, holds: boolean, context: InferContext): void {
  const { place } = context;
  if (context.fuel.left-- <= 0) return;
  if (place.hasImplied)
    for (const steps of place.implied(impliedKey(node, holds, context)))
      for (const [key, status] of steps) {
        if (context.fuel.left-- <= 0) return;
        place.setStatus(key, place.status(key) & status);
      }
  switch (node.kind) {
    case 'unary':
      if (node.operator === '!') assume(node.operand, !holds, context);
      return;
    case 'logical':
      if (node.operator === '??') return;
      if ((node.operator === '&&') === holds) {
        for (const operand of node.operands) assume(operand, holds, context);
        return;
      }
      assumeOneOf(node.operands, holds, context);
      return;
    case 'chain':
      assumeComparison(node, holds, context);
      return;
    case 'call':
      if (node.name === 'length' && node.args[0]) assumeLength(node.args[0], holds ? 1 : 0, context);
      if (node.name === 'some' && holds && node.args[0]) assumeLength(node.args[0], 1, context);
      if (node.name === 'contains' && holds && node.args[0]) assumeNull(node.args[0], false, context);
      if ((node.name === 'startsWith' || node.name === 'endsWith') && holds && node.args[0])
        assumeNull(node.args[0], false, context);
      if (node.name === 'boolean' && node.args[0] && holds) assumeNull(node.args[0], false, context);
      return;
    case 'name':
    case 'member':
      assumeTruth(node, holds, context);
      return;
    default:
      return;
  }
}

export function impliedKey(node: Node, holds: boolean, { text, level }: Pick<InferContext, 'text' | 'level'>): string {
  let at = node;
  let positive = holds;
  while (at.kind === 'unary' && at.operator === '!') {
    at = at.operand;
    positive = !positive;
  }
  return `${level.id}|${positive}|${text.slice(at.index, at.end).replace(/\s+/g, '')}`;
}

// One of the operands decides: the first, or the second after the first did not, and so on.
function assumeOneOf(operands: readonly Node[], holds: boolean, context: InferContext): void {
  const { place } = context;
  if (operands.length > 4) return;
  const ways = operands.map((operand, i) => {
    const way = { ...context, place: place.fork() };
    for (const before of operands.slice(0, i)) assume(before, !holds, way);
    assume(operand, holds, way);
    return way.place;
  });
  place.merge(ways);
}

type Chain = Extract<Node, { kind: 'chain' }>;

function assumeComparison(node: Chain, holds: boolean, context: InferContext): void {
  const [only] = node.rest;
  if (node.rest.length !== 1 || !only) return;
  const { operator } = only;
  const [left, right] = [node.first, only.operand];
  const isEquality = operator === '==' || operator === '===' || operator === '!=' || operator === '!==';
  if (isEquality) {
    const equal = (operator === '==' || operator === '===') === holds;
    if (right.kind === 'literal') assumeEqual(left, right.value, equal, context);
    else if (left.kind === 'literal') assumeEqual(right, left.value, equal, context);
    return;
  }
  if (operator !== '<' && operator !== '<=' && operator !== '>' && operator !== '>=') return;
  // A comparison with null is false.
  if (holds) for (const side of [left, right]) if (side.kind !== 'literal') assumeNull(side, false, context);
  const bound = right.kind === 'literal' && typeof right.value === 'number' ? right.value : undefined;
  if (bound === undefined || !holds) return;
  if (operator === '>' || operator === '>=') {
    const least = operator === '>' ? Math.floor(bound) + 1 : Math.ceil(bound);
    assumeCount(left, least, context);
  }
}

function assumeEqual(node: Node, value: Scalar | null, equal: boolean, context: InferContext): void {
  if (value === null) {
    assumeNull(node, equal, context);
    return;
  }
  const found = pathKey(node, context);
  if (typeof value === 'boolean' && found?.step !== undefined && found.path.length === 1) {
    assumeTruth(node, value === equal, context);
    return;
  }
  if (equal) {
    assumeNull(node, false, context);
    // The count is narrowed after what it counts: a literal does not say what it counts.
    if (typeof value === 'number' && value > 0) assumeCount(node, value, context);
    narrow(node, context, (type) => narrowTo(type, value));
  } else {
    narrow(node, context, (type) => withoutValue(type, value));
    if (value === 0) assumeCount(node, 1, context, true);
  }
}
