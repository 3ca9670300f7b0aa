/** Signs and reads the tokens of signal links: each names one signal of one execution, with a proof that this service made it. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { Json } from '../base/json/json.ts';
import type { SignalPage } from '../signal/signal-page.ts';
import { readSigned, signText } from './signed-text.ts';

/** The content of a link. */
export interface SignalLink {
  readonly executionId: string;
  /** The signal's name. */
  readonly name: string;
  readonly payload: Json;
  /** The key of the step that created the link. */
  readonly place: string;
  /** Unix ms of the last commit before that step. It makes a repeated step create the same link. */
  readonly madeAt: number;
  /** What its page shows and asks. */
  readonly page?: SignalPage | undefined;
}

const PURPOSE = 'signal-link.1.';

/** @returns the token for a URL path */
export function signLink({ executionId, name, payload, place, madeAt, page }: SignalLink, secret: string): string {
  const content: Json = [executionId, name, payload, place, madeAt, ...(page ? [page as Json] : [])];
  return signText(content, PURPOSE, secret);
}

/** @param secrets - the secrets that may have signed the token @returns undefined when none of them signed it */
export function readLink(token: string, secrets: readonly string[]): SignalLink | undefined {
  const content = readSigned(token, PURPOSE, secrets);
  if (content === undefined) return undefined;
  // The signature is valid, so the content has the form that `signLink` wrote.
  const [executionId, name, payload, place, madeAt, page] = content as [
    string,
    string,
    Json,
    string,
    number,
    SignalPage?,
  ];
  return { executionId, name, payload, place, madeAt, ...(page && { page }) };
}

/** The id of the signal of a link. All links that one step creates for a signal share this id, whatever their payloads are. */
export function linkSignalId({ name, place }: Pick<SignalLink, 'name' | 'place'>): string {
  return `lnk_${name}:${bytesToHex(sha256(utf8ToBytes(place)))}`;
}
