/** How senders of webhooks sign their requests: which headers they send, and what the signature covers. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { fromBase64 } from '../base/bytes/base64.ts';
import type { SignatureScheme } from '../webhook/webhook.ts';
import type { HashName } from './proof.ts';
import { signedHeaders } from './sign-request.ts';

/** A request as a scheme reads it. */
export interface SignedRequest {
  /** @param name - in lower case */
  header(name: string): string | undefined;
  /** The addresses at which the sender may have called: the scheme of the URL is not known behind a proxy. */
  urls(): readonly string[];
  /** The word in the names of our own headers. */
  readonly brand: string;
}

/** What is signed: a text followed by bytes. */
export interface SignedMessage {
  readonly text: string;
  readonly bytes: Uint8Array;
}

/** A signature that a request claims to have. */
export interface Claim {
  readonly hash: HashName;
  /** Any one of them will do. */
  readonly proofs: readonly Uint8Array[];
  /** Unix seconds. Absent for a scheme that signs no time. */
  readonly timestamp?: number;
  /** The messages of which one must be signed. */
  messages(body: Uint8Array): readonly SignedMessage[];
  /**
   * Names the request, so that the same request is found again. It has only what is signed, and no proof: a request with two proofs is the
   * same one without the first. @param message - the signed one
   */
  identity(body: Uint8Array, message: SignedMessage): string;
}

interface Scheme {
  /** The names of its headers. Each list is one way to send them. */
  headers(brand: string): readonly (readonly string[])[];
  /** @param values - of the headers that were sent, in their order @returns undefined for a wrong form */
  read(values: readonly string[], request: SignedRequest): Claim | undefined;
  /** Default: the text itself. @returns undefined for a secret of a wrong form */
  key?(secret: string): Uint8Array | undefined;
}

const NOTHING = new Uint8Array();
/** As many secrets can a notification have. */
const MAX_PROOFS = 10;
const TIMESTAMP = /^\d{1,11}$/;
const HEX_PROOF = /^[0-9a-f]{64}$/i;

/** @returns undefined for anything but 64 hexadecimal digits after the prefix */
function hexProof(text: string, prefix: string): Uint8Array | undefined {
  const proof = text.slice(prefix.length);
  return text.startsWith(prefix) && HEX_PROOF.test(proof) ? hexToBytes(proof) : undefined;
}

function base64Proof(text: string, length: number): Uint8Array | undefined {
  const bytes = /^[A-Za-z0-9+/]+=*$/.test(text) ? fromBase64(text) : undefined;
  return bytes?.byteLength === length ? bytes : undefined;
}

// The sender repeats a delivery with a new time and the same body, which contains the id of the event.
const byBody = (body: Uint8Array): string => bytesToHex(sha256(body));

/** One proof over a timestamp and the body. */
function timedClaim(
  proof: Uint8Array | undefined,
  timestamp: string,
  prefix: string,
  identity: Claim['identity'] = (body) => `${timestamp}.${byBody(body)}`,
): Claim | undefined {
  if (!proof || !TIMESTAMP.test(timestamp)) return undefined;
  const messages: Claim['messages'] = (bytes) => [{ text: prefix, bytes }];
  return { hash: 'SHA-256', proofs: [proof], timestamp: Number(timestamp), messages, identity };
}

/** One proof over the body alone. */
function untimedClaim(proof: Uint8Array | undefined): Claim | undefined {
  return proof && { hash: 'SHA-256', proofs: [proof], messages: (bytes) => [{ text: '', bytes }], identity: byBody };
}

/** The word in the names of the headers that the specification gives for requests to a webhook. */
export const WEBHOOK = 'webhook';

const SERVICE: Scheme = {
  headers: (brand) => [WEBHOOK, brand].map(signedHeaders),
  read([signature = '', timestamp = '']) {
    // Each of several secrets signs during a rotation. The same signature twice is a header that was sent twice.
    const given = signature.split(', ');
    const proofs = given.map((one) => hexProof(one, 'sha256='));
    const claim = timedClaim(proofs[0], timestamp, `${timestamp}.`);
    const isList = proofs.length <= MAX_PROOFS && new Set(given).size === given.length;
    return claim && isList && proofs.every(isPresent) ? { ...claim, proofs } : undefined;
  },
};

const GITHUB: Scheme = {
  headers: () => [['X-Hub-Signature-256']],
  read: ([signature = '']) => untimedClaim(hexProof(signature, 'sha256=')),
};

const STRIPE: Scheme = {
  headers: () => [['Stripe-Signature']],
  read([header = '']) {
    const parts = header.split(',').map((part) => part.split('=', 2) as [string, string | undefined]);
    const [first, second] = parts.filter(([name]) => name === 't');
    // Two values of the header are joined with a comma and a space.
    if (header.includes(' ') || parts.some(([, value]) => value === undefined) || second) return undefined;
    const timestamp = first?.[1] ?? '';
    const proofs = parts.flatMap(([name, value = '']) => (name === 'v1' ? [hexProof(value, '')] : []));
    const claim = timedClaim(proofs[0], timestamp, `${timestamp}.`, byBody);
    return claim && proofs.every(isPresent) ? { ...claim, proofs } : undefined;
  },
};

const SLACK: Scheme = {
  headers: () => [['X-Slack-Signature', 'X-Slack-Request-Timestamp']],
  read: ([signature = '', timestamp = '']) =>
    timedClaim(hexProof(signature, 'v0='), timestamp, `v0:${timestamp}:`, byBody),
};

