/** JSON values, and the only way in which a foreign value becomes one: a copy, limited in depth and size, without `__proto__`. */

import { messageOf } from '../errors.ts';

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/** The deepest nesting of a value or document that the library accepts, the same for JSON and YAML. */
export const MAX_DEPTH = 64;
/** The largest step output or input, counted as {@link copySized} counts: roughly its size in memory. */
export const MAX_VALUE_BYTES = 4 * 1024 * 1024;
// An empty object has 2 characters as JSON, but takes about 30 bytes of memory, and its entry in a container takes more.
export const CONTAINER_BYTES = 32;
export const ENTRY_BYTES = 16;

/** Why a value is not JSON, and the place of the problem in it. */
export interface JsonProblem {
  /** Path inside the value, such as `items[3].when`; empty for the value itself. */
  readonly path: string;
  readonly message: string;
}

/** Thrown by {@link copyJson}. Callers turn it into an `OrchestratorError` with a code of their own. */
export class JsonError extends Error {
  readonly problem: JsonProblem;
  constructor(problem: JsonProblem) {
    super(problem.path ? `${problem.path} ${problem.message}` : `the value ${problem.message}`);
    this.name = 'JsonError';
    this.problem = problem;
  }
}

/** A copied value and its counted size. */
export interface SizedJson {
  readonly value: Json;
  /** 32 for each array and object, 16 for each element and property, and the length of each key and text. */
  readonly bytes: number;
}

/**
 * Copies a foreign value to new plain data: own enumerable properties of plain objects, arrays, and what `toJSON()` of any other
 * value gives, such as the ISO text of a date. A property that is `undefined` is left out, as JSON.stringify does; elsewhere
 * `undefined` is null. What JSON.stringify would lose without a word is refused.
 *
 * @param value - anything
 * @param maxBytes - size limit, counted as {@link copySized} counts
 * @throws JsonError for functions, symbols, BigInt, cycles, invalid dates, maps, promises and class instances without `toJSON`, a
 *   key `__proto__`, numbers that JSON does not have (NaN, Infinity), nesting past {@link MAX_DEPTH}, or a value that is too large
 */
export function copyJson(value: unknown, maxBytes: number = MAX_VALUE_BYTES): Json {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'string' && value.length <= maxBytes) return value;
  return copySized(value, maxBytes).value;
}

/**
 * Like {@link copyJson}, with the counted size: 32 bytes for each array and object, 16 for each element and property, and the
 * length of each key and text. Any other value adds only the 16 bytes of its element or property.
 *
 * @throws JsonError as {@link copyJson}
 */
export function copySized(value: unknown, maxBytes: number = MAX_VALUE_BYTES): SizedJson {
  const sized = { value: null as Json, bytes: 0, maxBytes };
  try {
    sized.value = copy(value, sized, 0) ?? null;
    return sized;
  } catch (thrown) {
    // `copy` keeps no path, because that would cost more than the copying. The path is searched only after a failure.
    if (thrown instanceof JsonError) findProblem(value, { bytes: 0, maxBytes, path: [], ancestors: [] });
    throw thrown;
  }
}

interface ToJson {
  readonly toJSON?: unknown;
}

interface Size {
  bytes: number;
  readonly maxBytes: number;
}

function copy(value: unknown, size: Size, depth: number): Json | undefined {
  switch (typeof value) {
    case 'string':
      size.bytes += value.length;
      if (size.bytes > size.maxBytes) throw new JsonError(NOT_JSON);
      return value;
    case 'number':
      if (!Number.isFinite(value)) throw new JsonError(NOT_JSON);
      return value === 0 ? 0 : value;
    case 'boolean':
    case 'undefined':
      return value;
    case 'object':
      if (value === null) return value;
      if (Array.isArray(value)) return copyArray(value, size, depth);
      return isPlain(value) ? copyObject(value, size, depth) : copyConverted(value, size, depth);
    default:
      return copyConverted(value, size, depth);
  }
}

// Like JSON.stringify, it converts a value once: `toJSON` of the result is not called.
function copyConverted(value: unknown, size: Size, depth: number): Json | undefined {
  const converted = toJsonOf(value, () => new JsonError(NOT_JSON));
  if (isMap(converted) && isPlain(converted)) return copyObject(converted, size, depth, true);
  if (isConverted(converted)) throw new JsonError(NOT_JSON);
  return copy(converted, size, depth);
}

/** What `toJSON()` of a value gives. @param refuse - creates the error of a value without JSON */
function toJsonOf(value: unknown, refuse: (message?: string) => Error): unknown {
  const toJson = (value as ToJson).toJSON;
  if (typeof toJson !== 'function') throw refuse();
  let converted: unknown;
  try {
    converted = toJson.call(value, '');
  } catch (thrown) {
    throw refuse(`has a toJSON() that failed: ${messageOf(thrown)}`);
  }
  if (value instanceof Date && converted === null) throw refuse('is an invalid Date; use null, or a valid date');
  return converted;
}

function isMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function copyArray(value: readonly unknown[], size: Size, depth: number): Json[] {
  if (depth >= MAX_DEPTH) throw new JsonError(NOT_JSON);
  size.bytes += CONTAINER_BYTES + value.length * ENTRY_BYTES;
  if (size.bytes > size.maxBytes) throw new JsonError(NOT_JSON);
  const out: Json[] = [];
  for (let i = 0; i < value.length; i++) out.push(copy(value[i], size, depth + 1) ?? null);
  return out;
}

function copyObject(value: object, size: Size, depth: number, converted = false): Json | undefined {
  if (depth >= MAX_DEPTH) throw new JsonError(NOT_JSON);
  const before = size.bytes;
  size.bytes += CONTAINER_BYTES;
  const out: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    if (key === '__proto__') throw new JsonError(NOT_JSON);
    if (key === 'toJSON' && typeof (value as ToJson).toJSON === 'function') {
      if (converted) continue;
      size.bytes = before;
      return copyConverted(value, size, depth);
    }
    size.bytes += key.length + ENTRY_BYTES;
    if (size.bytes > size.maxBytes) throw new JsonError(NOT_JSON);
    const copied = copy((value as Record<string, unknown>)[key], size, depth + 1);
    if (copied !== undefined) out[key] = copied;
  }
  if (size.bytes > size.maxBytes) throw new JsonError(NOT_JSON);
  return out;
}

const NOT_JSON: JsonProblem = { path: '', message: 'is not JSON' };

interface Search extends Size {
  readonly path: (string | number)[];
  // The ancestors of the current value: an object may occur in two places, but never inside itself.
  readonly ancestors: unknown[];
}

/** Visits the value in the same order as `copy`. @throws JsonError with the place of the first problem */
function findProblem(given: unknown, search: Search): void {
  const value = !isConverted(given) ? given : toJsonOf(given, (message) => problem(search, message ?? lost(given)));
  if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint')
    throw problem(search, lost(value));
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw problem(search, `is ${value}, which JSON can't hold; use null or a string`);
  }
  if (typeof value === 'string') charge(search, value.length);
  if (typeof value !== 'object' || value === null) return;
  const isArray = Array.isArray(value);
  if (!isArray && !isPlain(value)) throw problem(search, lost(value));
  if (search.ancestors.length >= MAX_DEPTH) throw problem(search, `is nested deeper than ${MAX_DEPTH} levels`);
  if (search.ancestors.includes(given)) throw problem(search, 'contains itself (a cycle), which JSON does not allow');
  search.ancestors.push(given);
  charge(search, CONTAINER_BYTES + (isArray ? value.length * ENTRY_BYTES : 0));
  for (const key of isArray ? value.keys() : Object.keys(value)) {
    if (value !== given && key === 'toJSON' && typeof (value as ToJson).toJSON === 'function') continue;
    search.path.push(key);
    if (key === '__proto__') throw problem(search, 'is a key that is never allowed');
    if (!isArray) charge(search, (key as string).length + ENTRY_BYTES);
    findProblem((value as Record<string | number, unknown>)[key], search);
    search.path.pop();
  }
  search.ancestors.pop();
}

// Whether `copy` takes what `toJSON` of the value gives.
function isConverted(value: unknown): boolean {
  if (typeof value === 'object')
    return isMap(value) && (!isPlain(value) || typeof (value as ToJson).toJSON === 'function');
  return typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint';
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

// A plain object of another realm (a vm context, an iframe) has that realm's `Object.prototype`, whose prototype is null.
function isForeignPlain(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'hasOwnProperty');
}

/** Why a value without `toJSON` has no JSON, and what to do. */
function lost(value: unknown): string {
  if (typeof value === 'function') return 'is a function, which JSON does not have; leave it out';
  if (typeof value === 'symbol') return 'is a symbol, which JSON does not have; use a string';
  if (typeof value === 'bigint') return 'is a BigInt, which JSON does not have; use a string';
  if (value instanceof Promise) return 'is a Promise (await it first), not plain data';
  if (value instanceof Map) return 'is a Map (use Object.fromEntries(map)), not plain data';
  if (value instanceof Set) return 'is a Set (use [...set]), not plain data';
  if (value instanceof Error) return 'is an Error (use error.message), not plain data';
  const name = (value as { constructor?: { name?: unknown } }).constructor?.name;
  const what = typeof name === 'string' && name ? `a ${name}` : 'an object of a class';
  return `is ${what} without toJSON(), not plain data; use plain objects, arrays, strings, numbers`;
}

function problem(search: Search, message: string): JsonError {
  return new JsonError({ path: formatPath(search.path), message });
}

// Keys in a path are cut after this many characters: a hostile key may be very long.
const MAX_KEY = 80;

/** Formats a path like `flow[2].input.id`. A key that is not a plain word is quoted, and a long key is cut. */
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

/** JSON text with the keys sorted at every level, so that equal values give equal text. Used for hashes. */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    const object = value as JsonObject;
    const keys = Object.keys(object).sort();
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key] as Json)}`).join(',')}}`;
  }
  return JSON.stringify(value);
}

/** Compares two values deeply. The order of keys does not matter. */
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

/** Copies a value that is valid JSON already, without checks and limits. */
export function cloneJson<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(cloneJson) as T;
  const out: Record<string, unknown> = {};
  for (const key of Object.keys(value)) out[key] = cloneJson((value as Record<string, unknown>)[key]);
  return out as T;
}
