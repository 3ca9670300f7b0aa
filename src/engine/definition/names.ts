/** What each name means at one level of the flow: compiles a reference to a read of a slot, or says why it can't be one. */

import type { NameResolution, NameResolver, PathSegment } from '../expression/compiled-expression.ts';
import type { Evaluate } from '../expression/evaluation.ts';
import type { Json, JsonObject } from '../json.ts';
import { suggestName } from '../suggest-name.ts';
import { RESULT_MEMBERS, readResult, readSlot } from './result-reads.ts';
import type { Scope } from './scope.ts';
import { oneOf, quoted } from './wording.ts';

/** One name of one level, with the place of its result in the level's scope. */
export interface NameSlot {
  readonly name: string;
  readonly slot: number;
}

/** What is known of a definition before its flow is compiled; the same for all levels. */
export interface KnownNames {
  /** Values of `${env.X}`. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables are not known here: any may be named. */
  readonly anyEnv?: boolean;
  /** Declared input fields; undefined when none are declared, and any may be read. */
  readonly inputs: ReadonlySet<string> | undefined;
  readonly hasState: boolean;
  /** Agents that are declared or shared; one that never runs reads as not executed. */
  readonly agents: ReadonlySet<string>;
  /** Names of steps and items inside a `foreach` that mean nothing outside of one. */
  readonly insideForeach: ReadonlyMap<string, 'step' | 'item'>;
  /** Names of parts that are wrong: they read as null, and nobody complains. */
  readonly broken: ReadonlySet<string>;
  /** Part of the definition could not be read, so that any name may be right. */
  readonly anyName: boolean;
}

const EXECUTION_MEMBERS = ['id', 'ensemble', 'version', 'startedAt'];
const TRIGGER_MEMBERS = ['type', 'method', 'path', 'query', 'headers', 'body', 'rawBody'];

/** The names of one level. Levels nest: a `foreach` sees the flow around it, never the other way. */
export interface Names extends NameResolver<Scope> {
  readonly parent: Names | undefined;
  /** What the item is called here; undefined outside a `foreach`. */
  readonly item: string | undefined;
  /** Slots handed out so far. */
  readonly size: number;
  /** Every name that may be read here, nearest level first. */
  visible(): string[];
  /** Gives a result name its slot; a name that has one keeps it. */
  declare(name: string): NameSlot;
  /** The slot of a name at this level or around it, and how many levels up. */
  find(name: string): { readonly slot: NameSlot; readonly depth: number } | undefined;
  /** A level inside this one. @param item - the name of its item */
  nest(item: string): Names;
}

export function createNames(known: KnownNames): Names {
  return level(known, undefined, undefined);
}

function level(known: KnownNames, parent: Names | undefined, item: string | undefined): Names {
  const slots = new Map<string, NameSlot>();
  const names: Names = {
    parent,
    item,
    get size() {
      return slots.size;
    },
    get hyphenated() {
      const outermost = parent ? parent.hyphenated : [...known.agents, ...known.insideForeach.keys(), ...known.broken];
      const own = [...slots.keys(), ...(item === undefined ? [] : [item])];
      return [...own, ...outermost].filter((name) => name.includes('-'));
    },
    visible() {
      const own = [...slots.keys(), ...(item === undefined ? [] : [item, 'index'])];
      return [...own, ...(parent ? parent.visible() : [...OUTERMOST, ...known.agents])];
    },
    declare(name) {
      const existing = slots.get(name);
      if (existing) return existing;
      const slot = { name, slot: slots.size };
      slots.set(name, slot);
      return slot;
    },
    find(name) {
      const own = slots.get(name);
      if (own) return { slot: own, depth: 0 };
      const outer = parent?.find(name);
      return outer && { slot: outer.slot, depth: outer.depth + 1 };
    },
    nest: (itemName) => level(known, names, itemName),
    resolve: (name, path) => resolveName(name, path, names, known),
  };
  return names;
}

