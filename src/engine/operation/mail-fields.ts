/** The rules for the fields of an e-mail: addresses, lines of text, and custom headers. Nothing is repaired: a field fits, or is refused. */

import { printable, quoted } from '../base/wording.ts';

export const MAX_ADDRESS = 254;
/** The longest subject, and the longest display name. */
export const MAX_LINE = 998;
const MAX_HEADER_VALUE = 2_000;

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must not be there
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\p{Surrogate}]/u;
// Characters that change the direction of the text around them, or that nobody sees.
const INVISIBLE = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/;

const LOCAL = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const LABEL = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;
// What a domain may have before it is written in ASCII. No sign of it has a meaning in a URL.
const INTERNATIONAL = /^[\p{L}\p{M}\p{Nd}.-]+$/u;

export interface Address {
  readonly address: string;
  readonly name?: string;
}

/** An address, or why the text is not one. */
export type ReadAddress =
  | { readonly value: Address; readonly problem?: undefined }
  | { readonly value?: undefined; readonly problem: string };

/**
 * Reads exactly one address: `ada@example.com`, or `Ada <ada@example.com>`. A domain in another script is written in ASCII. A list, a
 * group, a comment, a route and a quoted local part are refused.
 */
export function readAddress(text: string): ReadAddress {
  const line = lineProblem(text, MAX_LINE + MAX_ADDRESS);
  if (line !== undefined) return { problem: line };
  const named = /^\s*(?:"((?:[^"\\]|\\.)*)"|([^"<>@,;:()[\]\\]*?))\s*<([^<>]*)>\s*$/.exec(text);
  if (!named) return readPlainAddress(text.trim());
  const [, inQuotes, plain = '', address = ''] = named;
  const name = inQuotes?.replace(/\\(.)/g, '$1') ?? plain;
  const problem = lineProblem(name, MAX_LINE);
  if (problem !== undefined) return { problem: `has a name that ${problem}` };
  const read = readPlainAddress(address);
  return read.value && name !== '' ? { value: { ...read.value, name } } : read;
}

/** Reads exactly one address without a name. */
export function readPlainAddress(text: string): ReadAddress {
  const at = text.lastIndexOf('@');
  const [local, domain] = [text.slice(0, at), toAsciiDomain(text.slice(at + 1))];
  const fits = at > 0 && local.length <= 64 && LOCAL.test(local) && !local.startsWith('-') && domain !== undefined;
  const address = `${local}@${domain}`;
  if (fits && address.length <= MAX_ADDRESS) return { value: { address } };
  const rule = `exactly one address such as \`ada@example.com\`, of at most ${MAX_ADDRESS} characters`;
  return { problem: `must be ${rule}, not ${quoted(printable(text))}` };
}

/** @returns undefined for text that is not the name of a host, or that ASCII can't represent */
function toAsciiDomain(domain: string): string | undefined {
  let ascii = domain;
  if (/[^ -~]/.test(domain)) {
    if (!INTERNATIONAL.test(domain) || !URL.canParse(`http://${domain}`)) return undefined;
    ascii = new URL(`http://${domain}`).hostname;
  }
  const labels = ascii.split('.');
  // A last label of digits would be an address of a network.
  return labels.every((label) => LABEL.test(label)) && !/^\d+$/.test(labels.at(-1) as string) ? ascii : undefined;
}

/** Why a text can't be a subject, a name or another line of a message; undefined if it can. */
export function lineProblem(text: string, max: number = MAX_LINE): string | undefined {
  if (text.length > max) return `has ${text.length} characters; at most ${max} are possible`;
  const found = CONTROL.exec(text);
  if (!found) return undefined;
  const code = `U+${found[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
  return `has a line break or another control character (${code}) at ${found.index}; remove it`;
}

const FILENAME_BYTES = 255;

/** The last part of a path as the name of a file, or why it can't be one. */
export function readFilename(text: string): { readonly value: string } | { readonly problem: string } {
  const value = text.slice(Math.max(text.lastIndexOf('/'), text.lastIndexOf('\\')) + 1);
  if (value.trim() === '' || value === '.' || value === '..') return { problem: 'must be the name of a file' };
  const problem = lineProblem(value);
  if (problem !== undefined) return { problem };
  if (INVISIBLE.test(value)) return { problem: 'has a character that hides or reverses a part of the name; remove it' };
  if (new TextEncoder().encode(value).length <= FILENAME_BYTES) return { value };
  return { problem: `is longer than ${FILENAME_BYTES} bytes` };
}

const TOKEN = "[A-Za-z0-9!#$%&'*+.^_`|~-]+";
const MEDIA_TYPE = new RegExp(`^${TOKEN}/${TOKEN}(?:\\s*;\\s*${TOKEN}=(?:${TOKEN}|"[^"\\\\]*"))*$`);

/** Why a text is not the type of an attachment; undefined if it is. */
export function mediaTypeProblem(text: string): string | undefined {
  const fits = text.length <= 255 && !CONTROL.test(text) && MEDIA_TYPE.test(text) && !/^multipart\//i.test(text);
  return fits ? undefined : 'must be a media type such as `application/pdf`';
}

const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,76}$/;

/** Headers that the message itself has, or that only a mail server may add. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  ...['from', 'sender', 'reply-to', 'to', 'cc', 'bcc', 'subject', 'date', 'message-id', 'mime-version'],
  ...['return-path', 'received', 'received-spf', 'dkim-signature', 'domainkey-signature', 'authentication-results'],
  ...['delivered-to', 'envelope-to', 'apparently-to', 'x-original-to', 'return-receipt-to', 'errors-to'],
]);

/** Why a custom header can't be sent; undefined if it can. */
export function mailHeaderProblem(name: string, value: string): string | undefined {
  const shown = quoted(printable(name));
  if (!HEADER_NAME.test(name)) return `${shown} is not the name of a header: only letters, digits and !#$%&'*+.^_\`|~-`;
  const lower = name.toLowerCase();
  if (OWN_HEADERS.has(lower) || /^(?:content|arc|resent)-/.test(lower))
    return `header ${shown} belongs to the message itself; leave it out, and use the key of the config if there is one`;
  const problem = lineProblem(value, MAX_HEADER_VALUE);
  return problem === undefined ? undefined : `header ${shown} ${problem}`;
}
