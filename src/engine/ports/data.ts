/** The data ports behind the `storage` operation: keyed values and objects. */

import { OrchestratorError } from '../errors.ts';
import type { Json } from '../json.ts';
import type { MaybePromise } from './operation.ts';

/**
 * Keys are taken as they are: no character has a meaning. From 1 to 512 bytes of UTF-8, without NUL and without halves of
 * surrogate pairs, which UTF-8 can't hold; a store refuses any other key, in every call, with `INVALID_REQUEST`.
 */
export const MAX_KEY_BYTES = 512;

// Drivers cut text at a NUL, and replace half a surrogate pair.
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Whether UTF-8 holds a text as it is, and no driver changes it. */
export function isPlainText(text: string): boolean {
  return !text.includes('\u0000') && !LONE_SURROGATE.test(text);
}

/** The one rule of keys, for all stores. @throws INVALID_REQUEST for what is no key */
export function checkKey(key: string): string {
  const long = key.length * 3 > MAX_KEY_BYTES && new TextEncoder().encode(key).length > MAX_KEY_BYTES;
  if (key !== '' && !long && isPlainText(key)) return key;
  const message = `a key must be text of 1 to ${MAX_KEY_BYTES} bytes of UTF-8, without NUL and halves of surrogate pairs`;
  throw new OrchestratorError('INVALID_REQUEST', message);
}

export interface KeyPage {
  /** Only keys that begin with this text, literally. No key begins with what no key can hold. */
  readonly prefix?: string;
  /** 1 to 1,000. */
  readonly limit: number;
  /** Only keys behind this one, in the order of their UTF-8 bytes. */
  readonly after?: string;
  /** Unix ms: keys that expired by then are not listed. */
  readonly now: number;
}

export interface KvStore {
  readonly kind: 'kv';
  /** The value; undefined when the key is unknown or had expired by `now` (Unix ms). A stored null is null. */
  get(key: string, now: number): MaybePromise<Json | undefined>;
  /** Stores or replaces. @param expiresAt - Unix ms; without it the key stays, also when it had an expiry before */
  put(key: string, value: Json, expiresAt?: number): MaybePromise<void>;
  /** @returns whether the key was there */
  delete(key: string): MaybePromise<boolean>;
  /** In the order of their UTF-8 bytes. */
  list(page: KeyPage): MaybePromise<readonly string[]>;
}

export interface StoredObject {
  readonly content: Uint8Array;
  readonly contentType: string;
  /** Unix ms. */
  readonly updatedAt: number;
}

export interface ObjectStore {
  readonly kind: 'objects';
  get(key: string): MaybePromise<StoredObject | undefined>;
  /** Stores or replaces; the bytes are the store's from then on. */
  put(key: string, object: StoredObject): MaybePromise<void>;
  /** @returns whether the key was there */
  delete(key: string): MaybePromise<boolean>;
  /** In the order of their UTF-8 bytes. `now` is not looked at: objects don't expire. */
  list(page: KeyPage): MaybePromise<readonly string[]>;
}
