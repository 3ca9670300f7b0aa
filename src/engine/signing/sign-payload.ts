/** `signPayload()` and `verifySignature()`: for apps that sign requests to a webhook, or receive signed ones in a route of their own. */

import { utf8ToBytes } from '@noble/hashes/utils.js';
import { SIGNATURE_SCHEMES, type SignatureScheme } from '../webhook/webhook.ts';
import { checkSignature, readSignature, TOLERANCE_SECONDS } from './check-sender.ts';
import { signRequest } from './sign-request.ts';

export interface SignPayloadOptions {
  readonly secret: string;
  /** The body, as it is sent. */
  readonly body: string;
  /** The word in the names of the headers. Default `service`. */
  readonly brand?: string | undefined;
  /** Unix ms. Default: now. */
  readonly now?: number | undefined;
}

/**
 * The headers that sign a body, as the deliveries of notifications have them: HMAC-SHA-256 over `<timestamp>.<body>`. A webhook with
 * `auth.type: signature` accepts them.
 *
 * @throws TypeError for an empty secret, and for a body that is not text
 * @returns `X-Service-Signature: sha256=<hex>` and `X-Service-Timestamp`, in Unix seconds
 *
 * @example
 * ```ts
 * import { signPayload } from 'ensemble-orchestrator';
 *
 * const headers = signPayload({ secret: 'hush', body: '{"order":7}', now: 1_700_000_000_000 });
 * console.log(headers['X-Service-Timestamp']); // 1700000000
 * ```
 */
export function signPayload({ secret, body, brand = 'service', now = Date.now() }: SignPayloadOptions) {
  checkSecret('signPayload', secret);
  if (typeof body !== 'string') throw new TypeError('signPayload: `body` must be the text that is sent');
  return signRequest(body, { secrets: [secret], brand, now });
}

export interface VerifySignatureOptions {
  /** Several during a rotation: any one of them will do. */
  readonly secret: string | readonly string[];
  /** The headers of the request. */
  readonly headers: Headers | Readonly<Record<string, string | undefined>>;
  /** The body as it came: a body that was parsed and written again has other bytes. */
  readonly body: string | Uint8Array;
  /** How far the time of the signature may be away, in seconds. Default 300. */
  readonly toleranceSeconds?: number | undefined;
  /** Unix ms. Default: now. */
  readonly now?: number | undefined;
  /** Whose signature it is. Default `service`. */
  readonly scheme?: SignatureScheme | undefined;
  /** For `twilio`: the URL that was called. */
  readonly url?: string | undefined;
  /** The word in the names of the headers of `service`. Default `service`. */
  readonly brand?: string | undefined;
}

/**
 * Whether a request is signed with one of the secrets, and is not too old. The comparison takes the same time for every wrong
 * signature.
 *
 * @throws TypeError for an empty secret, an unknown scheme, and a body that was parsed
 *
 * @example
 * ```ts
 * import { signPayload, verifySignature } from 'ensemble-orchestrator';
 *
 * const body = '{"order":7}';
 * const headers = signPayload({ secret: 'hush', body });
 * console.log(await verifySignature({ secret: ['new', 'hush'], headers, body })); // true
 * ```
 */
export async function verifySignature(options: VerifySignatureOptions): Promise<boolean> {
  const { secret, headers, body, now = Date.now(), scheme = 'service', url, brand = 'service' } = options;
  const secrets = Array.isArray(secret) ? secret : [secret];
  if (secrets.length === 0) checkSecret('verifySignature', undefined);
  for (const one of secrets) checkSecret('verifySignature', one);
  if (!SIGNATURE_SCHEMES.includes(scheme))
    throw new TypeError(`verifySignature: \`scheme\` must be one of ${SIGNATURE_SCHEMES.join(', ')}`);
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) {
    const advice = 'a body that was parsed has lost the bytes that were signed';
    throw new TypeError(`verifySignature: \`body\` must be the text or the bytes that came; ${advice}`);
  }
  const access = { type: 'signature', scheme, secrets } as const;
  const given = headers instanceof Headers ? headers : new Headers(definedOf(headers));
  const request = {
    header: (name: string) => given.get(name) ?? undefined,
    urls: () => (url === undefined ? [] : [url]),
    brand,
  };
  const claim = readSignature(access, request, now, options.toleranceSeconds ?? TOLERANCE_SECONDS);
  if ('problem' in claim) return false;
  return !('problem' in (await checkSignature(access, claim, typeof body === 'string' ? utf8ToBytes(body) : body)));
}

function checkSecret(by: string, secret: unknown): void {
  if (typeof secret !== 'string' || secret === '')
    throw new TypeError(`${by}: \`secret\` must be a text that is not empty`);
}

function definedOf(headers: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