const SHOPIFY: Scheme = {
  headers: () => [['X-Shopify-Hmac-Sha256']],
  read: ([signature = '']) => untimedClaim(base64Proof(signature, 32)),
};

/** Over the URL, and the fields of a form; the body of any other request is in the URL as a hash. */
const TWILIO: Scheme = {
  headers: () => [['X-Twilio-Signature']],
  read([signature = ''], { urls, header }) {
    const proof = base64Proof(signature, 20);
    if (!proof) return undefined;
    const isForm = (header('content-type') ?? '').toLowerCase().startsWith('application/x-www-form-urlencoded');
    const messages = (body: Uint8Array) => {
      const fields = isForm ? twilioFields(body) : '';
      const hash = isForm || body.byteLength === 0 ? undefined : bytesToHex(sha256(body));
      const covering = urls().filter((url) => hash === undefined || queryOf(url).get('bodySHA256') === hash);
      return [...new Set(covering.flatMap(withPorts))].map((url) => ({ text: url + fields, bytes: NOTHING }));
    };
    const identity: Claim['identity'] = (_body, { text }) => bytesToHex(sha256(utf8ToBytes(text)));
    return { hash: 'SHA-1', proofs: [proof], messages, identity };
  },
};

/** The URL without its port, and with it, or with that of its scheme: a sender signs the one or the other. */
function withPorts(url: string): readonly string[] {
  const [, scheme = '', authority = '', rest = ''] = /^(https?:\/\/)([^/?#]*)(.*)$/is.exec(url) ?? [];
  if (scheme === '') return [url];
  const host = authority.replace(/:\d*$/, '');
  const port = authority.slice(host.length) || (scheme.toLowerCase() === 'https://' ? ':443' : ':80');
  return [`${scheme}${host}${rest}`, `${scheme}${host}${port}${rest}`];
}

function queryOf(url: string): URLSearchParams {
  const at = url.indexOf('?');
  return new URLSearchParams(at < 0 ? '' : url.slice(at));
}

export function twilioFields(body: Uint8Array): string {
  const form = new URLSearchParams(new TextDecoder().decode(body));
  const names = [...new Set(form.keys())].sort();
  return names
    .map((name) =>
      [...new Set(form.getAll(name))]
        .sort()
        .map((value) => name + value)
        .join(''),
    )
    .join('');
}

const STANDARD_SECRET = /^(?:whsec_)?([A-Za-z0-9+/]+=*)$/;

/** The convention of Standard Webhooks. */
const STANDARD: Scheme = {
  headers: () =>
    ['webhook', 'svix'].map((prefix) => ['signature', 'timestamp', 'id'].map((name) => `${prefix}-${name}`)),
  read([signatures = '', timestamp = '', id = '']) {
    const proofs = signatures.split(' ').flatMap((one) => {
      const [version, proof = ''] = one.split(',', 2);
      return version === 'v1' ? [base64Proof(proof, 32)] : [];
    });
    const claim = timedClaim(proofs[0], timestamp, `${id}.${timestamp}.`, () => id);
    const isValid = /^[\x21-\x7e]{1,256}$/.test(id) && !signatures.includes(', ') && proofs.every(isPresent);
    return claim && isValid ? { ...claim, proofs: proofs.filter(isPresent) } : undefined;
  },
  key(secret) {
    const [, text = ''] = STANDARD_SECRET.exec(secret) ?? [];
    return text === '' ? undefined : fromBase64(text);
  },
};

function isPresent<T>(value: T | undefined): value is T {
  return value !== undefined;
}

const SCHEMES: Readonly<Record<SignatureScheme, Scheme>> = {
  service: SERVICE,
  github: GITHUB,
  stripe: STRIPE,
  slack: SLACK,
  shopify: SHOPIFY,
  twilio: TWILIO,
  standard: STANDARD,
};

/** The key that a secret stands for. @returns undefined if the secret has not the form that the scheme needs */
export function keyOf(scheme: SignatureScheme, secret: string): Uint8Array | undefined {
  const { key } = SCHEMES[scheme];
  return key ? key(secret) : utf8ToBytes(secret);
}

/** The headers of a scheme, in lower case: no execution reads them. */
export function signatureHeaders(scheme: SignatureScheme, brand: string): readonly string[] {
  return SCHEMES[scheme].headers(brand).flatMap((names) => names.map((name) => name.toLowerCase()));
}

/** @returns what a request claims, or what is wrong with its headers */
export function readClaim(scheme: SignatureScheme, request: SignedRequest): Claim | string {
  const { headers, read } = SCHEMES[scheme];
  const ways = headers(request.brand);
  const valuesOf = (names: readonly string[]) => names.map((name) => request.header(name.toLowerCase()));
  const given = ways.filter((names) => valuesOf(names).some(isPresent));
  const [names = ways[0] ?? [], second] = given;
  const values = valuesOf(names);
  // A sender may send the headers under two names, with the same values.
  if (second && !valuesOf(second).every((value, i) => value === values[i])) return 'the request has two signatures';
  const missing = names.find((_name, i) => values[i] === undefined);
  if (missing !== undefined) return `the header \`${missing}\` is missing`;
  return read(values as readonly string[], request) ?? `the header \`${names.join('` or `')}\` has a wrong form`;
}
