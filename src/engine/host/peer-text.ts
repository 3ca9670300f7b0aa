/** Reads what a peer wrote, and removes from it what was sent as a secret: peers echo what they receive. */

import { fromBase64 } from '../base/bytes/base64.ts';

/** @returns undefined for bytes that are not text in this charset, and for an unknown charset */
export function decodeText(bytes: Uint8Array, charset = 'utf-8'): string | undefined {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Masks what was sent. The caller cuts the text after that, because a part of a secret would not be found.
 *
 * @param sent - the values of headers, and {@link querySecrets}
 * @param minLength - shorter values are not masked: they would match too much of the text
 */
export function maskSent(text: string, sent: readonly string[], minLength = 4): string {
  const parts = sent.flatMap(partsOf).filter((part) => part.length >= minLength);
  // The longest first: a part of a masked value would not be found.
  return parts.sort((a, b) => b.length - a.length).reduce((masked, part) => masked.replaceAll(part, '***'), text);
}

// The scheme of an Authorization value is not secret, and a peer may repeat the rest without it, or the password alone.
function partsOf(value: string): readonly string[] {
  const rest = value.replace(/^(?:[\w-]+ |sha256=)/, '');
  if (!/^basic /i.test(value)) return [value, rest];
  const pair = new TextDecoder().decode(fromBase64(rest) ?? new Uint8Array());
  return [value, rest, pair, pair.slice(pair.indexOf(':') + 1)];
}

const MIN_QUERY_VALUE = 8;

/** What may be secret in the query of a URL that the host configured: the query, and its values, except for short ones. */
export function querySecrets(url: string): readonly string[] {
  const { search, searchParams } = new URL(url);
  const written = search.split(/[?&]/).map((pair) => pair.slice(pair.indexOf('=') + 1));
  return [search.slice(1), ...[...written, ...searchParams.values()].filter(({ length }) => length >= MIN_QUERY_VALUE)];
}
