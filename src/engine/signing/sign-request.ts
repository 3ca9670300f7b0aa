/** Signs the body of an outbound request: the receiver can check who sent it, and when. */

import { proofOf } from './proof.ts';

/** Who signs, and when. */
export interface RequestSigner {
  /** Each of them signs: during a rotation there are several. */
  readonly secrets: readonly string[];
  /** The word in the names of the headers. */
  readonly brand: string;
  /** Unix ms. */
  readonly now: number;
}

/** The headers that sign a body: HMAC-SHA-256 over the time in seconds, a dot, and the body. Without a secret, the time alone. */
export function signRequest(body: string, { secrets, brand, now }: RequestSigner): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(now / 1000));
  const [signature, time] = signedHeaders(brand);
  const proofs = secrets.map((one) => `sha256=${proofOf(`${timestamp}.${body}`, one)}`);
  return { ...(proofs.length > 0 && { [signature]: proofs.join(', ') }), [time]: timestamp };
}

/** The names of the headers of the signature and of its time. */
export function signedHeaders(brand: string): readonly [signature: string, timestamp: string] {
  const prefix = headerPrefix(brand);
  return [`${prefix}-Signature`, `${prefix}-Timestamp`];
}

/** How the names of our own headers begin: `X-Service`. */
export function headerPrefix(brand: string): string {
  return `X-${brand.charAt(0).toUpperCase()}${brand.slice(1)}`;
}
