/** Links that give one signal to one execution: text that says which, and the proof that this service wrote it. */

import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { fromBase64, toBase64 } from '../base64.ts';
import type { Json } from '../json.ts';

/** What a link says. */
export interface SignalLink {
  readonly executionId: string;
  /** The signal's name. */
  readonly name: string;
  readonly payload: Json;
  /** Key of the step that made it. */
  readonly place: string;
  /** Unix ms: the last commit before that step, so that the step makes the same link whenever it runs. */
  readonly madeAt: number;
}

/** What signs is used for nothing else, whatever else the same secret may sign. */
const PURPOSE = 'signal-link.1.';
/** Nothing that long was ever made. */
const LONGEST_TOKEN = 4_000;
const TOKEN = /^([A-Za-z0-9_-]+)\.([0-9a-f]{64})$/;

/** @returns what stands in a path: what the link says, in base64url, a dot, and its HMAC-SHA-256 in hexadecimal */
export function signLink({ executionId, name, payload, place, madeAt }: SignalLink, secret: string): string {
  const said = utf8ToBytes(JSON.stringify([executionId, name, payload, place, madeAt]));
  const body = toBase64(said).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
  // In hexadecimal: programs that find addresses in mails leave out a `-` or `_` at the end.
  return `${body}.${proofOf(body, secret)}`;
}

/** @param secrets - any of them may have signed it @returns undefined for what none of them signed */
export function readLink(token: string, secrets: readonly string[]): SignalLink | undefined {
  if (token.length > LONGEST_TOKEN) return undefined;
  const [, body, proof] = TOKEN.exec(token) ?? [];
  if (body === undefined || proof === undefined) return undefined;
  let isSigned = false;
  // All are tried: how long it takes says nothing of which one it was.
  for (const secret of secrets) if (isSameText(proofOf(body, secret), proof)) isSigned = true;
  const bytes = isSigned ? fromBase64(body.replaceAll('-', '+').replaceAll('_', '/')) : undefined;
  if (!bytes) return undefined;
  // Signed, so it has the form that was written.
  const [executionId, name, payload, place, madeAt] = JSON.parse(new TextDecoder().decode(bytes));
  return { executionId, name, payload, place, madeAt };
}

/** The id of the signal that a link gives: one for all links to a signal that one step makes, whatever their payloads. */
export function linkSignalId({ name, place }: Pick<SignalLink, 'name' | 'place'>): string {
  return `lnk_${name}:${bytesToHex(sha256(utf8ToBytes(place)))}`;
}

function proofOf(body: string, secret: string): string {
  return bytesToHex(hmac(sha256, utf8ToBytes(secret), utf8ToBytes(PURPOSE + body)));
}

/** Whether two texts of one length are the same, in a time that says nothing of where they differ. */
function isSameText(a: string, b: string): boolean {
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
}
