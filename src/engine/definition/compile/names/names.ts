/** Resolves the names at one level of the flow: a reference becomes a read of a slot, or a problem. */

import { suggestName } from '../../../base/suggest-name.ts';
import { quoted } from '../../../base/wording.ts';
import type { ExpressionScope } from '../../../compiled/expression-scope.ts';
import type { NameSlot } from '../../../compiled/name-slot.ts';
import { RESERVED_NAMES } from '../../../ensemble/name.ts';
import type { NameResolution, NameResolver, PathSegment } from '../../../expression/compile/compiled-expression.ts';
import type { Evaluate } from '../../../expression/evaluation.ts';
import { type KnownNames, OUTERMOST, readCaught, resolveOutermost, unknownResultMember } from './outermost-names.ts';
import { readSlot } from './result-reads.ts';

/** The names of one level. Levels are nested: a `foreach` sees the names of the flow around it, but not the other way round. */
export interface Names extends NameResolver<ExpressionScope> {
  readonly parent: Names | undefined;
  /** The name of the item at this level; undefined outside a `foreach`. */
  readonly item: string | undefined;
  /** The secret that the item may hold. */
  readonly itemSecret: string | undefined;
  /** The slots of this level, by name; others may follow. */
  readonly slots: ReadonlyMap<string, NameSlot>;
  /** The number of slots so far. */
  readonly size: number;
  /** Every name that can be read here, with the nearest level first. */
  visible(): string[];
  /** Gives a slot to the name of a result. A name that has a slot keeps it. */
  declare(name: string): NameSlot;
  /** Marks that the compiler has reached the step of a name. Expressions after this call may read the name. */
  reach(name: string): void;
  /** Whether the step of a name of this level is the current step, an earlier step, or a step of the loop around it. */
  isReached(name: string): boolean;
  /** The slot of a name at this level or at a level around it, and the number of levels between them. */
  find(name: string): { readonly slot: NameSlot; readonly depth: number } | undefined;
  /** Creates a level inside this one. @param item - the name of its item @param secret - the secret that the item may hold */
  nest(item: string, secret?: string): Names;
  /**
   * This level as one branch of a `parallel` sees it: the names of the other branches are hidden.
   *
   * @param block - the names of all branches together
   * @param own - the names of the branch itself
   */
  inBranch(block: ReadonlySet<string>, own: ReadonlySet<string>): Names;
  /** This level inside a `catch`, where `error` can be read. */
  catching(): Names;
  /** Whether a name of this level can't be read here, because its step runs at the same time. */
  hides(name: string): boolean;
  /** Whether this level is inside a `catch`. */
  readonly catches: boolean;
}

/** The parts of one level. Its views share the slots and the list of hyphenated names. */
interface LevelParts {
  readonly known: KnownNames;
  readonly parent: Names | undefined;
  readonly item: string | undefined;
  readonly itemSecret: string | undefined;
  readonly slots: Map<string, NameSlot>;
  readonly reached: Set<string>;
  readonly hides: (name: string) => boolean;
  readonly catches: boolean;
  readonly hyphenated: { size: number; names: readonly string[] };
}

const NOTHING = () => false;
const unknown = () => ({ size: -1, names: [] });

export function createNames(known: KnownNames): Names {
  const outer = { parent: undefined, item: undefined, itemSecret: undefined, hides: NOTHING, catches: false };
  return level({ known, ...outer, slots: new Map(), reached: new Set(), hyphenated: unknown() });
}

