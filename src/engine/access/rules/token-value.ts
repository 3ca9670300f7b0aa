/** The form of a token's value: prefix, 36 random characters, 6 characters of checksum. A malformed value is refused without a look-up. */

import { sha256 } from '@noble/hashes/sha2.js';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const HEX = '0123456789abcdef';
const RANDOM_LENGTH = 36;
const CHECKSUM_LENGTH = 6;

/** The prefix of all tokens of a brand. */
export function tokenPrefix(brand: string): string {
  return `sk-${brand}-`;
}

/** Creates a value with 214 random bits. */
export function createTokenValue(brand: string): string {
  const random = randomText(RANDOM_LENGTH);
  return tokenPrefix(brand) + random + checksum(random);
}

/** Whether a text has the form of a token. For any text, the time is at most linear in the length of a token. */
export function isTokenValue(value: string, brand: string): boolean {
  const prefix = tokenPrefix(brand);
  if (value.length !== prefix.length + RANDOM_LENGTH + CHECKSUM_LENGTH || !value.startsWith(prefix)) return false;
  const random = value.slice(prefix.length, prefix.length + RANDOM_LENGTH);
  for (let i = 0; i < random.length; i++) if (!isAlphanumeric(random.charCodeAt(i))) return false;
  return value.endsWith(checksum(random));
}

/**
 * The stored digest of a value: its SHA-256. For 214 random bits, a plain hash is enough.
 *
 * @param value - has the form of a token, and therefore only ASCII letters, digits and hyphens
 */
export function tokenDigest(value: string): string {
  return toHex(sha256(toBytes(value)));
}

// Every request calls these two. A TextEncoder, and text that is joined byte by byte, cost as much as the hash.
function toBytes(ascii: string): Uint8Array {
  const bytes = new Uint8Array(ascii.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = ascii.charCodeAt(i);
  return bytes;
}

function toHex(bytes: Uint8Array): string {
  const codes = new Array<number>(2 * bytes.length);
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    codes[2 * i] = HEX.charCodeAt(byte >> 4);
    codes[2 * i + 1] = HEX.charCodeAt(byte & 15);
  }
  return String.fromCharCode(...codes);
}

// Bytes from 248 on are dropped: 62 divides 248, so all characters are equally likely.
function randomText(length: number): string {
  let text = '';
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length * 2))) {
      if (byte < 248 && text.length < length) text += ALPHABET[byte % 62];
    }
  }
  return text;
}

function checksum(text: string): string {
  let rest = crc32(text);
  let out = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    out = ALPHABET[rest % 62] + out;
    rest = Math.floor(rest / 62);
  }
  return out;
}

function isAlphanumeric(code: number): boolean {
  return (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
}

/** The CRC remainder of each byte. */
const CRC_REMAINDERS = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let i = 0; i < text.length; i++) {
    crc = (crc >>> 8) ^ (CRC_REMAINDERS[(crc ^ text.charCodeAt(i)) & 0xff] as number);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
