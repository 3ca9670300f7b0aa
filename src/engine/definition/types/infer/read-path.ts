/** The types of names and paths: inputs, items, the results of steps, and the fields of all of them. */

import type { Node } from '../../../expression/syntax/ast.ts';
import { SIGNATURES } from '../function-types.ts';
import { keyOf, type LevelTypes, type StepResult } from '../place.ts';
import { ANY, NULL, NUMBER, type Type, union, withoutNull } from '../type.ts';
import type { InferContext } from './infer-context.ts';
import { readLink } from './read-field.ts';
import { ERROR, memberOfResult, resultType } from './step-result.ts';

/** What a name stands for: a value, or the result of a step, whose members are read without the others. */
interface ReadRoot {
  /** Among the facts; '' for what conditions can't narrow. */
  readonly key: string;
  readonly type: Type;
  readonly step?: string | undefined;
  readonly result?: StepResult | undefined;
}

function rootType({ type, step, result }: ReadRoot, { place }: InferContext): Type {
  return result && step !== undefined ? resultType(step, result, place) : type;
}

export function inferPath(node: Extract<Node, { kind: 'name' | 'member' }>, context: InferContext): Type {
  if (node.kind === 'name') return rootType(readRoot(node.name, context), context);
  const { object } = node;
  if (object.kind !== 'name') {
    let type = context.infer(object, context);
    for (const link of node.links) type = readLink(type, link.key, link, context, node);
    return type;
  }
  const root = readRoot(object.name, context);
  let { key } = root;
  let isKnown = key !== '';
  const member =
    root.result && memberOfResult(root as ReadRoot & { step: string; result: StepResult }, node.links[0]?.key, context);
  let type = member ?? rootType(root, context);
  for (const [i, link] of node.links.entries()) {
    if (i > 0 || !member) type = readLink(type, link.key, link, context, node);
    if (isKnown && typeof link.key !== 'object') {
      key = `${key}.${link.key}`;
      type = context.place.fact(key) ?? type;
    } else isKnown = false;
  }
  return type;
}

/** A path that conditions can narrow. */
interface ReadPath {
  /** Among the facts. */
  readonly key: string;
  /** The step whose result is read, and whether it keeps an output when it fails. */
  readonly step?: string | undefined;
  readonly keepsOutput?: boolean | undefined;
  readonly path: readonly (string | number)[];
}

/** @returns undefined for what conditions can't narrow */
export function pathKey(node: Node, context: InferContext): ReadPath | undefined {
  // These give the same value again: `length(first(x)) > 0 ? first(x) : ...`.
  if (node.kind === 'call' || node.kind === 'logical')
    return isRepeatable(node, context) ? { key: textKey(node, context), path: [] } : undefined;
  if (node.kind !== 'name' && node.kind !== 'member') return undefined;
  const name = node.kind === 'name' ? node.name : node.object.kind === 'name' ? node.object.name : undefined;
  if (name === undefined) return undefined;
  const root = readRoot(name, context);
  if (root.key === '') return undefined;
  const path: (string | number)[] = [];
  for (const { key } of node.kind === 'member' ? node.links : []) {
    if (typeof key === 'object') return undefined;
    path.push(key);
  }
  return { key: [root.key, ...path].join('.'), step: root.step, keepsOutput: root.result?.keepsOutput, path };
}

export function textKey(node: Node, { level, text }: InferContext): string {
  return `${level.id}()${text.slice(node.index, node.end).replace(/\s+/g, '')}`;
}

/** Whether an expression gives the same value again. */
function isRepeatable(node: Node, { text }: InferContext): boolean {
  if (node.kind === 'call' && !Object.hasOwn(SIGNATURES, node.name)) return false;
  return !/\b(?:random|now|uuid|state)\b/.test(text.slice(node.index, node.end));
}

function readRoot(name: string, context: InferContext): ReadRoot {
  const { data, outermost, place } = context;
  for (let at: LevelTypes | undefined = context.level; at?.locals; at = at.parent) {
    const type = at.locals.get(name);
    const key = `${at.id}#${name}`;
    if (type) return { key, type: place.fact(key) ?? type };
  }
  if (data && !Object.hasOwn(outermost, name) && name !== 'item' && name !== 'index' && name !== 'error') {
    const field = fieldOf(data, name);
    if (field) return { key: '', type: field };
  }
  if (name === 'error' && context.level.caught) return { key: 'error', type: ERROR };
  for (let at: LevelTypes | undefined = context.level; at; at = at.parent) {
    if (at.item && name === at.item.name) {
      const key = `${at.id}#item`;
      return { key, type: place.fact(key) ?? at.item.type };
    }
    if (at.item && name === 'index') return { key: '', type: NUMBER };
    const found = at.results.get(name);
    if (!found) continue;
    const step = keyOf(at.id, name);
    return { key: step, step, type: ANY, result: found };
  }
  if (Object.hasOwn(outermost, name)) return { key: name === 'state' ? '' : name, type: outermost[name] as Type };
  return { key: '', type: ANY };
}

function fieldOf(data: Type, name: string): Type | undefined {
  if (data.kind === 'any') return ANY;
  const record = withoutNull(data);
  if (record.kind !== 'record') return ANY;
  const field = record.fields.get(name);
  if (field) return field.optional ? union([field.type, NULL]) : field.type;
  return record.rest === 'closed' ? undefined : ANY;
}