function level(parts: LevelParts): Names {
  const { known, parent, item, itemSecret, slots, reached, hides, catches, hyphenated } = parts;
  const names: Names = {
    parent,
    item,
    itemSecret,
    hides,
    catches,
    slots,
    parsed: known.parsed,
    get size() {
      return slots.size;
    },
    get hyphenated() {
      // Every expression reads this list, so it is cached. All names are declared before the expressions are compiled.
      if (hyphenated.size !== slots.size) {
        const outermost = [...known.agents, ...known.insideForeach.keys(), ...known.broken];
        const own = [...slots.keys(), ...(item === undefined ? outermost : [item])];
        hyphenated.size = slots.size;
        hyphenated.names = [...own.filter(hasHyphen), ...(parent?.hyphenated ?? [])];
      }
      return hyphenated.names;
    },
    visible() {
      const readable = [...slots.keys()].filter((name) => !hides(name));
      const own = [...readable, ...(item === undefined ? [] : [item, 'index']), ...(catches ? ['error'] : [])];
      return [...own, ...(parent ? parent.visible() : [...OUTERMOST, ...known.agents])];
    },
    declare(name) {
      const existing = slots.get(name);
      if (existing) return existing;
      const slot = { name, slot: slots.size };
      slots.set(name, slot);
      return slot;
    },
    reach: (name) => void reached.add(name),
    isReached: (name) => reached.has(name),
    find(name) {
      const own = slots.get(name);
      if (own) return { slot: own, depth: 0 };
      const outer = parent?.find(name);
      return outer && { slot: outer.slot, depth: outer.depth + 1 };
    },
    nest(itemName, secret) {
      const inner = { parent: names, item: itemName, itemSecret: secret, hides: NOTHING };
      return level({ ...parts, ...inner, slots: new Map(), reached: new Set(), hyphenated: unknown() });
    },
    inBranch: (block, own) => level({ ...parts, hides: (name) => hides(name) || (block.has(name) && !own.has(name)) }),
    catching: () => level({ ...parts, catches: true }),
    resolve: (name, path) => resolveName(name, path, names, known),
    unknownSignal: (name) => unknownSignal(name, known),
  };
  return names;
}

function hasHyphen(name: string): boolean {
  return name.includes('-');
}

function resolveName(
  name: string,
  path: readonly PathSegment[],
  names: Names,
  known: KnownNames,
): NameResolution<ExpressionScope> {
  if (name === 'error' && names.catches) return readCaught(path);
  // A step with a reserved name is reported, but an expression that reads the reserved name is valid.
  const isReserved = RESERVED_NAMES.has(name);
  let depth = 0;
  for (let at: Names | undefined = names; at; at = at.parent) {
    if (!isReserved && at.hides(name)) return { problem: runsConcurrently(name) };
    if (at.item !== undefined && (name === at.item || name === 'index')) {
      const secret = name === at.item ? at.itemSecret : undefined;
      return { read: readItem(name === at.item, depth), consumed: 0, secret };
    }
    const found = at.find(name);
    // Who reads it means that step, which is reported already.
    if (isReserved && found) return { read: () => null, consumed: path.length };
    if (found?.depth === 0) {
      const read = unknownResultMember(name, path) ?? readSlot(found.slot.slot, depth, path);
      return 'problem' in read || at.isReached(name) ? read : { ...read, warning: comesLater(name) };
    }
    depth += 1;
  }
  return resolveOutermost(name, path, { item: nearestItem(names), visible: names.visible }, known);
}

function unknownSignal(name: string, { signals }: KnownNames) {
  if (!signals || signals.has(name)) return undefined;
  return {
    problem: `no \`wait\` of this flow waits for the signal ${quoted(name)}`,
    suggestion: suggestName(name, signals),
  };
}

function runsConcurrently(name: string): string {
  return `${quoted(name)} runs at the same time in another branch of this \`parallel\`: read it after the block`;
}

function comesLater(name: string): string {
  return `${quoted(name)} has not run yet: here it always reads as not executed, and its output as null`;
}

// An item belongs to the level that declares it, so an inner level reads it through its parents.
function readItem(isItem: boolean, depth: number): Evaluate<ExpressionScope> {
  if (depth === 0) return isItem ? (scope) => scope.item : (scope) => scope.index;
  return (scope) => {
    let at = scope;
    for (let up = 0; up < depth; up++) at = at.parent as ExpressionScope;
    return isItem ? at.item : at.index;
  };
}

function nearestItem(names: Names): string | undefined {
  for (let at: Names | undefined = names; at; at = at.parent) if (at.item !== undefined) return at.item;
  return undefined;
}
