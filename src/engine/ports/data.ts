/** The data ports of the `storage` operation: values by key, and objects. */

import { OrchestratorError } from '../base/errors.ts';
import type { Json } from '../base/json.ts';
import type { MaybePromise } from './operation.ts';

/**
 * The longest key. A key has 1 to 512 bytes of UTF-8, without NUL and without halves of surrogate pairs, which UTF-8 can't
 * represent. No character has a special meaning. A store refuses any other key, in every call, with `INVALID_REQUEST`.
 */
export const MAX_KEY_BYTES = 512;

// Drivers cut text at a NUL, and replace half of a surrogate pair.
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Whether UTF-8 can represent a text, and no driver changes it: it has no NUL and no halves of surrogate pairs. */
export function isPlainText(text: string): boolean {
  return !text.includes('\u0000') && !LONE_SURROGATE.test(text);
}

/** Returns a key if every store can hold it. @throws INVALID_REQUEST if it can't: see {@link MAX_KEY_BYTES} */
export function checkKey(key: string): string {
  const long = key.length * 3 > MAX_KEY_BYTES && new TextEncoder().encode(key).length > MAX_KEY_BYTES;
  if (key !== '' && !long && isPlainText(key)) return key;
  const message = `a key must be text of 1 to ${MAX_KEY_BYTES} bytes of UTF-8, without NUL and halves of surrogate pairs`;
  throw new OrchestratorError('INVALID_REQUEST', message);
}

export interface KeyPage {
  /** Only keys that begin with this text, literally. If a key can't contain this text, no key matches. */
  readonly prefix?: string;
  /** 1 to 1,000. */
  readonly limit: number;
  /** Only keys after this one, in the order of their UTF-8 bytes. */
  readonly after?: string;
  /** Unix ms. Keys that expired at this instant or earlier are not listed. */
  readonly now: number;
}

export interface KvStore {
  readonly kind: 'kv';
  /** The value. Undefined if the key is unknown, or expired at `now` (Unix ms) or earlier. A stored null is returned as null. */
  get(key: string, now: number): MaybePromise<Json | undefined>;
  /** Stores or replaces a value. @param expiresAt - Unix ms. Without it, the key never expires, even if it had an expiry before */
  put(key: string, value: Json, expiresAt?: number): MaybePromise<void>;
  /** @returns whether the key existed */
  delete(key: string): MaybePromise<boolean>;
  /** Keys in the order of their UTF-8 bytes. */
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
  /** Stores or replaces an object. The store owns the bytes from then on. */
  put(key: string, object: StoredObject): MaybePromise<void>;
  /** @returns whether the key existed */
  delete(key: string): MaybePromise<boolean>;
  /** Keys in the order of their UTF-8 bytes. Objects don't expire, so `now` is ignored. */
  list(page: KeyPage): MaybePromise<readonly string[]>;
}
