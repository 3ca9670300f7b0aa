/** The data ports of the `storage` operation: values by key, objects, and SQL databases. */

import { OrchestratorError } from '../base/errors.ts';
import type { Json, JsonObject } from '../base/json/json.ts';
import type { WithReady } from '../host/with-ready.port.ts';
import type { MaybePromise } from '../operation/operation.port.ts';

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
  /** Aborts when nobody waits for the keys any more. A store that asks a server page by page stops then, and throws its reason. */
  readonly signal?: AbortSignal;
}

/** How an object is read. A store may ignore it. */
export interface ObjectRead {
  /** The reader takes no more: a store that sees that an object is larger need not read it, and throws INVALID_OUTPUT. */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
}

export interface KvStore extends WithReady {
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

/** An object whose bytes come one part after the other. */
export interface StreamedObject {
  readonly content: AsyncIterable<Uint8Array>;
  readonly contentType: string;
  /** Unix ms. */
  readonly updatedAt: number;
}

export interface ObjectStore extends WithReady {
  readonly kind: 'objects';
  get(key: string, read?: ObjectRead): MaybePromise<StoredObject | undefined>;
  /** Stores or replaces an object. The store owns the bytes from then on. */
  put(key: string, object: StoredObject): MaybePromise<void>;
  /**
   * Stores or replaces an object whose bytes come one part after the other, without holding all of them in memory. The object exists
   * when the promise resolves. If `content` throws, the promise rejects with that error, nothing of the object is stored, and an object
   * that existed before stays as it was. A store without this method can't take such objects. A store that has to hold the bytes in memory
   * refuses an object that exceeds its limit with `INVALID_REQUEST`, and `details.limit` in bytes.
   *
   * @returns the number of bytes
   */
  putStream?(key: string, object: StreamedObject): Promise<number>;
  /** @returns whether the key existed */
  delete(key: string): MaybePromise<boolean>;
  /** Keys in the order of their UTF-8 bytes. Objects don't expire, so `now` is ignored. */
  list(page: KeyPage): MaybePromise<readonly string[]>;
}

/**
 * One SQL statement, with values apart from its text. A value stands between two strings, so there is one string more than values.
 * A database passes each value as a bound parameter, in its own syntax (`?`, `$1`). It never inserts a value into the text.
 */
export interface SqlStatement {
  readonly strings: readonly string[];
  /** Arrays and objects are bound as JSON text. */
  readonly values: readonly Json[];
}

/**
 * A database for `type: d1`. It takes one statement at a time: text with a second statement is refused with `INVALID_INPUT`, and so is
 * a statement that reaches outside the data, such as ATTACH, PRAGMA, load_extension or COPY ... PROGRAM.
 *
 * A statement that the database refuses (syntax, an unknown table, a constraint) is an `OrchestratorError` `AGENT_FAILED` that is not
 * retryable; its message has the database's own words, which never contain a bound value. A connection that breaks is retryable.
 */
export interface SqlDatabase extends WithReady {
  readonly kind: 'sql';
  /**
   * The rows of a statement that reads, after the first `offset`, at most `limit` of them. Rows beyond that are not loaded into memory.
   * Bytes are returned in base64, integers beyond 2^53 and decimals as text, instants as ISO 8601 text.
   */
  query(
    statement: SqlStatement,
    page: { readonly limit: number; readonly offset: number; readonly signal: AbortSignal },
  ): MaybePromise<{ readonly rows: readonly JsonObject[]; readonly hasMore: boolean }>;
  /** Runs a statement that changes data, in one transaction. @returns the number of changed rows */
  execute(
    statement: SqlStatement,
    options: { readonly signal: AbortSignal },
  ): MaybePromise<{ readonly changes: number }>;
  /** All rows of a statement that reads, in parts, as of one moment. Memory holds one part at a time. */
  stream(statement: SqlStatement, options: { readonly signal: AbortSignal }): AsyncIterable<readonly JsonObject[]>;
}
