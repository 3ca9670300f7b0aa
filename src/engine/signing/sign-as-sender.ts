/** Makes a request as the sender of a webhook would send it: with the credentials, or the signature of its scheme. For tests by hand. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { toBase64 } from '../base/bytes/base64.ts';
import type { SignatureScheme, WebhookAccess } from '../webhook/webhook.ts';
import { type HashName, hmacOf } from './proof.ts';
import { signRequest } from './sign-request.ts';
import { signStandard } from './sign-standard.ts';
import { keyOf, twilioFields, WEBHOOK } from './signature-schemes.ts';

/** A request to be signed. */
export interface UnsignedRequest {
  readonly url: string;
  readonly body: string;
  readonly contentType: string;
  /** Unix ms. */
  readonly now: number;
  /** The id of the delivery, for the scheme `standard`. */
  readonly id: string;
}

export interface SenderRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** @returns undefined for `oauth`: only the issuer makes its tokens */
export async function signAsSender(
  access: WebhookAccess,
  request: UnsignedRequest,
): Promise<SenderRequest | undefined> {
  const { url } = request;
  switch (access.type) {
    case 'public':
      return { url, headers: {} };
    case 'bearer':
      return { url, headers: { Authorization: `Bearer ${access.secrets[0]}` } };
    case 'basic':
      return { url, headers: { Authorization: `Basic ${toBase64(utf8ToBytes(access.secrets[0] ?? ''))}` } };
    case 'oauth':
      return undefined;
    default:
      return sign(access.scheme, access.secrets[0] ?? '', request);
  }
}

async function sign(scheme: SignatureScheme, secret: string, request: UnsignedRequest): Promise<SenderRequest> {
  const { url, body, now, id } = request;
  const key = keyOf(scheme, secret) ?? utf8ToBytes(secret);
  const proofOf = async (before: string, text = body, hash: HashName = 'SHA-256') =>
    hmacOf(hash, key, before, utf8ToBytes(text));
  const hex = async (before: string) => bytesToHex(await proofOf(before));
  const time = String(Math.floor(now / 1000));
  switch (scheme) {
    case 'service':
      return { url, headers: signRequest(body, { secrets: [secret], brand: WEBHOOK, now }) };
    case 'github':
      return { url, headers: { 'X-Hub-Signature-256': `sha256=${await hex('')}` } };
    case 'stripe':
      return { url, headers: { 'Stripe-Signature': `t=${time},v1=${await hex(`${time}.`)}` } };
    case 'slack':
      return {
        url,
        headers: { 'X-Slack-Signature': `v0=${await hex(`v0:${time}:`)}`, 'X-Slack-Request-Timestamp': time },
      };
    case 'shopify':
      return { url, headers: { 'X-Shopify-Hmac-Sha256': toBase64(await proofOf('')) } };
    case 'standard':
      return { url, headers: signStandard(body, { secrets: [secret], now }, id) };
    case 'twilio': {
      const isForm = request.contentType.startsWith('application/x-www-form-urlencoded');
      const hash = isForm || body === '' ? '' : `bodySHA256=${bytesToHex(sha256(utf8ToBytes(body)))}`;
      const called = hash === '' ? url : `${url}${url.includes('?') ? '&' : '?'}${hash}`;
      const signed = called + (isForm ? twilioFields(utf8ToBytes(body)) : '');
      return { url: called, headers: { 'X-Twilio-Signature': toBase64(await proofOf(signed, '', 'SHA-1')) } };
    }
  }
}
