/** Takes secrets out of texts that people read: logs, errors, answers. Stored step results are never altered. */

import { toBase64 } from '../base64.ts';
import { MAX_DEPTH } from '../json.ts';
import type { Logger } from '../ports/logger.ts';

/** Shorter secrets would blank out half of every text. */
const SHORTEST = 8;
const MASK = '***';

export type MaskText = (text: string) => string;

/** What a link of `signalUrl()` proves itself with. Slashes are in no part of it, so that it is found in one pass. */
const LINK = /(signals(?:\/|%2[Ff]))[A-Za-z0-9_-]+\.[0-9a-f]{64}/g;

/**
 * @param secrets - values; each is looked for as it is, in JSON, base64, base64url, percent-encoded and as a form sends it
 * @param hasLinks - signal links are made: they are masked too
 */
export function createMask(secrets: Iterable<string>, hasLinks = false): MaskText {
  const mask = maskValues(secrets);
  return hasLinks ? (text) => mask(text.replace(LINK, `$1${MASK}`)) : mask;
}

function maskValues(secrets: Iterable<string>): MaskText {
  const forms = new Set<string>();
  for (const secret of secrets) {
    if (secret.length < SHORTEST) continue;
    for (const form of formsOf(secret)) if (form.length >= SHORTEST - 1) forms.add(form);
  }
  if (forms.size === 0) return (text) => text;
  // The longest first, so that no form is cut by one that it contains.
  const ordered = [...forms].sort((a, b) => b.length - a.length);
  return (text) => ordered.reduce((masked, form) => masked.split(form).join(MASK), text);
}

function formsOf(secret: string): readonly string[] {
  const form = new URLSearchParams({ s: secret }).toString().slice(2);
  const percent = percentEncoded(secret);
  const base64 = [0, 1, 2].map((shift) => base64Inside(secret, shift));
  return [
    secret,
    JSON.stringify(secret).slice(1, -1),
    ...[percent, form].flatMap((text) => [text, text.replace(/%../g, (code) => code.toLowerCase())]),
    ...base64.flatMap((text) => [text, text.replace(/\+/g, '-').replace(/\//g, '_')]),
  ];
}

// A lone surrogate has no percent-encoding, so no peer can have sent one.
function percentEncoded(secret: string): string {
  try {
    return encodeURIComponent(secret);
  } catch {
    return secret;
  }
}

// What of a secret's base64 stays the same whatever stands around it: it may begin at any of three places of a group.
function base64Inside(secret: string, shift: number): string {
  const bytes = new TextEncoder().encode(secret);
  const shifted = new Uint8Array(shift + bytes.length);
  shifted.set(bytes, shift);
  const text = toBase64(shifted).replace(/=+$/, '');
  const first = shift === 0 ? 0 : shift + 1;
  return text.slice(first, shifted.length % 3 === 0 ? undefined : -1);
}

/** A logger whose messages and fields hold no secret. */
export function maskLogger(logger: Logger, mask: MaskText): Logger {
  const level = (name: keyof Logger) => (fields: object, message?: string) => {
    logger[name](maskValue(fields, mask) as object, message === undefined ? undefined : mask(message));
  };
  return { debug: level('debug'), info: level('info'), warn: level('warn'), error: level('error') };
}

function maskValue(value: unknown, mask: MaskText, depth = 0): unknown {
  if (typeof value === 'string') return mask(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) return '...';
  if (Array.isArray(value)) return value.map((inner) => maskValue(inner, mask, depth + 1));
  if (value instanceof Error) return { name: value.name, message: mask(value.message), stack: mask(value.stack ?? '') };
  const entries = Object.entries(value).map(([key, inner]) => [mask(key), maskValue(inner, mask, depth + 1)] as const);
  return Object.fromEntries(entries);
}
