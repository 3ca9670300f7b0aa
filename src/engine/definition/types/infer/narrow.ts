/** Makes the type of a path narrower at a place, and draws the conclusions about the step that it comes from. */

import type { Node } from '../../../expression/syntax/ast.ts';
import { COMPLETED, FAILED } from '../place.ts';
import { isNever, mayBe, membersOf, NULL, type ScalarType, type Type, union, without, withoutNull } from '../type.ts';
import { falsyPart, isFalsy } from '../values-of-type.ts';
import type { InferContext } from './infer-context.ts';
import type { Link } from './read-field.ts';
import { pathKey } from './read-path.ts';

export function narrow(node: Node, context: InferContext, change: (type: Type) => Type): void {
  const found = pathKey(node, context);
  if (!found) return;
  const quiet = { ...context, report: () => {} };
  const before = quiet.infer(node, quiet);
  const after = change(before);
  if (after === before) return;
  const { place } = context;
  if (isNever(after) && before.kind !== 'any') place.dead = true;
  place.setFact(found.key, after);
}

/** After a value was found not to be null, the step that it comes from has completed. */
function cameFrom(node: Node, context: InferContext): void {
  const found = pathKey(node, context);
  if (found?.step === undefined || found.path[0] !== 'output') return;
  const { place } = context;
  const status = place.status(found.step) & (found.keepsOutput ? COMPLETED | FAILED : COMPLETED);
  place.setStatus(found.step, status);
  // The objects around the value are not null either.
  for (let i = found.path.length - 1; i >= 1; i--) {
    const key = [found.step, ...found.path.slice(0, i)].join('.');
    const known = place.fact(key);
    if (known) place.setFact(key, withoutNull(known));
  }
}

export function assumeNull(node: Node, isNull: boolean, context: InferContext): void {
  if (isNull) {
    narrow(node, context, (type) =>
      type.kind === 'any' ? NULL : without(type, ({ kind }) => kind !== 'null' && kind !== 'any'),
    );
    return;
  }
  cameFrom(node, context);
  narrow(node, context, withoutNull);
  parents(node, context);
}

// What a value is read from is not null, if the value is not.
function parents(node: Node, context: InferContext): void {
  if (node.kind !== 'member' || node.links.length < 2) return;
  let links = node.links.slice(0, -1);
  while (links.length > 0) {
    const last = links[links.length - 1] as Link;
    const parent: Node = { ...node, links, end: last.end };
    narrow(parent, context, withoutNull);
    links = links.slice(0, -1);
  }
}

export function assumeTruth(node: Node, holds: boolean, context: InferContext): void {
  const found = pathKey(node, context);
  if (!found) return;
  const { place } = context;
  if (found.step !== undefined && found.path.length === 1) {
    const bits = STATUS_OF[`${found.path[0]}:${holds}`];
    if (bits !== undefined) {
      place.setStatus(found.step, place.status(found.step) & bits);
      return;
    }
  }
  if (holds) {
    cameFrom(node, context);
    narrow(node, context, (type) => without(type, isFalsy));
    parents(node, context);
    const counted = countedList(node, context);
    if (counted) assumeLength(counted, 1, context);
  } else narrow(node, context, (type) => (type.kind === 'any' ? type : falsyPart(type)));
}

const STATUS_OF: Readonly<Record<string, number>> = {
  'success:true': COMPLETED,
  'success:false': ~COMPLETED,
  'failed:true': FAILED,
  'failed:false': ~FAILED,
  'executed:true': COMPLETED | FAILED,
  'executed:false': ~COMPLETED,
  'error:true': FAILED,
  'error:false': ~FAILED,
};

/** The list that a number counts: `length(x)`, `x.length`, or `x.count` with `x.results`. */
function countedList(node: Node, context: InferContext): Node | undefined {
  if (node.kind === 'call' && node.name === 'length') return node.args[0];
  if (node.kind !== 'member') return undefined;
  const last = node.links[node.links.length - 1];
  if (!last || typeof last.key === 'object') return undefined;
  const links = node.links.slice(0, -1);
  if (last.key === 'length')
    return links.length === 0 ? node.object : { ...node, links, end: links[links.length - 1]?.end ?? node.end };
  const type = context.infer(node, { ...context, report: () => {} });
  const countOf = membersOf(type).find((member) => member.kind === 'number' && member.countOf !== undefined) as
    | ScalarType
    | undefined;
  if (countOf?.countOf === undefined) return undefined;
  return { ...node, links: [...links, { key: countOf.countOf, index: last.index, end: last.end }] };
}

/** @param ifSure - only if the number can't be null: null is not 0, but there is no list then */
export function assumeCount(node: Node, least: number, context: InferContext, ifSure = false): void {
  if (ifSure && mayBe(context.infer(node, { ...context, report: () => {} }), ['null'])) return;
  const list = countedList(node, context);
  if (list) assumeLength(list, least, context);
}

export function assumeLength(list: Node, least: number, context: InferContext): void {
  if (least <= 0) return;
  cameFrom(list, context);
  narrow(list, context, (type) =>
    union(
      membersOf(type).flatMap((member): Type[] => {
        if (member.kind === 'null') return [];
        return member.kind === 'list' ? [{ ...member, min: Math.max(member.min, least) }] : [member];
      }),
    ),
  );
  parents(list, context);
}
