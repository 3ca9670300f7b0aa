/** Checks who sent a webhook's request: its credentials, or the signature over the bytes of its body (the specification's inbound webhook authentication). */

import { fromBase64 } from '../base/bytes/base64.ts';
import { isPromise } from '../base/maybe-promise.ts';
import type { WebhookAccess } from '../webhook/webhook.ts';
import { hmacOf, isSame, isSameText } from './proof.ts';
import { type Claim, keyOf, readClaim, type SignedMessage, type SignedRequest } from './signature-schemes.ts';

/** How far the time of a signature may be from the clock, in seconds. */
export const TOLERANCE_SECONDS = 300;

/** Who sent a request. `identity` names a signed request, so that it is found again when it is sent twice. */
export type SenderVerdict = { readonly identity?: string } | { readonly problem: string };

/** Compares a token or a user name and password. Every secret is compared, so that the time taken does not show which one fits. */
export function checkCredentials(
  { type, secrets }: Extract<WebhookAccess, { type: 'bearer' | 'basic' }>,
  header: string | undefined,
): SenderVerdict {
  const scheme = type === 'bearer' ? 'Bearer' : 'Basic';
  if (header === undefined) return { problem: `the header \`Authorization: ${scheme} ...\` is missing` };
  const [given = '', value = '', ...more] = header.split(' ');
  if (given.toLowerCase() !== type || value === '' || more.length > 0)
    return { problem: `the header \`Authorization\` must have the form \`${scheme} ...\`` };
  const credentials = type === 'bearer' ? value : decodeBasic(value);
  let isKnown = false;
  for (const secret of secrets) if (isSameText(secret, credentials ?? '')) isKnown = true;
  return isKnown && credentials !== undefined ? {} : { problem: 'the credentials are wrong' };
}

function decodeBasic(value: string): string | undefined {
  const bytes = fromBase64(value);
  try {
    return bytes && new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Reads the headers of a signed request, before its body is read.
 *
 * @param now - Unix ms
 * @returns the claim, or what is wrong
 */
export function readSignature(
  { scheme }: Extract<WebhookAccess, { type: 'signature' }>,
  request: SignedRequest,
  now: number,
  toleranceSeconds = TOLERANCE_SECONDS,
): Claim | { readonly problem: string } {
  const claim = readClaim(scheme, request);
  if (typeof claim === 'string') return { problem: claim };
  const { timestamp = Math.floor(now / 1000) } = claim;
  if (Math.abs(Math.floor(now / 1000) - timestamp) <= toleranceSeconds) return claim;
  return { problem: `the time of the signature is more than ${toleranceSeconds} seconds away` };
}

/** Whether one of the secrets signed the body. Every secret and every proof is compared. */
export async function checkSignature(
  { scheme, secrets }: Extract<WebhookAccess, { type: 'signature' }>,
  claim: Claim,
  body: Uint8Array,
): Promise<SenderVerdict> {
  let signed: SignedMessage | undefined;
  for (const secret of secrets) {
    const key = keyOf(scheme, secret);
    if (!key) continue;
    for (const message of claim.messages(body)) {
      const computed = hmacOf(claim.hash, key, message.text, message.bytes);
      const proof = isPromise(computed) ? await computed : computed;
      for (const given of claim.proofs) if (isSame(proof, given)) signed = message;
    }
  }
  return signed ? { identity: claim.identity(body, signed) } : { problem: 'the signature is wrong' };
}
