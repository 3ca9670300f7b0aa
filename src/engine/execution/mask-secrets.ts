/** Takes secrets out of texts that people read: logs, errors, answers. Stored step results are never altered. */

import { toBase64 } from '../base64.ts';
import type { Json, JsonObject } from '../json.ts';
import type { Logger } from '../ports/logger.ts';

/** Shorter secrets would blank out half of every text. */
const SHORTEST = 8;
const MASK = '***';

export type MaskText = (text: string) => string;

/** @param secrets - values; each is looked for as it is, in base64, in base64url and percent-encoded */
export function createMask(secrets: Iterable<string>): MaskText {
  const forms = new Set<string>();
  for (const secret of secrets) {
    if (secret.length < SHORTEST) continue;
    const base64 = toBase64(new TextEncoder().encode(secret)).replace(/=+$/, '');
    for (const form of [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret),
      base64,
      toUrlAlphabet(base64),
    ])
      forms.add(form);
  }
  if (forms.size === 0) return (text) => text;
  // The longest first, so that no form is cut by one that it contains.
  const ordered = [...forms].sort((a, b) => b.length - a.length);
  return (text) => ordered.reduce((masked, form) => masked.split(form).join(MASK), text);
}

function toUrlAlphabet(base64: string): string {
  return base64.replace(/\+/g, '-').replace(/\//g, '_');
}

/** A logger whose messages and fields hold no secret. */
export function maskLogger(logger: Logger, mask: MaskText): Logger {
  const level = (name: keyof Logger) => (fields: object, message?: string) => {
    logger[name](maskFields(fields, mask), message === undefined ? undefined : mask(message));
  };
  return { debug: level('debug'), info: level('info'), warn: level('warn'), error: level('error') };
}

function maskFields(fields: object, mask: MaskText): object {
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields)) {
    if (value instanceof Error)
      out[key] = { name: value.name, message: mask(value.message), stack: mask(value.stack ?? '') };
    else out[key] = maskValue(value, mask);
  }
  return out;
}

function maskValue(value: unknown, mask: MaskText): unknown {
  if (typeof value === 'string') return mask(value);
  if (typeof value !== 'object' || value === null) return value;
  try {
    return JSON.parse(mask(JSON.stringify(value))) as Json | JsonObject;
  } catch {
    return mask(String(value));
  }
}
