/** Runs the actions of keyed values and of objects, except exports. */

import { messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import type { Json } from '../../engine/base/json/json.ts';
import { MAX_VALUE_BYTES } from '../../engine/base/json/json.ts';
import { checkKey, type KvStore, type ObjectStore } from '../../engine/storage/data.port.ts';
import { readCursor, toCursor } from './cursor.ts';
import { fromStoredObject, toStoredObject } from './object-content.ts';
import type { StorageConfig } from './storage-config.ts';

/** The most keys that a store lists at once. */
export const STORE_PAGE = 1000;

/** What a call has besides its config. */
export interface StoreCall {
  /** Unix ms. */
  readonly now: number;
  readonly signal: AbortSignal;
}

export async function runKv(kv: KvStore, given: StorageConfig, { now, signal }: StoreCall): Promise<Json> {
  switch (given.action) {
    case 'get': {
      const value = await kv.get(keyOf(given.key), now);
      return { value: value ?? null, found: value !== undefined };
    }
    case 'put': {
      const key = keyOf(given.key);
      await kv.put(key, (given.value ?? null) as Json, given.ttl == null ? undefined : now + given.ttl * 1000);
      return { key, success: true };
    }
    case 'delete': {
      const key = keyOf(given.key);
      return { key, success: await kv.delete(key) };
    }
    default:
      return listKeys(kv, given, { now, signal });
  }
}

export async function runObjects(
  objects: ObjectStore,
  given: StorageConfig,
  { now, signal }: StoreCall,
): Promise<Json> {
  switch (given.action) {
    case 'get': {
      const key = keyOf(given.key);
      const object = await objects.get(key, { maxBytes: MAX_VALUE_BYTES, signal });
      if (!object) throw new OrchestratorError('NOT_FOUND', `storage: there is no object under ${JSON.stringify(key)}`);
      return fromStoredObject(object, given.format ?? 'text');
    }
    case 'put': {
      const key = keyOf(given.key);
      await objects.put(key, toStoredObject(given.value as Json, given.contentType, now, given.format));
      return { key, success: true };
    }
    case 'delete': {
      const key = keyOf(given.key);
      return { key, success: await objects.delete(key) };
    }
    default:
      return listKeys(objects, given, { now, signal });
  }
}

async function listKeys(
  store: KvStore | ObjectStore,
  { prefix, cursor, limit: given }: StorageConfig,
  { now, signal }: StoreCall,
): Promise<Json> {
  const limit = given ?? STORE_PAGE;
  const of = [store.kind, prefix ?? ''];
  const page = (count: number, after: string | undefined) =>
    store.list({
      limit: count,
      now,
      signal,
      ...(prefix !== undefined && { prefix }),
      ...(after !== undefined && { after }),
    });
  const keys: string[] = [];
  let last = typeof cursor === 'string' ? keyOf(readCursor<string>(cursor, of, 'string')) : undefined;
  for (let isFull = true; isFull && keys.length < limit; ) {
    signal.throwIfAborted();
    const count = Math.min(STORE_PAGE, limit - keys.length);
    const found = await page(count, last);
    for (const key of found) keys.push(key);
    last = found.at(-1) ?? last;
    isFull = found.length === count;
  }
  const hasMore = last !== undefined && keys.length === limit && (await page(1, last)).length > 0;
  return { keys, count: keys.length, ...(hasMore && last !== undefined && { nextCursor: toCursor(last, of) }) };
}

// A store does not interpret keys, so nothing is escaped. A key that no store accepts is refused.
export function keyOf(key = ''): string {
  try {
    return checkKey(key);
  } catch (thrown) {
    throw new OrchestratorError(
      'INVALID_INPUT',
      `storage: ${messageOf(thrown)}; this one has ${key.length} characters`,
    );
  }
}
