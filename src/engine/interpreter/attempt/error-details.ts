/** The details of a failure: the facts that a thrown value has for programs, as JSON, masked, and small enough to be stored. */

import { isOrchestratorError } from '../../base/errors.ts';
import type { Json, JsonObject } from '../../base/json/json.ts';
import { jsonTextBytes } from '../../base/json/measure-json.ts';
import { FieldCopy, LEFT_OUT } from './mask-fields.ts';
import type { MaskText } from './mask-secrets.ts';

/** The largest details, in bytes of JSON text. */
const MAX_BYTES = 8192;
/** Texts are cut to these lengths, one after the other, until the details are small enough. */
const TEXT_LIMITS = [2048, 512, 128];

/**
 * The `details` of a thrown value, if they are an object that is not a list. The own `code` of anything but an OrchestratorError is
 * added, unless the details have a `code`.
 *
 * @returns undefined when there are none
 */
export function detailsOf(thrown: unknown, mask: MaskText): JsonObject | undefined {
  try {
    if (typeof thrown !== 'object' || thrown === null) return undefined;
    const { details } = thrown as { readonly details?: unknown };
    const given = typeof details === 'object' && !Array.isArray(details) ? details : undefined;
    const code = isOrchestratorError(thrown) ? undefined : ownCode(thrown);
    const copy = (fields: object | null | undefined) => new FieldCopy(mask, false).of(fields ?? {}) as object;
    const all = { ...(code !== undefined && copy({ code })), ...copy(given) };
    const found = JSON.parse(JSON.stringify(all)) as JsonObject;
    return Object.keys(found).length === 0 ? undefined : shorten(found);
  } catch {
    return undefined;
  }
}

/** The `code` that a thrown object has itself, such as `ECONNREFUSED`. An inherited one is a number of the platform. */
export function ownCode(thrown: unknown): string | number | undefined {
  try {
    if (typeof thrown !== 'object' || thrown === null || !Object.hasOwn(thrown, 'code')) return undefined;
    const { code } = thrown as { readonly code?: unknown };
    return typeof code === 'string' || typeof code === 'number' ? code : undefined;
  } catch {
    return undefined;
  }
}

function shorten(details: JsonObject): JsonObject {
  let cut = details;
  for (const limit of TEXT_LIMITS) {
    if (jsonTextBytes(cut, MAX_BYTES) <= MAX_BYTES) return cut;
    cut = cutTexts(details, limit) as JsonObject;
  }
  return jsonTextBytes(cut, MAX_BYTES) <= MAX_BYTES ? cut : withoutLargest(cut);
}

function cutTexts(value: Json, limit: number): Json {
  if (typeof value === 'string') return value.length > limit ? value.slice(0, limit) + LEFT_OUT : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => cutTexts(item, limit));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cutTexts(item, limit)]));
}

/** Keeps the smallest members that fit. A larger one is replaced by a marker, or left out when its key is too long for that. */
function withoutLargest(details: JsonObject): JsonObject {
  const members = Object.entries(details).map(([key, value]) => {
    // Without its brackets, with a comma.
    const bytesOf = (item: Json) => jsonTextBytes({ [key]: item }, MAX_BYTES) - 1;
    return { key, value, bytes: bytesOf(value), marked: bytesOf(LEFT_OUT) };
  });
  const largestFirst = [...members].sort((a, b) => b.bytes - a.bytes);
  let total = 2 + members.reduce((sum, { bytes }) => sum + bytes, 0);
  const replaced = new Map<string, Json | undefined>();
  for (const { key, bytes, marked } of largestFirst) {
    if (total <= MAX_BYTES) break;
    total += marked - bytes;
    replaced.set(key, LEFT_OUT);
  }
  for (const { key, marked } of largestFirst) {
    if (total <= MAX_BYTES) break;
    total -= marked;
    replaced.set(key, undefined);
  }
  const kept = members.map(({ key, value }) => [key, replaced.has(key) ? replaced.get(key) : value] as const);
  return Object.fromEntries(kept.filter(([, value]) => value !== undefined)) as JsonObject;
}