function resolveName(
  name: string,
  path: readonly PathSegment[],
  names: Names,
  known: KnownNames,
): NameResolution<Scope> {
  let depth = 0;
  for (let at: Names | undefined = names; at; at = at.parent) {
    if (at.item !== undefined && (name === at.item || name === 'index')) {
      return { read: readItem(name === at.item, depth), consumed: 0 };
    }
    const found = at.find(name);
    if (found?.depth === 0) return unknownResultMember(name, path) ?? readSlot(found.slot.slot, depth, path);
    depth += 1;
  }
  return resolveOutermost(name, path, names, known);
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

const OUTERMOST = ['input', 'env', 'headers', 'trigger', 'state', 'execution'];

function resolveOutermost(
  name: string,
  path: readonly PathSegment[],
  names: Names,
  known: KnownNames,
): NameResolution<Scope> {
  const [first] = path;
  switch (name) {
    case 'input':
      if (typeof first === 'string' && known.inputs && !known.inputs.has(first)) {
        return undeclaredInput(first, known.inputs);
      }
      return { read: (scope) => scope.run.input, consumed: 0 };
    case 'env':
      return resolveEnv(first, known);
    case 'headers':
      return readHeader((scope) => scope.run.headers, first, 1);
    case 'trigger':
      if (first === 'headers') return readHeader((scope) => (scope.run.trigger.headers ?? null) as Json, path[1], 2);
      return unknownMember('trigger', first, TRIGGER_MEMBERS) ?? { read: (scope) => scope.run.trigger, consumed: 0 };
    case 'state':
      if (!known.hasState) return { problem: 'the ensemble has no `state`; declare `state: { initial: { ... } }`' };
      return { read: (scope) => scope.state, consumed: 0 };
    case 'execution':
      return (
        unknownMember('execution', first, EXECUTION_MEMBERS) ?? { read: (scope) => scope.run.execution, consumed: 0 }
      );
    case 'item':
    case 'index': {
      const item = nearestItem(names);
      if (item === undefined) return { problem: `\`${name}\` can be read only inside a \`foreach\`` };
      return { problem: `the item of this \`foreach\` is called \`${item}\``, suggestion: item };
    }
    case 'error':
      return { problem: "`error` can be read only inside a `catch`; an agent's error is `${agent.error.message}`" };
  }
  return resolveAgentName(name, path, names, known);
}

function nearestItem(names: Names): string | undefined {
  for (let at: Names | undefined = names; at; at = at.parent) if (at.item !== undefined) return at.item;
  return undefined;
}

function resolveAgentName(
  name: string,
  path: readonly PathSegment[],
  names: Names,
  known: KnownNames,
): NameResolution<Scope> {
  const inner = known.insideForeach.get(name);
  if (inner === 'item')
    return { problem: `${quoted(name)} is the item of a \`foreach\` and can be read only inside it` };
  if (inner === 'step') {
    const advice = 'give the `foreach` a `name` and read its output';
    return { problem: `${quoted(name)} runs inside a \`foreach\` and can be read only there; ${advice}` };
  }
  if (known.broken.has(name)) return { read: () => null, consumed: path.length };
  if (known.agents.has(name)) return unknownResultMember(name, path) ?? readResult(() => undefined, path);
  if (known.anyName) return { read: () => null, consumed: path.length };
  return { problem: `there is no agent or name ${quoted(name)}`, ...near(name, names.visible()) };
}

function undeclaredInput(name: string, declared: ReadonlySet<string>): { problem: string; suggestion?: string } {
  const problem = `input ${quoted(name)} is not declared in \`inputs\``;
  // `input.first-name` is a subtraction.
  const hyphenated = [...declared].find((other) => other.startsWith(`${name}-`));
  if (hyphenated !== undefined) return { problem, suggestion: `input['${hyphenated}']` };
  return { problem, ...near(name, declared) };
}

function resolveEnv(first: PathSegment | undefined, { env, anyEnv }: KnownNames): NameResolution<Scope> {
  if (typeof first !== 'string') return { problem: 'name the variable: `env.NAME`' };
  if (Object.hasOwn(env, first)) {
    const value = env[first] as string;
    return { read: () => value, consumed: 1 };
  }
  if (anyEnv) return { read: () => null, consumed: 1 };
  return unknownVariable(first, env);
}

/** The problem of an `${env.X}` that nobody handed over. */
export function unknownVariable(name: string, env: KnownNames['env']): { problem: string; suggestion?: string } {
  const problem = `variable ${quoted(name)} is neither in \`env\` nor in \`secrets\` of createOrchestrator`;
  return { problem, ...near(name, Object.keys(env)) };
}

// Header names are stored in lower case; a name that is known at load is looked up in any case.
function readHeader(headers: Evaluate<Scope>, name: PathSegment | undefined, consumed: number): NameResolution<Scope> {
  if (typeof name !== 'string') return { read: headers, consumed: consumed - 1 };
  const key = name.toLowerCase();
  return {
    read: (scope) => {
      const all = headers(scope) as JsonObject | null;
      return all && Object.hasOwn(all, key) ? (all[key] as Json) : null;
    },
    consumed,
  };
}

function unknownResultMember(name: string, [first]: readonly PathSegment[]): NameResolution<Scope> | undefined {
  const problem = unknownMember(name, first, RESULT_MEMBERS);
  if (!problem || problem.suggestion !== undefined) return problem;
  return { ...problem, suggestion: `${name}.output.${String(first)}` };
}

function unknownMember(
  name: string,
  member: PathSegment | undefined,
  members: readonly string[],
): { problem: string; suggestion?: string } | undefined {
  if (typeof member !== 'string' || members.includes(member)) return undefined;
  return {
    problem: `${quoted(name)} has no ${quoted(member)}, only ${oneOf(members, 'and')}`,
    ...near(member, members),
  };
}

function near(name: string, known: Iterable<string>): { readonly suggestion?: string } {
  const suggestion = suggestName(name, known);
  return suggestion === undefined ? {} : { suggestion };
}
