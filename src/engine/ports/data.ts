/** The data ports behind the `storage` operation: keyed values and objects. */

import type { Json } from '../json.ts';
import type { MaybePromise } from './operation.ts';

/** Keys are taken as they are: no character has a meaning. From 1 to 512 bytes of UTF-8, without NUL. */
export const MAX_KEY_BYTES = 512;

export interface KeyPage {
  /** Only keys that begin with this text, literally. */
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
