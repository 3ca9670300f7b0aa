/** Signs a JSON value as text for a URL, and reads it back: only a process with the secret can create or change such a text. */

import { utf8ToBytes } from '@noble/hashes/utils.js';
import { fromBase64, toBase64 } from '../base/bytes/base64.ts';
import type { Json } from '../base/json/json.ts';
import { isSameText, proofOf } from './proof.ts';

/** A longer text is refused without a look at it. */
const MAX_LENGTH = 4_000;
const FORM = /^([A-Za-z0-9_-]+)\.([0-9a-f]{64})$/;

/**
 * @param purpose - part of the signed text, so that a signature of the same secret for another purpose is not valid
 * @returns the value in base64url, a dot, and its HMAC-SHA-256 in hexadecimal
 */
export function signText(value: Json, purpose: string, secret: string): string {
  const body = toBase64(utf8ToBytes(JSON.stringify(value)));
  const safe = body.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
  // Hexadecimal, because mail programs that detect URLs leave out a `-` or `_` at the end.
  return `${safe}.${proofOf(purpose + safe, secret)}`;
}

/** @param secrets - the secrets that may have signed the text @returns undefined when none of them signed it */
export function readSigned(text: string, purpose: string, secrets: readonly string[]): Json | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const [, body, proof] = FORM.exec(text) ?? [];
  if (body === undefined || proof === undefined) return undefined;
  let isSigned = false;
  // Every secret is tried, so that the time taken does not show which secret signed the text.
  for (const secret of secrets) if (isSameText(proofOf(purpose + body, secret), proof)) isSigned = true;
  const bytes = isSigned ? fromBase64(body.replaceAll('-', '+').replaceAll('_', '/')) : undefined;
  return bytes && JSON.parse(new TextDecoder().decode(bytes));
}
