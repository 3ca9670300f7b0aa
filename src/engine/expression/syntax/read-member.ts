/** Member access. It reads own enumerable data only, and null for a missing member. */

import type { Json, JsonObject } from '../../base/json/json.ts';
import { describeType, EvaluationProblem } from '../evaluation-problem.ts';

/** `value['key']`. Text and arrays have `length` and their indexes, objects have their own keys. */
export function readKey(value: Json, key: string): Json {
  if (typeof value === 'object') {
    if (value === null) return null;
    // `length` is an array's only own property besides its elements.
    return Object.hasOwn(value, key) ? ((value as JsonObject)[key] ?? null) : null;
  }
  if (typeof value !== 'string') return null;
  if (key === 'length') return value.length;
  return /^(?:0|[1-9]\d{0,8})$/.test(key) ? (value[Number(key)] ?? null) : null;
}

/** `value[0]`. In an object it reads the key with that text. */
export function readIndex(value: Json, index: number): Json {
  if (Array.isArray(value))
    return index >= 0 && index < value.length ? ((value as readonly Json[])[index] ?? null) : null;
  if (typeof value === 'string') return index >= 0 && index < value.length ? (value[index] as string) : null;
  return readKey(value, String(index));
}

/**
 * `value[key]` with a computed key. A null key reads nothing.
 * @throws EvaluationProblem for a key that is neither text nor an integer: it would have to be turned into text first
 */
export function readComputed(value: Json, key: Json): Json {
  if (typeof key === 'string') return readKey(value, key);
  if (typeof key === 'number' && Number.isInteger(key)) return readIndex(value, key);
  if (key === null) return null;
  const found = typeof key === 'number' ? 'a number with a fraction' : describeType(key);
  throw new EvaluationProblem(`a key must be text or an integer, found ${found}`);
}
