/** Compiles a syntax tree to closures: one closure for each node, and special closures for common shapes. */

import type { Json } from '../../base/json/json.ts';
import type { Evaluate, Evaluation } from '../evaluation.ts';
import { charge, failureAt, type Site } from '../evaluation-problem.ts';
import type { Apply } from '../functions/function-table.ts';
import { applySign } from '../operators.ts';
import type { ArrowNode, LogicalNode, MemberNode, NameNode, Node, UnaryNode } from '../syntax/ast.ts';
import { ExpressionSyntaxError } from '../syntax/expression-syntax-error.ts';
import { findHyphenSlip, warnOfHyphens } from '../syntax/hyphen-slip.ts';
import { readComputed, readIndex, readKey } from '../syntax/read-member.ts';
import { compileBinary, compileChain } from './compile-binary.ts';
import { compileCall } from './compile-call.ts';
import type { CompileContext } from './compile-context.ts';
import type { PathSegment } from './compiled-expression.ts';

/** @throws ExpressionSyntaxError for a name or a function that can't be resolved */
export function compileNode<E extends Evaluation>(node: Node, context: CompileContext<E>): Evaluate<E> {
  switch (node.kind) {
    case 'literal': {
      const { value } = node;
      return () => value;
    }
    case 'name':
      return compileName(node, [], node.end, context).read;
    case 'member':
      return compileMember(node, context);
    case 'call': {
      const before = context.references.length;
      const args = node.args.filter(({ kind }) => kind !== 'arrow').map((argument) => compileNode(argument, context));
      const arrow = node.args.find((argument): argument is ArrowNode => argument.kind === 'arrow');
      return compileCall(node, args, arrow && compileArrow(arrow, context), before, context);
    }
    case 'arrow':
      // The parser accepts an arrow as an argument only.
      return () => null;
    case 'unary':
      return compileUnary(node, compileNode(node.operand, context), context.site);
    case 'chain': {
      warnOfHyphens(node, context);
      const first = compileNode(node.first, context);
      const rest = node.rest.map((step) => ({ ...step, evaluate: compileNode(step.operand, context) }));
      const [only] = rest;
      return rest.length === 1 && only
        ? compileBinary(first, only, context.site)
        : compileChain(first, rest, context.site);
    }
    case 'logical':
      return compileLogical(
        node.operator,
        node.operands.map((operand) => compileNode(operand, context)),
      );
    case 'conditional': {
      const test = compileNode(node.test, context);
      const then = compileNode(node.then, context);
      const otherwise = compileNode(node.otherwise, context);
      return (evaluation) => (test(evaluation) ? then(evaluation) : otherwise(evaluation));
    }
    case 'array': {
      const items = node.items.map((item) => compileNode(item, context));
      return (evaluation) => {
        const array: Json[] = [];
        for (const item of items) array.push(item(evaluation));
        return array;
      };
    }
    case 'object': {
      const keys = node.entries.map((entry) => entry.key);
      const values = node.entries.map((entry) => compileNode(entry.value, context));
      return (evaluation) => {
        const object: Record<string, Json> = {};
        // The parser refuses `__proto__`, so every assignment creates an own property.
        for (let i = 0; i < keys.length; i++) object[keys[i] as string] = (values[i] as Evaluate<E>)(evaluation);
        return object;
      };
    }
  }
}

/** The values of the parameters are kept in one place: an expression is evaluated to its end, and no arrow contains itself. */
function compileArrow<E extends Evaluation>(
  { params, body, nodes }: ArrowNode,
  context: CompileContext<E>,
): (evaluation: E) => Apply {
  const now = { item: null as Json, index: 0 };
  const readers: readonly Evaluate<E>[] = [() => now.item, () => now.index];
  const outer = params.map((name) => context.locals.get(name));
  params.forEach((name, i) => {
    context.locals.set(name, readers[i] as Evaluate<E>);
  });
  const evaluate = compileNode(body, context);
  params.forEach((name, i) => {
    const before = outer[i];
    if (before) context.locals.set(name, before);
    else context.locals.delete(name);
  });
  return (evaluation) => (item, index) => {
    charge(evaluation, nodes + 1);
    now.item = item;
    now.index = index;
    return evaluate(evaluation);
  };
}

function compileMember<E extends Evaluation>(node: MemberNode, context: CompileContext<E>): Evaluate<E> {
  let { links } = node;
  let read: Evaluate<E>;
  if (node.object.kind === 'name') {
    const path: PathSegment[] = [];
    let end = node.object.end;
    for (const link of links) {
      if (typeof link.key === 'object') break;
      path.push(link.key);
      end = link.end;
    }
    const name = compileName(node.object, path, end, context);
    read = name.read;
    links = links.slice(Math.min(name.consumed, path.length));
  } else {
    read = compileNode(node.object, context);
  }
  const keys = links.map(({ key, index }) => ({
    key: typeof key === 'object' ? compileNode(key, context) : key,
    index,
  }));
  return compileMembers(read, keys, context.site);
}

