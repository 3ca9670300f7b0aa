/** Signs the body of an outbound request: the receiver can check who sent it, and when. */

import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

/** Who signs, and when. */
export interface RequestSigner {
  readonly secret: string;
  /** The word in the names of the headers. */
  readonly brand: string;
  /** Unix ms. */
  readonly now: number;
}

/** The headers that sign a body: HMAC-SHA-256 over the time in seconds, a dot, and the body. */
export function signRequest(body: string, { secret, brand, now }: RequestSigner): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(now / 1000));
  const proof = bytesToHex(hmac(sha256, utf8ToBytes(secret), utf8ToBytes(`${timestamp}.${body}`)));
  const prefix = `X-${brand.charAt(0).toUpperCase()}${brand.slice(1)}`;
  return { [`${prefix}-Signature`]: `sha256=${proof}`, [`${prefix}-Timestamp`]: timestamp };
}
