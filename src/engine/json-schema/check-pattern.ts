/** Refuses regular expressions that can be slow. The time of an accepted pattern is linear in the length of any text. */

import { type Chars, EVERY, type PatternNode, readPattern, union } from './pattern-syntax.ts';

const MAX_PATTERN = 1_000;
/** The maximum number of steps for one character of a text. */
const MAX_STEPS_A_CHARACTER = 256;
/** The maximum number of steps of a pattern without unlimited repeats, which reads no more of a text than its own length. */
const MAX_STEPS = 20_000;

const REFERENCE = 'back-references and group flags are not supported';
const AMBIGUOUS =
  "the part that it repeats can match one text in several ways; let whatever follows a part begin with characters that the part can't match";
const SHARED =
  'two repeats without a limit can match the same text; give the second one a limit such as `{1,63}`, or let them match different characters';
const SEARCHED =
  'it searches for a repeat without a limit from every character of the text; begin the pattern with `^`, or give the repeat a limit';
const MANY = 'it can match in too many ways; let its parts begin with different characters, or lower its limits';

/** Thrown and caught only in this file. */
class SlowPattern extends Error {}

/** What follows a part of a pattern, and the cost of matching it from one place. */
interface Rest {
  /** The characters that it may begin with. */
  readonly first: Chars;
  /** Whether it can fail, so that another way through the part before it is tried. */
  readonly canFail: boolean;
  /** The exponent of the length of the text in the cost: 0 is constant, 1 is linear, 2 is quadratic. */
  readonly degree: number;
  /** The characters that its unlimited repeats can match. */
  readonly crosses: Chars;
  /** The number of ways through it. */
  readonly ways: number;
  /** Its length, with unlimited repeats counted once. */
  readonly length: number;
  /** Whether it is inside an unlimited repeat. Then the next character must decide each choice in it. */
  readonly strict: boolean;
}

const SUCCESS: Rest = { first: [], canFail: false, degree: 0, crosses: [], ways: 1, length: 0, strict: false };

/** @param source - a valid pattern @returns why it can be very slow on some texts; undefined when it can't be */
export function slowPattern(source: string): string | undefined {
  if (source.length > MAX_PATTERN) return `it has ${source.length} characters; at most ${MAX_PATTERN} are allowed`;
  const pattern = readPattern(source);
  if (!pattern) return REFERENCE;
  try {
    const { degree, ways, length } = costOf(pattern, SUCCESS);
    if (degree > 1) return SHARED;
    const isAnchored = beginsAtStart(pattern);
    if (degree > 0 && !isAnchored) return SEARCHED;
    const maxSteps = degree === 0 && isAnchored ? MAX_STEPS : MAX_STEPS_A_CHARACTER;
    return ways * Math.max(1, length) > maxSteps ? MANY : undefined;
  } catch (error) {
    if (error instanceof SlowPattern) return error.message;
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
      return chooseAlternatives(
        node.options.map((option) => costOf(option, rest)),
        rest.strict,
      );
    case 'look':
      return look(node, rest);
    case 'repeat':
      return repeat(node, rest);
  }
}

function chooseAlternatives(options: readonly Rest[], strict: boolean): Rest {
  const overlap = options.some((a, i) => options.some((b, j) => j > i && intersects(a.first, b.first)));
  if (overlap && strict) throw new SlowPattern(AMBIGUOUS);
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

// A look-around is matched by itself, and in one way.
function look({ body, isLookBehind }: PatternNode & { readonly kind: 'look' }, rest: Rest): Rest {
  const inside = costOf(body, SUCCESS);
  // After a match, matching continues at the place before it: the text that it read is read again each time.
  const degree = isEndless(body) ? Math.max(1, inside.degree) : inside.degree;
  if (degree > 0 && (isLookBehind || rest.strict)) throw new SlowPattern(AMBIGUOUS);
  return {
    ...rest,
    // It is tried first, whatever the next character is.
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
  if (max === 1) return min === 1 ? costOf(body, rest) : chooseAlternatives([costOf(body, rest), rest], rest.strict);
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
    if (isNullable(body)) throw new SlowPattern(AMBIGUOUS);
    const { length } = costOf(body, { ...around, strict: true });
    if (canLeaveEarly && rest.strict) throw new SlowPattern(AMBIGUOUS);
    const crosses = union(rest.crosses, allOf(body));
    const spent = { ...known, crosses, length: rest.length + length };
    // Nothing after it can fail, so the repeat ends only once.
    if (!rest.canFail && !isEndless(body)) return spent;
    // When the repeat can end at many places, the rest is tried at each place. When the rest never reads past the next of
    // these places, all tries together read the text once.
    const isOften = canLeaveEarly && intersects(exits, rest.crosses);
    return { ...spent, degree: isOften ? rest.degree + 1 : Math.max(1, rest.degree) };
  }
  const inside = costOf(body, { ...around, strict: rest.strict });
  if (canLeaveEarly && rest.strict) throw new SlowPattern(AMBIGUOUS);
  const ways = inside.ways ** max * (canLeaveEarly ? max - min + 1 : 1) * rest.ways;
  return { ...known, ways, length: rest.length + inside.length * max };
}

/** Whether every way through a pattern begins with `^`. */
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

/** The characters that a non-empty match of a part may begin with. */
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

/** Every character that a part may match. */
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
