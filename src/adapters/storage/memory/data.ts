/** The keyed values and the objects of the memory storage. */

import type { Json } from '../../../engine/base/json.ts';
import {
  checkKey,
  isPlainText,
  type KeyPage,
  type KvStore,
  type ObjectStore,
  type StoredObject,
} from '../../../engine/ports/data.ts';
import { compareBytes } from '../compare-bytes.ts';
import { withStreams } from '../with-streams.ts';

/** Keyed values in memory. */
export function memoryKv(): KvStore {
  const entries = new Map<string, { readonly value: Json; readonly expiresAt: number }>();
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

/** Objects in memory. */
export function memoryObjects(): ObjectStore {
  const objects = new Map<string, StoredObject>();
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
