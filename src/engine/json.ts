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
  try {
    return copy(value, { bytesLeft: maxBytes }, 0) ?? null;
  } catch (thrown) {
    // The copy keeps no path, which would cost more than the copying: what it stumbled over is looked for when it is needed.
    if (thrown instanceof JsonError) findProblem(value, { bytesLeft: maxBytes, path: [], ancestors: [] });
    throw thrown;
  }
}

interface Size {
  bytesLeft: number;
}

function copy(value: unknown, size: Size, depth: number): Json | undefined {
  switch (typeof value) {
    case 'string':
      size.bytesLeft -= value.length + 2;
      break;
    case 'number':
      if (!Number.isFinite(value)) throw new JsonError(NO_JSON);
      size.bytesLeft -= 8;
      return value === 0 ? 0 : value;
    case 'boolean':
      size.bytesLeft -= 5;
      return value;
    case 'object': {
      if (value === null) return value;
      if (depth >= MAX_DEPTH || size.bytesLeft < 0) throw new JsonError(NO_JSON);
      return Array.isArray(value) ? copyArray(value, size, depth) : copyObject(value, size, depth);
    }
    case 'bigint':
      throw new JsonError(NO_JSON);
    default:
      return undefined;
  }
  if (size.bytesLeft < 0) throw new JsonError(NO_JSON);
  return value;
}

function copyArray(value: readonly unknown[], size: Size, depth: number): Json[] {
  size.bytesLeft -= value.length * 2 + 2;
  if (size.bytesLeft < 0) throw new JsonError(NO_JSON);
  const out: Json[] = [];
  for (let i = 0; i < value.length; i++) out.push(copy(value[i], size, depth + 1) ?? null);
  return out;
}

function copyObject(value: object, size: Size, depth: number): JsonObject {
  if (!isPlain(value)) throw new JsonError(NO_JSON);
  const out: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    if (key === '__proto__') throw new JsonError(NO_JSON);
    size.bytesLeft -= key.length + 4;
    const copied = copy((value as Record<string, unknown>)[key], size, depth + 1);
    if (copied !== undefined) out[key] = copied;
  }
  if (size.bytesLeft < 0) throw new JsonError(NO_JSON);
  return out;
}

const NO_JSON: JsonProblem = { path: '', message: 'can not be taken as JSON' };

interface Search extends Size {
  readonly path: (string | number)[];
  // Only the ancestors of the value at hand: the same object may stand in two places, but never inside itself.
  readonly ancestors: unknown[];
}

/** Walks as the copy does. @throws JsonError with the place of the first problem */
function findProblem(value: unknown, search: Search): void {
  if (typeof value === 'bigint') fail(search, 'is a BigInt, which JSON has not; use a string');
  if (typeof value === 'number' && !Number.isFinite(value)) {
    fail(search, `is ${value}, which JSON can't hold; use null or a string`);
  }
  charge(search, typeof value === 'string' ? value.length + 2 : 0);
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value) && !isPlain(value)) {
    fail(search, `is ${describe(value)}, not plain data; return plain objects, arrays, strings, numbers`);
  }
  if (search.ancestors.length >= MAX_DEPTH) fail(search, `is nested deeper than ${MAX_DEPTH} levels`);
  if (search.ancestors.includes(value)) fail(search, 'contains itself (a cycle), which JSON has not');
  search.ancestors.push(value);
  const isArray = Array.isArray(value);
  charge(search, isArray ? value.length * 2 + 2 : 0);
  for (const key of isArray ? value.keys() : Object.keys(value)) {
    search.path.push(key);
    if (key === '__proto__') fail(search, 'is a key that is never allowed');
    charge(search, isArray ? 8 : (key as string).length + 4);
    findProblem((value as Record<string | number, unknown>)[key], search);
    search.path.pop();
  }
  search.ancestors.pop();
}

function charge(size: Size, bytes: number): void {
  size.bytesLeft -= bytes;
  if (size.bytesLeft < 0)
    throw new JsonError({ path: '', message: 'is larger than the limit; store it and pass a key' });
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || isForeignPlain(prototype);
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

function fail(search: Search, message: string): never {
  throw new JsonError({ path: formatPath(search.path), message });
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
