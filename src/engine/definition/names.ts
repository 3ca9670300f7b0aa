/** What each name means at one level of the flow: compiles a reference to a read of a slot, or says why it can't be one. */

import type { NameResolution, NameResolver, PathSegment } from '../expression/compiled-expression.ts';
import type { Evaluate } from '../expression/evaluation.ts';
import { RESERVED_NAMES } from '../model/name.ts';
import { suggestName } from '../suggest-name.ts';
import { type KnownNames, OUTERMOST, readCaught, resolveOutermost, unknownResultMember } from './outermost-names.ts';
import { readSlot } from './result-reads.ts';
import type { Scope } from './scope.ts';
import { quoted } from './wording.ts';

/** One name of one level, with the place of its result in the level's scope. */
export interface NameSlot {
  readonly name: string;
  readonly slot: number;
}

/** The names of one level. Levels nest: a `foreach` sees the flow around it, never the other way. */
export interface Names extends NameResolver<Scope> {
  readonly parent: Names | undefined;
  /** What the item is called here; undefined outside a `foreach`. */
  readonly item: string | undefined;
  /** The secret that the item may hold. */
  readonly itemSecret: string | undefined;
  /** Slots handed out so far. */
  readonly size: number;
  /** Every name that may be read here, nearest level first. */
  visible(): string[];
  /** Gives a result name its slot; a name that has one keeps it. */
  declare(name: string): NameSlot;
  /** Its step is being compiled: what is compiled from now on may read it. */
  reach(name: string): void;
  /** Whether the step of a name of this level is the one at hand, stands ahead of it, or in the loop around it. */
  isReached(name: string): boolean;
  /** The slot of a name at this level or around it, and how many levels up. */
  find(name: string): { readonly slot: NameSlot; readonly depth: number } | undefined;
  /** A level inside this one. @param item - the name of its item. @param secret - what secret it may hold */
  nest(item: string, secret?: string): Names;
  /**
   * The same level as one branch sees it, while others run beside it.
   *
   * @param block - the names of all branches together
   * @param own - those of the branch itself
   */
  beside(block: ReadonlySet<string>, own: ReadonlySet<string>): Names;
  /** The same level inside a `catch`, where `error` can be read. */
  catching(): Names;
  /** Whether a name of this level can't be read from here: it runs at the same time. */
  hides(name: string): boolean;
  readonly catches: boolean;
}

/** What one level is made of; its views share the slots, and what is computed from them. */
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
    get size() {
      return slots.size;
    },
    get hyphenated() {
      // Asked for by every expression, and names come before expressions.
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
    beside: (block, own) => level({ ...parts, hides: (name) => hides(name) || (block.has(name) && !own.has(name)) }),
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
): NameResolution<Scope> {
  if (name === 'error' && names.catches) return readCaught(path);
  // A step that has such a name is wrong, and is told so; what reads the name is right.
  const isReserved = RESERVED_NAMES.has(name);
  let depth = 0;
  for (let at: Names | undefined = names; at; at = at.parent) {
    if (!isReserved && at.hides(name)) return { problem: runsBeside(name) };
    if (at.item !== undefined && (name === at.item || name === 'index')) {
      const secret = name === at.item ? at.itemSecret : undefined;
      return { read: readItem(name === at.item, depth), consumed: 0, secret };
    }
    const found = isReserved ? undefined : at.find(name);
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

function runsBeside(name: string): string {
  return `${quoted(name)} runs at the same time in another branch of this \`parallel\`: read it behind the block`;
}

function comesLater(name: string): string {
  return `${quoted(name)} is a later step: here it always reads as not executed, and its output as null`;
}

// Items belong to the level that declares them; everything else hangs on the run, which all levels share.
function readItem(isItem: boolean, depth: number): Evaluate<Scope> {
  if (depth === 0) return isItem ? (scope) => scope.item : (scope) => scope.index;
  return (scope) => {
    let at = scope;
    for (let up = 0; up < depth; up++) at = at.parent as Scope;
    return isItem ? at.item : at.index;
  };
}

function nearestItem(names: Names): string | undefined {
  for (let at: Names | undefined = names; at; at = at.parent) if (at.item !== undefined) return at.item;
  return undefined;
}
