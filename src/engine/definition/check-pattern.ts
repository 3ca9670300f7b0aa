/** Refuses regular expressions that a text can make slow: what is left looks at a text once, whatever stands in it. */

import { type Chars, EVERY, type PatternNode, readPattern, union } from './pattern-syntax.ts';

const MAX_PATTERN = 1_000;
/** Steps that one character of a text may cost. */
const MAX_STEPS_A_CHARACTER = 256;
/** Steps that a pattern without an endless repeat may cost, which looks at no more of a text than its own length. */
const MAX_STEPS = 20_000;

const REFERENCE = 'back-references and flags of a group are not taken';
const AMBIGUOUS =
  'what it repeats can match one text in several ways; let what follows a part begin with characters that the part has not';
const SHARED =
  'two repeats without a bound can share one text; give the later one a bound such as `{1,63}`, or keep their characters apart';
const SEARCHED =
  'it looks for a repeat without a bound from every character on; begin it with `^`, or bound the repeat';
const MANY = 'it can match in too many ways; make its parts begin with different characters, or its bounds smaller';

/** Thrown inside of this file alone. */
class Slow extends Error {}

/** What follows a part, and what it costs to match it from one place on. */
interface Rest {
  /** What it may begin with. */
  readonly first: Chars;
  /** Whether it can fail, so that the part in front of it is tried in another way. */
  readonly canFail: boolean;
  /** How often it looks at a text as a whole: the exponent of its length. */
  readonly degree: number;
  /** What its repeats without a bound run over. */
  readonly crosses: Chars;
  /** Ways through it. */
  readonly ways: number;
  /** Its length, repeats without a bound counted once. */
  readonly length: number;
  /** It is repeated without a bound, so that each choice in it must be decided by the next character. */
  readonly strict: boolean;
}

const SUCCESS: Rest = { first: [], canFail: false, degree: 0, crosses: [], ways: 1, length: 0, strict: false };

/** @returns why checking a text against a right pattern could take very long; undefined when it can not */
export function slowPattern(source: string): string | undefined {
  if (source.length > MAX_PATTERN) return `it has ${source.length} characters; at most ${MAX_PATTERN} are allowed`;
  const pattern = readPattern(source);
  if (!pattern) return REFERENCE;
  try {
    const { degree, ways, length } = costOf(pattern, SUCCESS);
    if (degree > 1) return SHARED;
    const isAnchored = beginsAtStart(pattern);
    if (degree > 0 && !isAnchored) return SEARCHED;
    const most = degree === 0 && isAnchored ? MAX_STEPS : MAX_STEPS_A_CHARACTER;
    return ways * Math.max(1, length) > most ? MANY : undefined;
  } catch (error) {
    if (error instanceof Slow) return error.message;
    throw error;
  }
}

function costOf(node: PatternNode, rest: Rest): Rest {
  switch (node.kind) {
    case 'chars':
      return { ...rest, first: node.chars, canFail: true, length: rest.length + 1 };
    case 'edge':
      return { ...rest, first: node.end ? [] : rest.first, canFail: true };
    case 'sequence':
      return node.parts.reduceRight((after, part) => costOf(part, after), rest);
    case 'choice':
      return choose(
        node.options.map((option) => costOf(option, rest)),
        rest.strict,
      );
    case 'look':
      return look(node, rest);
    case 'repeat':
      return repeat(node, rest);
  }
}

function choose(options: readonly Rest[], strict: boolean): Rest {
  const overlap = options.some((a, i) => options.some((b, j) => j > i && intersects(a.first, b.first)));
  if (overlap && strict) throw new Slow(AMBIGUOUS);
  const ways = options.map((option) => option.ways);
  return {
    first: union(...options.map(({ first }) => first)),
    canFail: options.every(({ canFail }) => canFail),
    degree: Math.max(...options.map(({ degree }) => degree)),
    crosses: union(...options.map(({ crosses }) => crosses)),
    ways: overlap ? ways.reduce((sum, count) => sum + count, 0) : Math.max(...ways),
    length: Math.max(...options.map(({ length }) => length)),
    strict,
  };
}

// It is matched by itself, and in one way.
function look({ body, behind }: PatternNode & { readonly kind: 'look' }, rest: Rest): Rest {
  const inside = costOf(body, SUCCESS);
  // When it is found, the match goes on: what it ran over is paid for each time.
  const degree = isEndless(body) ? Math.max(1, inside.degree) : inside.degree;
  if (degree > 0 && (behind || rest.strict)) throw new Slow(AMBIGUOUS);
  return {
    ...rest,
    // It is looked at first, whatever stands there.
    first: degree > 0 ? EVERY : rest.first,
    canFail: true,
    degree: Math.max(rest.degree, degree),
    crosses: union(rest.crosses, inside.crosses),
    length: rest.length + inside.ways * inside.length,
  };
}

