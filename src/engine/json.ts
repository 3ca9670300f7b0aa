/** JSON values and the one way foreign values become them: copied, bounded in depth and size, free of prototype keys. */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/** Deepest nesting of any value or document that the library takes (the same for JSON and YAML). */
export const MAX_DEPTH = 64;
/** Largest step output or input, counted roughly in bytes of its JSON. */
export const MAX_VALUE_BYTES = 4 * 1024 * 1024;

/** Why a value can't be taken as JSON, and where in it. */
export interface JsonProblem {
  /** Path inside the value, such as `items[3].when`; empty for the value itself. */
  readonly path: string;
  readonly message: string;
}

/** Thrown by {@link copyJson}; callers turn it into the code of their own stage. */
export class JsonError extends Error {
  readonly problem: JsonProblem;
  constructor(problem: JsonProblem) {
    super(problem.path ? `${problem.path} ${problem.message}` : `the value ${problem.message}`);
    this.name = 'JsonError';
    this.problem = problem;
  }
}

interface CopyState {
  bytesLeft: number;
  readonly path: (string | number)[];
  // Only the ancestors of the value at hand: the same object may stand in two places, but never inside itself.
  readonly ancestors: unknown[];
}

/**
 * Copies a foreign value to fresh plain data: own enumerable properties of plain objects, and arrays.
 * `undefined`, functions and symbols are left out (null inside an array), as JSON.stringify does.
 *
 * @param value - anything
 * @param maxBytes - size limit, counted roughly as UTF-16 length of the JSON
 * @throws JsonError for cycles, BigInt, dates, buffers, maps, promises and class instances, a key `__proto__`,
 *   numbers that JSON has not (NaN, Infinity), nesting past {@link MAX_DEPTH}, or too large a value
 */
export function copyJson(value: unknown, maxBytes: number = MAX_VALUE_BYTES): Json {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'string' && value.length < maxBytes) return value;
  if (value === undefined) return null;
  const state: CopyState = { bytesLeft: maxBytes, path: [], ancestors: [] };
  return copy(value, state) ?? null;
}

function copy(value: unknown, state: CopyState): Json | undefined {
  switch (typeof value) {
    case 'string':
      charge(state, value.length + 2);
      return value;
    case 'number':
      charge(state, 8);
      if (!Number.isFinite(value)) fail(state, `is ${value}, which JSON can't hold; use null or a string`);
      return Object.is(value, -0) ? 0 : value;
    case 'boolean':
      charge(state, 5);
      return value;
    case 'object':
      if (value === null) {
        charge(state, 4);
        return null;
      }
      return Array.isArray(value) ? copyArray(value, state) : copyObject(value, state);
    case 'bigint':
      return fail(state, 'is a BigInt, which JSON has not; use a string');
    default:
      return undefined;
  }
}

function copyArray(value: readonly unknown[], state: CopyState): Json[] {
  enter(value, state);
  charge(state, value.length * 2 + 2);
  const out: Json[] = [];
  for (let i = 0; i < value.length; i++) {
    state.path.push(i);
    out.push(copy(value[i], state) ?? null);
    state.path.pop();
  }
  state.ancestors.pop();
  return out;
}

function copyObject(value: object, state: CopyState): JsonObject {
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype && !isForeignPlain(prototype)) {
    fail(state, `is ${describe(value)}, not plain data; return plain objects, arrays, strings, numbers`);
  }
  enter(value, state);
  const out: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    state.path.push(key);
    if (key === '__proto__') fail(state, 'is a key that is never allowed');
    charge(state, key.length + 4);
    const copied = copy((value as Record<string, unknown>)[key], state);
    if (copied !== undefined) out[key] = copied;
    state.path.pop();
  }
  state.ancestors.pop();
  return out;
}

function enter(value: object, state: CopyState): void {
  if (state.ancestors.length >= MAX_DEPTH) fail(state, `is nested deeper than ${MAX_DEPTH} levels`);
  if (state.ancestors.includes(value)) fail(state, 'contains itself (a cycle), which JSON has not');
  state.ancestors.push(value);
}

function charge(state: CopyState, bytes: number): void {
  state.bytesLeft -= bytes;
  if (state.bytesLeft < 0)
    throw new JsonError({ path: '', message: 'is larger than the limit; store it and pass a key' });
}

// A plain object of another realm (a vm context, an iframe) has a prototype of its own whose prototype is null.
function isForeignPlain(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'hasOwnProperty');
}

function describe(value: object): string {
  const name = (value as { constructor?: { name?: unknown } }).constructor?.name;
  if (value instanceof Date) return 'a Date (use date.toISOString())';
  if (value instanceof Promise) return 'a Promise (await it first)';
  return typeof name === 'string' && name ? `a ${name}` : 'an object of a class';
}

function fail(state: CopyState, message: string): never {
  throw new JsonError({ path: formatPath(state.path), message });
}

/** Writes a path as people do: `flow[2].input.id`, with quotes where a key is no plain word. */
export function formatPath(path: readonly (string | number)[]): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else if (/^[A-Za-z_$][\w$-]*$/.test(part)) text += text ? `.${part}` : part;
    else text += `[${JSON.stringify(part)}]`;
  }
  return text;
}

/** JSON text with keys sorted at every level, so that equal values give equal text (used for hashes). */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    const object = value as JsonObject;
    const keys = Object.keys(object).sort();
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key] as Json)}`).join(',')}}`;
  }
  return JSON.stringify(value);
}

/** Equality by value, for arrays and objects too. */
export function equalJson(a: Json, b: Json): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!equalJson(a[i] as Json, b[i] as Json)) return false;
    return true;
  }
  if (Array.isArray(b)) return false;
  const left = a as JsonObject;
  const right = b as JsonObject;
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && equalJson(left[key] as Json, right[key] as Json));
}

/** A copy of what is JSON already: nothing is checked and nothing bounded. */
export function cloneJson<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(cloneJson) as T;
  const out: Record<string, unknown> = {};
  for (const key of Object.keys(value)) out[key] = cloneJson((value as Record<string, unknown>)[key]);
  return out as T;
}
