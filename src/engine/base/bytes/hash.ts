/** Short hashes, as 32 hexadecimal characters of SHA-256. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { canonicalJson, type Json } from '../json/json.ts';

const LENGTH = 32;

export function hashText(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text))).slice(0, LENGTH);
}

/** Equal for equal values, whatever the order of their keys. */
export function hashJson(value: Json): string {
  return hashText(canonicalJson(value));
}
