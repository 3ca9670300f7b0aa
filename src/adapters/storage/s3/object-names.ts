/**
 * The names of objects in a bucket: the prefix of the store and the key. A URL can't carry the segments `.` and `..`, so that a dot at the
 * beginning of a segment is followed by `_` in the bucket. The names have the same order as the keys.
 */

import { MAX_KEY_BYTES } from '../../../engine/storage/data.port.ts';

const FIRST_DOT = /(^|\/)\./g;

/** The name of a key, or the beginning of names for the beginning of a key. */
export function toName(prefix: string, key: string): string {
  return prefix + key.replace(FIRST_DOT, '$1._');
}

/** @returns the key; undefined for a name that no key has, such as one of another program */
export function toKey(prefix: string, name: string): string | undefined {
  if (!name.startsWith(prefix)) return undefined;
  const rest = name.slice(prefix.length);
  if (/(^|\/)\.(?!_)/.test(rest)) return undefined;
  const key = rest.replace(/(^|\/)\._/g, '$1.');
  const isKey = key !== '' && !key.includes('\u0000') && new TextEncoder().encode(key).length <= MAX_KEY_BYTES;
  return isKey ? key : undefined;
}

/** The form of a name in the path of a URL. */
export function toPath(name: string): string {
  return name.split('/').map(encodeStrictly).join('/');
}

/** Percent-encodes everything but letters, digits, `-`, `.`, `_` and `~`, as signatures need it. */
export function encodeStrictly(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
}
