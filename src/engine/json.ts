/** JSON values and the one way foreign values become them: copied, bounded in depth and size, free of prototype keys. */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/** Deepest nesting of any value or document that the library takes (the same for JSON and YAML). */
export const MAX_DEPTH = 64;
/** Largest step output or input, counted as {@link copySized} counts: roughly what the value costs in memory. */
export const MAX_VALUE_BYTES = 4 * 1024 * 1024;
// An empty object is 2 characters of JSON and some 30 bytes of memory; what holds it costs a place more.
const CONTAINER_BYTES = 32;
const ENTRY_BYTES = 16;

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

/** A copied value, and what it costs. */
export interface SizedJson {
  readonly value: Json;
  /** 32 for each array and object, 16 for each element and property, and the length of each key and text. */
  readonly bytes: number;
}

/**
 * Copies a foreign value to fresh plain data: own enumerable properties of plain objects, and arrays. A property that is
 * `undefined` is left out, as JSON.stringify does; elsewhere `undefined` is null.
 *
 * @param value - anything
 * @param maxBytes - size limit, counted as {@link copySized} counts
 * @throws JsonError for functions, symbols, BigInt, cycles, dates, buffers, maps, promises and class instances, a key
 *   `__proto__`, numbers that JSON has not (NaN, Infinity), nesting past {@link MAX_DEPTH}, or too large a value
 */
export function copyJson(value: unknown, maxBytes: number = MAX_VALUE_BYTES): Json {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'string' && value.length <= maxBytes) return value;
  return copySized(value, maxBytes).value;
}

/**
 * As {@link copyJson}, with the counted size: 32 bytes for each array and object, 16 for each element and property, and the
 * length of each key and text. Another value counts only as the element or property that it is.
 *
 * @throws JsonError as {@link copyJson}
 */
export function copySized(value: unknown, maxBytes: number = MAX_VALUE_BYTES): SizedJson {
  const sized = { value: null as Json, bytes: 0, maxBytes };
  try {
    sized.value = copy(value, sized, 0) ?? null;
    return sized;
  } catch (thrown) {
    // The copy keeps no path, which would cost more than the copying: what it stumbled over is looked for when it is needed.
    if (thrown instanceof JsonError) findProblem(value, { bytes: 0, maxBytes, path: [], ancestors: [] });
    throw thrown;
  }
}

/** What a JSON value counts, as {@link copySized} counts it; nothing is checked. */
export function sizeOfJson(value: Json): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let bytes = CONTAINER_BYTES;
  if (Array.isArray(value)) {
    bytes += value.length * ENTRY_BYTES;
    for (let i = 0; i < value.length; i++) bytes += sizeOfJson(value[i] as Json);
    return bytes;
  }
  for (const key of Object.keys(value)) {
    bytes += key.length + ENTRY_BYTES + sizeOfJson((value as JsonObject)[key] as Json);
  }
  return bytes;
}

interface Size {
  bytes: number;
  readonly maxBytes: number;
}

function copy(value: unknown, size: Size, depth: number): Json | undefined {
  switch (typeof value) {
    case 'string':
      size.bytes += value.length;
      if (size.bytes > size.maxBytes) throw new JsonError(NO_JSON);
      return value;
    case 'number':
      if (!Number.isFinite(value)) throw new JsonError(NO_JSON);
      return value === 0 ? 0 : value;
    case 'boolean':
    case 'undefined':
      return value;
    case 'object':
      if (value === null) return value;
      if (depth >= MAX_DEPTH) throw new JsonError(NO_JSON);
      size.bytes += CONTAINER_BYTES;
      if (size.bytes > size.maxBytes) throw new JsonError(NO_JSON);
      return Array.isArray(value) ? copyArray(value, size, depth) : copyObject(value, size, depth);
    default:
      throw new JsonError(NO_JSON);
  }
}

function copyArray(value: readonly unknown[], size: Size, depth: number): Json[] {
  size.bytes += value.length * ENTRY_BYTES;
  if (size.bytes > size.maxBytes) throw new JsonError(NO_JSON);
  const out: Json[] = [];
  for (let i = 0; i < value.length; i++) out.push(copy(value[i], size, depth + 1) ?? null);
  return out;
}

function copyObject(value: object, size: Size, depth: number): JsonObject {
  if (!isPlain(value)) throw new JsonError(NO_JSON);
  const out: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    if (key === '__proto__') throw new JsonError(NO_JSON);
    size.bytes += key.length + ENTRY_BYTES;
    const copied = copy((value as Record<string, unknown>)[key], size, depth + 1);
    if (copied !== undefined) out[key] = copied;
  }
  if (size.bytes > size.maxBytes) throw new JsonError(NO_JSON);
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
  if (typeof value === 'function') fail(search, 'is a function, which JSON has not; leave it out');
  if (typeof value === 'symbol') fail(search, 'is a symbol, which JSON has not; use a string');
  if (typeof value === 'bigint') fail(search, 'is a BigInt, which JSON has not; use a string');
  if (typeof value === 'number' && !Number.isFinite(value)) {
    fail(search, `is ${value}, which JSON can't hold; use null or a string`);
  }
  if (typeof value === 'string') charge(search, value.length);
  if (typeof value !== 'object' || value === null) return;
  const isArray = Array.isArray(value);
  if (!isArray && !isPlain(value)) {
    fail(search, `is ${describe(value)}, not plain data; return plain objects, arrays, strings, numbers`);
  }
  if (search.ancestors.length >= MAX_DEPTH) fail(search, `is nested deeper than ${MAX_DEPTH} levels`);
  if (search.ancestors.includes(value)) fail(search, 'contains itself (a cycle), which JSON has not');
  search.ancestors.push(value);
  charge(search, CONTAINER_BYTES + (isArray ? value.length * ENTRY_BYTES : 0));
  for (const key of isArray ? value.keys() : Object.keys(value)) {
    search.path.push(key);
    if (key === '__proto__') fail(search, 'is a key that is never allowed');
    if (!isArray) charge(search, (key as string).length + ENTRY_BYTES);
    findProblem((value as Record<string | number, unknown>)[key], search);
    search.path.pop();
  }
  search.ancestors.pop();
}

function charge(size: Size, bytes: number): void {
  size.bytes += bytes;
  if (size.bytes > size.maxBytes) throw new JsonError({ path: '', message: tooLarge(size.maxBytes) });
}

function tooLarge(maxBytes: number): string {
  const limit = maxBytes === MAX_VALUE_BYTES ? '4 MiB' : `${maxBytes} bytes`;
  const count = `an array or object counts ${CONTAINER_BYTES} bytes, an entry ${ENTRY_BYTES}, text its length`;
  return `is larger than the limit of ${limit} (${count}); store it and pass a key`;
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

// A key may be as long as what it came in.
const MAX_KEY = 80;

/** Writes a path as people do: `flow[2].input.id`, with quotes where a key is no plain word, and long keys cut. */
export function formatPath(path: readonly (string | number)[]): string {
  let text = '';
  for (const given of path) {
    const part = typeof given === 'string' && given.length > MAX_KEY ? `${given.slice(0, MAX_KEY)}…` : given;
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
