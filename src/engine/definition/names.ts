/** What each name means at one level of the flow: compiles a reference to a read of a slot, or says why it can't be one. */

import type { NameResolution, NameResolver } from '../expression/compiled-expression.ts';
import type { Evaluate } from '../expression/evaluation.ts';
import type { Json, JsonObject } from '../json.ts';
import { oneOf } from './check-shape.ts';
import type { NameResult, Scope } from './scope.ts';
import { suggestName } from '../suggest-name.ts';

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
}

const AGENT_MEMBERS = ['output', 'failed', 'success', 'executed', 'error'];
const EXECUTION_MEMBERS = ['id', 'ensemble', 'version', 'startedAt'];
const TRIGGER_MEMBERS = ['type', 'method', 'path', 'query', 'headers', 'body', 'rawBody'];

/** The names of one level. Levels nest: a `foreach` sees the flow around it, never the other way. */
export interface Names extends NameResolver<Scope> {
  readonly parent: Names | undefined;
  /** What the item is called here; undefined outside a `foreach`. */
  readonly item: string | undefined;
  /** Slots handed out so far. */
  readonly size: number;
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
      const own = [...slots.keys(), ...(item ? [item] : []), ...(parent ? [] : known.agents)].filter((name) => name.includes('-'));
      return [...own, ...(parent?.hyphenated ?? [])];
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
    resolve(name, path) {
      if (item !== undefined && (name === item || name === 'index')) {
        return { read: name === item ? (scope) => scope.item : (scope) => scope.index, consumed: 0 };
      }
      const own = slots.get(name);
      if (own) return resolveAgent(own, 0, path);
      if (parent) return lift(name, path, parent);
      return resolveOutermost(name, path, known);
    },
  };
  const lift = (name: string, path: readonly (string | number)[], outer: Names): NameResolution<Scope> => {
    const found = names.find(name);
    if (found) return resolveAgent(found.slot, found.depth, path);
    const resolved = outer.resolve(name, path);
    if ('problem' in resolved) {
      const near = suggestName(name, item === undefined ? [] : [item, 'index', ...slots.keys()]);
      return resolved.suggestion === undefined && near !== undefined ? { ...resolved, suggestion: near } : resolved;
    }
    // Items belong to the level that declares them; everything else hangs on the run, which all levels share.
    const read = resolved.read;
    return isItemOf(outer, name) ? { read: (scope) => read(scope.parent as Scope), consumed: resolved.consumed } : resolved;
  };
  return names;
}

function isItemOf(names: Names | undefined, name: string): boolean {
  for (let at = names; at; at = at.parent) {
    if (at.item !== undefined && (at.item === name || name === 'index')) return true;
  }
  return false;
}

function resolveOutermost(name: string, path: readonly (string | number)[], known: KnownNames): NameResolution<Scope> {
  const [first] = path;
  switch (name) {
    case 'input':
      if (typeof first === 'string' && known.inputs && !known.inputs.has(first)) {
        return { problem: `input \`${first}\` is not declared in \`inputs\``, ...near(first, known.inputs) };
      }
      return { read: (scope) => scope.run.input, consumed: 0 };
    case 'env':
      return resolveEnv(first, known);
    case 'headers':
      return readHeader((scope) => scope.run.headers, first, 1);
    case 'trigger':
      if (typeof first === 'string' && !TRIGGER_MEMBERS.includes(first)) return unknownMember('trigger', first, TRIGGER_MEMBERS);
      if (first === 'headers') return readHeader((scope) => (scope.run.trigger.headers ?? null) as Json, path[1], 2);
      return { read: (scope) => scope.run.trigger, consumed: 0 };
    case 'state':
      if (!known.hasState) return { problem: 'the ensemble has no `state`; declare `state: { initial: { ... } }`' };
      return { read: (scope) => scope.state, consumed: 0 };
    case 'execution':
      if (typeof first === 'string' && !EXECUTION_MEMBERS.includes(first)) return unknownMember('execution', first, EXECUTION_MEMBERS);
      return { read: (scope) => scope.run.execution, consumed: 0 };
    case 'item':
    case 'index':
      return { problem: `\`${name}\` can be read only inside a \`foreach\`` };
    case 'error':
      return { problem: '`error` can be read only inside `catch`' };
  }
  if (known.agents.has(name)) {
    if (typeof first === 'string' && !AGENT_MEMBERS.includes(first)) return unknownMember(name, first, AGENT_MEMBERS);
    return readResult(() => undefined, path);
  }
  const all = ['input', 'env', 'headers', 'trigger', 'state', 'execution', ...known.agents];
  return { problem: `there is no agent or name \`${name}\``, ...near(name, all) };
}

function resolveEnv(first: string | number | undefined, { env, anyEnv }: KnownNames): NameResolution<Scope> {
  if (typeof first !== 'string') return { problem: 'name the variable: `env.NAME`' };
  if (!Object.hasOwn(env, first)) {
    if (anyEnv) return { read: () => null, consumed: 1 };
    return { problem: `variable \`${first}\` is neither in \`env\` nor in \`secrets\``, ...near(first, Object.keys(env)) };
  }
  const value = env[first] as string;
  return { read: () => value, consumed: 1 };
}

// Header names are stored in lower case; a name that is known at load is looked up in any case.
function readHeader(headers: Evaluate<Scope>, name: string | number | undefined, consumed: number): NameResolution<Scope> {
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

function resolveAgent(slot: NameSlot, depth: number, path: readonly (string | number)[]): NameResolution<Scope> {
  const [first] = path;
  if (typeof first === 'string' && !AGENT_MEMBERS.includes(first)) return unknownMember(slot.name, first, AGENT_MEMBERS);
  const index = slot.slot;
  if (depth === 0) return readResult((scope) => scope.results[index], path);
  return readResult((scope) => {
    let at = scope;
    for (let up = 0; up < depth; up++) at = at.parent as Scope;
    return at.results[index];
  }, path);
}

function readResult(result: (scope: Scope) => NameResult | undefined, path: readonly (string | number)[]): NameResolution<Scope> {
  switch (path[0]) {
    case 'output':
      return { read: (scope) => result(scope)?.output ?? null, consumed: 1 };
    case 'failed':
      return { read: (scope) => result(scope)?.status === 'failed', consumed: 1 };
    case 'success':
      return { read: (scope) => result(scope)?.status === 'completed', consumed: 1 };
    case 'executed':
      return { read: (scope) => wasExecuted(result(scope)), consumed: 1 };
    case 'error':
      return { read: (scope) => errorView(result(scope)), consumed: 1 };
    default:
      return { read: (scope) => view(result(scope)), consumed: 0 };
  }
}

function wasExecuted(result: NameResult | undefined): boolean {
  return result !== undefined && result.status !== 'skipped';
}

function errorView(result: NameResult | undefined): Json {
  return result?.error ? { ...result.error } : null;
}

function view(result: NameResult | undefined): Json {
  return {
    output: result?.output ?? null,
    executed: wasExecuted(result),
    success: result?.status === 'completed',
    failed: result?.status === 'failed',
    error: errorView(result),
  };
}

function unknownMember(name: string, member: string, members: readonly string[]): NameResolution<Scope> {
  return { problem: `\`${name}\` has no \`${member}\`, only ${oneOf(members).replace(' or ', ' and ')}`, ...near(member, members) };
}

function near(name: string, known: Iterable<string>): { readonly suggestion?: string } {
  const suggestion = suggestName(name, known);
  return suggestion === undefined ? {} : { suggestion };
}