function compileName<E extends Evaluation>(
  node: NameNode,
  path: readonly PathSegment[],
  end: number,
  context: CompileContext<E>,
): { read: Evaluate<E>; consumed: number } {
  const { name, index } = node;
  const local = context.locals.get(name);
  if (local) return { read: local, consumed: 0 };
  const resolution = context.names.resolve(name, path);
  if ('problem' in resolution) {
    if (Object.hasOwn(context.functions, name) && path.length === 0) {
      const message = `${name} is a function: call it, as in ${name}(...)`;
      throw new ExpressionSyntaxError(message, index, node.end - index, `${name}()`);
    }
    const { problem, suggestion } = resolution;
    const slip = suggestion === undefined ? findHyphenSlip(node, problem, context) : undefined;
    throw slip ?? new ExpressionSyntaxError(problem, index, end - index, suggestion);
  }
  const { secret, warning } = resolution;
  context.references.push({ name, path, index, length: end - index, ...(secret !== undefined && { secret }) });
  if (warning !== undefined) context.warnings.push({ message: warning, index, length: end - index });
  return resolution;
}

function compileUnary<E extends Evaluation>(node: UnaryNode, operand: Evaluate<E>, site: Site): Evaluate<E> {
  const { operator, index } = node;
  if (operator === '!') return (evaluation) => !operand(evaluation);
  return (evaluation) => {
    const value = operand(evaluation);
    if (typeof value === 'number') return operator === '-' ? 0 - value : value;
    try {
      return applySign(operator, value);
    } catch (error) {
      throw failureAt(site, index, error);
    }
  };
}

function compileLogical<E extends Evaluation>(
  operator: LogicalNode['operator'],
  operands: readonly Evaluate<E>[],
): Evaluate<E> {
  const [left, right] = operands as readonly [Evaluate<E>, Evaluate<E>];
  if (operands.length > 2) {
    return (evaluation) => {
      let value: Json = null;
      for (const operand of operands) {
        value = operand(evaluation);
        if (operator === '??' ? value !== null : Boolean(value) === (operator === '||')) return value;
      }
      return value;
    };
  }
  if (operator === '&&') {
    return (evaluation) => {
      const value = left(evaluation);
      return value ? right(evaluation) : value;
    };
  }
  if (operator === '||') {
    return (evaluation) => {
      const value = left(evaluation);
      return value ? value : right(evaluation);
    };
  }
  return (evaluation) => {
    const value = left(evaluation);
    return value === null ? right(evaluation) : value;
  };
}

/** One access: a static key, or a closure that computes the key. */
interface MemberKey<E extends Evaluation> {
  readonly key: string | number | Evaluate<E>;
  readonly index: number;
}

// With more keys than this, one closure reads all keys in a loop, so that a long chain needs no deep stack.
const NESTED_KEYS = 3;

function compileMembers<E extends Evaluation>(
  object: Evaluate<E>,
  keys: readonly MemberKey<E>[],
  site: Site,
): Evaluate<E> {
  if (keys.length > NESTED_KEYS) {
    const readers = keys.map((key) => compileReader(key, site));
    return (evaluation) => {
      let value = object(evaluation);
      for (const read of readers) value = read(value, evaluation);
      return value;
    };
  }
  let evaluate = object;
  for (const member of keys) evaluate = compileAccess(evaluate, member, site);
  return evaluate;
}

function compileAccess<E extends Evaluation>(object: Evaluate<E>, member: MemberKey<E>, site: Site): Evaluate<E> {
  const { key } = member;
  if (typeof key === 'string') return (evaluation) => readKey(object(evaluation), key);
  if (typeof key === 'number') return (evaluation) => readIndex(object(evaluation), key);
  const read = compileReader(member, site);
  return (evaluation) => read(object(evaluation), evaluation);
}

function compileReader<E extends Evaluation>(
  { key, index }: MemberKey<E>,
  site: Site,
): (value: Json, evaluation: E) => Json {
  if (typeof key === 'string') return (value) => readKey(value, key);
  if (typeof key === 'number') return (value) => readIndex(value, key);
  return (value, evaluation) => {
    const computed = key(evaluation);
    try {
      return readComputed(value, computed);
    } catch (error) {
      throw failureAt(site, index, error);
    }
  };
}
