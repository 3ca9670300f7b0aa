/** The keyed values and the objects of the memory storage. */

import type { Json } from '../../../engine/base/json/json.ts';
import {
  checkKey,
  isPlainText,
  type KeyPage,
  type KvStore,
  type ObjectStore,
  type StoredObject,
} from '../../../engine/storage/data.port.ts';
import { compareBytes } from '../compare-bytes.ts';
import { withStreams } from '../with-streams.ts';

/**
 * Keyed values in memory.
 *
 * @param seed - values that are there from the beginning, by key
 * @throws INVALID_REQUEST for a key that no store can hold
 */
export function memoryKv(seed: Readonly<Record<string, Json>> = {}): KvStore {
  const entries = new Map<string, { readonly value: Json; readonly expiresAt: number }>();
  for (const [key, value] of Object.entries(seed))
    entries.set(checkKey(key), { value, expiresAt: Number.POSITIVE_INFINITY });
  const isLive = (key: string, now: number) => {
    const entry = entries.get(key);
    if (entry === undefined || entry.expiresAt > now) return entry !== undefined;
    entries.delete(key);
    return false;
  };
  return {
    kind: 'kv',
    get: (key, now) => (isLive(checkKey(key), now) ? entries.get(key)?.value : undefined),
    put(key, value, expiresAt = Number.POSITIVE_INFINITY) {
      entries.set(checkKey(key), { value, expiresAt });
    },
    delete: (key) => entries.delete(checkKey(key)),
    list: (page) =>
      pageOf(
        [...entries.keys()].filter((key) => isLive(key, page.now)),
        page,
      ),
  };
}

/**
 * Objects in memory.
 *
 * @param seed - objects that are there from the beginning, by key: a text, bytes, or an object with its content type
 * @throws INVALID_REQUEST for a key that no store can hold; TypeError for another seed
 * @example
 * ```ts
 * import { createTestOrchestrator, memoryObjects } from 'ensemble-orchestrator/testing';
 *
 * const orchestrator = createTestOrchestrator({
 *   bindings: { objects: memoryObjects({ 'reports/may.csv': 'city,count\nOslo,3\n' }) },
 *   ensembles: [
 *     'name: e\nflow:\n  - { agent: read, operation: storage, config: { type: objects, action: get, key: reports/may.csv, format: csv } }',
 *   ],
 * });
 * const { output } = (await orchestrator.execute('e')).agents[0] ?? {};
 * console.log(output); // { content: [ { city: 'Oslo', count: '3' } ], contentType: 'text/plain; charset=utf-8', size: 18 }
 * ```
 */
export function memoryObjects(seed: Readonly<Record<string, string | Uint8Array | StoredObject>> = {}): ObjectStore {
  const objects = new Map<string, StoredObject>();
  for (const [key, given] of Object.entries(seed)) objects.set(checkKey(key), toObject(key, given));
  return withStreams({
    kind: 'objects',
    get: (key) => objects.get(checkKey(key)),
    put(key, object) {
      objects.set(checkKey(key), object);
    },
    delete: (key) => objects.delete(checkKey(key)),
    list: (page) => pageOf([...objects.keys()], page),
  });
}

function toObject(key: string, given: string | Uint8Array | StoredObject): StoredObject {
  if (typeof given === 'string')
    return { content: new TextEncoder().encode(given), contentType: 'text/plain; charset=utf-8', updatedAt: 0 };
  if (given instanceof Uint8Array) return { content: given, contentType: 'application/octet-stream', updatedAt: 0 };
  if (given?.content instanceof Uint8Array && typeof given.contentType === 'string') return given;
  const rule = 'a text, a Uint8Array, or { content, contentType, updatedAt } with bytes as its content';
  throw new TypeError(`memoryObjects: the object \`${key}\` must be ${rule}`);
}

function pageOf(keys: readonly string[], { prefix = '', limit, after }: KeyPage): readonly string[] {
  if (!isPlainText(prefix)) return [];
  const encoder = new TextEncoder();
  const bytes = new Map(keys.filter((key) => key.startsWith(prefix)).map((key) => [key, encoder.encode(key)] as const));
  const start = after === undefined ? undefined : encoder.encode(after);
  return [...bytes]
    .filter(([, key]) => start === undefined || compareBytes(key, start) > 0)
    .sort(([, a], [, b]) => compareBytes(a, b))
    .slice(0, limit)
    .map(([key]) => key);
}
