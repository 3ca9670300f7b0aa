/** HMACs, and comparisons whose time does not depend on where two values differ. */

import { hmac } from '@noble/hashes/hmac.js';
import { sha1 } from '@noble/hashes/legacy.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, concatBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import type { MaybePromise } from '../operation/operation.port.ts';

const HASHES = { 'SHA-256': sha256, 'SHA-1': sha1 } as const;
export type HashName = keyof typeof HASHES;

const NOTHING = new Uint8Array();

/** From this size on, the platform's own HMAC is worth a turn of the event loop, which it never blocks. */
const LARGE = 64 * 1024;

/** The HMAC over a text followed by bytes. */
export function hmacOf(hash: HashName, key: Uint8Array, text: string, bytes: Uint8Array): MaybePromise<Uint8Array> {
  if (bytes.byteLength >= LARGE) return platformHmac(hash, key, concatBytes(utf8ToBytes(text), bytes));
  return hmacNow(hash, key, text, bytes);
}

function hmacNow(hash: HashName, key: Uint8Array, text: string, bytes: Uint8Array): Uint8Array {
  const native = nodeCrypto()?.createHmac(hash === 'SHA-1' ? 'sha1' : 'sha256', key);
  if (native) return native.update(text).update(bytes).digest();
  return hmac.create(HASHES[hash], key).update(utf8ToBytes(text)).update(bytes).digest();
}

interface NodeHmac {
  update(data: string | Uint8Array): NodeHmac;
  digest(): Uint8Array;
}

interface WithNodeCrypto {
  readonly process?: {
    getBuiltinModule?(name: 'node:crypto'): { createHmac(hash: string, key: Uint8Array): NodeHmac } | undefined;
  };
}

/** Node's own hash functions, which are four times as fast, where a runtime has them. Nothing is imported, so a bundle needs none. */
function nodeCrypto() {
  return (globalThis as WithNodeCrypto).process?.getBuiltinModule?.('node:crypto');
}

async function platformHmac(hash: HashName, key: Uint8Array, message: Uint8Array): Promise<Uint8Array> {
  const { subtle } = crypto;
  const imported = await subtle.importKey('raw', key as BufferSource, { name: 'HMAC', hash }, false, ['sign']);
  return new Uint8Array(await subtle.sign('HMAC', imported, message as BufferSource));
}

/** HMAC-SHA-256 of a text, in hexadecimal. */
export function proofOf(text: string, secret: string): string {
  return bytesToHex(hmacOfText(text, utf8ToBytes(secret)));
}

/** HMAC-SHA-256 of a text. */
export function hmacOfText(text: string, key: Uint8Array): Uint8Array {
  return hmacNow('SHA-256', key, text, NOTHING);
}

/** Compares two values of equal length in a time that does not depend on where they differ. */
export function isSame(a: Uint8Array, b: Uint8Array): boolean {
  if (a.byteLength !== b.byteLength) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= (a[i] as number) ^ (b[i] as number);
  return difference === 0;
}

/** Compares two texts of any length in a time that does not depend on where they differ. */
export function isSameText(a: string, b: string): boolean {
  return isSame(sha256(utf8ToBytes(a)), sha256(utf8ToBytes(b)));
}
