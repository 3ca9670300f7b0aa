/** The spellings in which a secret may appear in a text: in a URL, JSON, base64, a form or a host name. */

import { toBase64 } from '../../base/bytes/base64.ts';

/** @returns the secret and its other spellings; some may be equal, and some too short to search for */
export function formsOf(secret: string): readonly string[] {
  const form = new URLSearchParams({ s: secret }).toString().slice(2);
  const encoded = [percentEncoded(secret), form, ...urlForms(secret)];
  const base64 = [0, 1, 2].map((shift) => base64Inside(secret, shift));
  return [
    secret,
    // The URL parser writes hosts and schemes in lower case.
    secret.toLowerCase(),
    inJson(secret),
    inAsciiJson(secret),
    ...encoded.flatMap((text) => [text, text.replace(/%../g, (code) => code.toLowerCase())]),
    ...base64.flatMap((text) => [text, text.replace(/\+/g, '-').replace(/\//g, '_')]),
  ];
}

/** A text as JSON writes it between quotes. */
export function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

// As JSON writers that use only ASCII escape it.
function inAsciiJson(text: string): string {
  return inJson(text).replace(/[^\0-~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

// A lone surrogate has no percent-encoding, so no peer can have sent one.
function percentEncoded(secret: string): string {
  try {
    return encodeURIComponent(secret);
  } catch {
    return secret;
  }
}

// The URL parser escapes less in a path than in a query, and turns a host into punycode or into an IPv4 address.
function urlForms(secret: string): readonly string[] {
  const path = parseUrl(`http://h/${secret}`);
  const followed = parseUrl(`http://h/${secret}/-`);
  const query = parseUrl(`http://h/?${secret}`);
  const host = /[/\\?#@:[\]]/.test(secret) ? undefined : parseUrl(`http://${secret}`);
  return [
    path?.pathname.slice(1) ?? '',
    // With the part after a `?` or a `#` in it, and with a space at its end, which the parser drops at the end of a URL.
    followed?.href.slice('http://h/'.length, -'/-'.length) ?? '',
    query?.href.slice('http://h/?'.length) ?? '',
    host?.hostname ?? '',
  ];
}

function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

// The part of a secret's base64 that does not depend on the text around it. The secret may begin at any of three positions in a group.
function base64Inside(secret: string, shift: number): string {
  const bytes = new TextEncoder().encode(secret);
  const shifted = new Uint8Array(shift + bytes.length);
  shifted.set(bytes, shift);
  const text = toBase64(shifted).replace(/=+$/, '');
  const first = shift === 0 ? 0 : shift + 1;
  return text.slice(first, shifted.length % 3 === 0 ? undefined : -1);
}
