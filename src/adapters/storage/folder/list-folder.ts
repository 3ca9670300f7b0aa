/** Lists the keys of a folder in the order of their bytes. Only the folders on the way to a page are read. */

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { joinBytes } from '../../../engine/base/bytes/join-bytes.ts';
import { isPlainText, type KeyPage } from '../../../engine/storage/data.port.ts';
import { compareBytes } from '../compare-bytes.ts';
import { type Entry, toEntry } from './file-names.ts';

interface Bounds {
  readonly prefix: Uint8Array;
  readonly after: Uint8Array | undefined;
}

export async function listFolder(folder: string, { prefix = '', after, limit }: KeyPage): Promise<readonly string[]> {
  if (!isPlainText(prefix)) return [];
  const encoder = new TextEncoder();
  const bounds = { prefix: encoder.encode(prefix), after: after === undefined ? undefined : encoder.encode(after) };
  const keys: string[] = [];
  for await (const key of keysIn(folder, new Uint8Array(), bounds)) {
    if (keys.push(key) >= limit) break;
  }
  return keys;
}

/** @param begin - the bytes with which all keys of this folder begin */
async function* keysIn(folder: string, begin: Uint8Array, bounds: Bounds): AsyncGenerator<string> {
  for (const { name, kind, bytes } of await entriesOf(folder)) {
    const key = joinBytes([begin, bytes]);
    if (kind === 'object') {
      if (isListed(key, bounds)) yield new TextDecoder('utf-8', { ignoreBOM: true }).decode(key);
    } else if (mayHaveListed(key, bounds)) {
      yield* keysIn(join(folder, name), key, bounds);
    }
  }
}

// Keys of a segment begin with the segment and `/`, and no other entry begins so. Only an object can equal the beginning of a long
// segment, and it has fewer bytes than the keys that continue it.
async function entriesOf(folder: string): Promise<readonly Entry[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    // A folder vanishes when its last object is deleted.
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
  return names
    .flatMap((name) => toEntry(name) ?? [])
    .sort((a, b) => compareBytes(a.bytes, b.bytes) || (a.kind === 'object' ? -1 : 1));
}

function isListed(key: Uint8Array, { prefix, after }: Bounds): boolean {
  return beginsWith(key, prefix) && (after === undefined || compareBytes(key, after) > 0);
}

/** Whether a key that begins with `begin`, and is longer, can be listed. */
function mayHaveListed(begin: Uint8Array, { prefix, after }: Bounds): boolean {
  const length = Math.min(begin.length, prefix.length);
  if (compareBytes(begin.subarray(0, length), prefix.subarray(0, length)) !== 0) return false;
  return after === undefined || compareBytes(begin, after.subarray(0, begin.length)) >= 0;
}

function beginsWith(key: Uint8Array, prefix: Uint8Array): boolean {
  return key.length >= prefix.length && compareBytes(key.subarray(0, prefix.length), prefix) === 0;
}