function repeat(node: PatternNode & { readonly kind: 'repeat' }, rest: Rest): Rest {
  const { body, min, max } = node;
  if (max === 0) return rest;
  if (max === 1) return min === 1 ? costOf(body, rest) : choose([costOf(body, rest), rest], rest.strict);
  const first = firstOf(body);
  const exits = meet(first, rest.first);
  const canLeaveEarly = exits.length > 0 && max > min;
  const around = { first: union(first, rest.first), canFail: true, degree: 0, crosses: [], ways: 1, length: 0 };
  const known = {
    ...rest,
    first: min === 0 ? around.first : first,
    canFail: rest.canFail || min > 0,
  };
  if (max === Infinity || isEndless(body)) {
    if (isNullable(body)) throw new Slow(AMBIGUOUS);
    const { length } = costOf(body, { ...around, strict: true });
    if (canLeaveEarly && rest.strict) throw new Slow(AMBIGUOUS);
    const crosses = union(rest.crosses, allOf(body));
    const spent = { ...known, crosses, length: rest.length + length };
    // Nothing that follows fails, so that it is left once.
    if (!rest.canFail && !isEndless(body)) return spent;
    // Where it can be left at many places, what follows is tried at each of them; where that runs no farther than to the next
    // of these places, all of the tries together look at the text once.
    const isOften = canLeaveEarly && intersects(exits, rest.crosses);
    return { ...spent, degree: isOften ? rest.degree + 1 : Math.max(1, rest.degree) };
  }
  const inside = costOf(body, { ...around, strict: rest.strict });
  if (canLeaveEarly && rest.strict) throw new Slow(AMBIGUOUS);
  const ways = inside.ways ** max * (canLeaveEarly ? max - min + 1 : 1) * rest.ways;
  return { ...known, ways, length: rest.length + inside.length * max };
}

/** Whether each way through a pattern begins with `^`. */
function beginsAtStart(node: PatternNode): boolean {
  if (node.kind === 'edge') return !node.end;
  if (node.kind === 'choice') return node.options.every(beginsAtStart);
  if (node.kind !== 'sequence') return false;
  const [begin] = node.parts;
  return begin !== undefined && beginsAtStart(begin);
}

function isEndless(node: PatternNode): boolean {
  if (node.kind === 'repeat') return node.max === Infinity || isEndless(node.body);
  if (node.kind === 'look') return isEndless(node.body);
  return childrenOf(node).some(isEndless);
}

function isNullable(node: PatternNode): boolean {
  if (node.kind === 'chars') return false;
  if (node.kind === 'choice') return node.options.some(isNullable);
  if (node.kind === 'repeat') return node.min === 0 || isNullable(node.body);
  return node.kind !== 'sequence' || node.parts.every(isNullable);
}

/** What a part may begin with, where something of it is matched at all. */
function firstOf(node: PatternNode): Chars {
  if (node.kind === 'chars') return node.chars;
  if (node.kind === 'repeat') return firstOf(node.body);
  if (node.kind === 'choice') return node.options.flatMap(firstOf);
  if (node.kind !== 'sequence') return [];
  const first: (readonly [number, number])[] = [];
  for (const part of node.parts) {
    first.push(...firstOf(part));
    if (!isNullable(part)) break;
  }
  return first;
}

/** Every character that a part may hold. */
function allOf(node: PatternNode): Chars {
  return node.kind === 'chars' ? node.chars : childrenOf(node).flatMap(allOf);
}

function childrenOf(node: PatternNode): readonly PatternNode[] {
  if (node.kind === 'sequence') return node.parts;
  if (node.kind === 'choice') return node.options;
  return node.kind === 'repeat' || node.kind === 'look' ? [node.body] : [];
}

function touches(a: readonly [number, number], b: readonly [number, number]): boolean {
  return a[0] <= b[1] && b[0] <= a[1];
}

function intersects(a: Chars, b: Chars): boolean {
  return a.some((range) => b.some((other) => touches(range, other)));
}

function meet(a: Chars, b: Chars): Chars {
  return a.flatMap((one) =>
    b.flatMap((other) =>
      touches(one, other) ? [[Math.max(one[0], other[0]), Math.min(one[1], other[1])] as const] : [],
    ),
  );
}
