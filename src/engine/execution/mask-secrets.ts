/** Takes secrets out of what people read: logs, errors, answers. Stored step results are never altered. */

import type { Masking } from '../ports/masking.ts';
import { findTexts } from './find-texts.ts';
import { maskLogger } from './mask-logger.ts';
import { formsOf, inJson } from './secret-forms.ts';

/** Shorter secrets would blank out half of every text. */
const SHORTEST = 8;
const MASK = '***';

export type MaskText = (text: string) => string;

/** What a link of `signalUrl()` proves itself with. Slashes are in no part of it, so that it is found in one pass. */
const LINK = /(signals(?:\/|%2[Ff]))[A-Za-z0-9_-]+\.[0-9a-f]{64}/g;

/**
 * @param secrets - values; each is looked for in every spelling that `formsOf` knows
 * @param hasLinks - signal links are made: they are masked too
 */
export function createMasking(secrets: Iterable<string>, hasLinks = false): Masking {
  const forms = new Set<string>();
  for (const secret of secrets) {
    if (secret.length < SHORTEST) continue;
    for (const form of formsOf(secret)) if (form.length >= SHORTEST - 1) forms.add(form);
  }
  if (forms.size === 0 && !hasLinks) return NOTHING;
  const inText = forms.size > 0 ? findTexts(forms) : undefined;
  // A text that holds a form holds it escaped once it is written as JSON, where the forms' own escapes are escaped again.
  const inWritten = forms.size > 0 ? findTexts(new Set([...forms].map(inJson))) : undefined;
  const text: MaskText = (given) => {
    // Links first: one whose payload holds a secret is not found any more once that is masked.
    const unlinked = hasLinks ? given.replace(LINK, `$1${MASK}`) : given;
    return inText ? inText.replace(unlinked, MASK) : unlinked;
  };
  const isClean = (written: string) => !inWritten?.isIn(written) && !(hasLinks && written.search(LINK) >= 0);
  return {
    text,
    json(value) {
      const written = JSON.stringify(value) as string | undefined;
      return written === undefined || isClean(written) ? written : JSON.stringify(maskJson(JSON.parse(written), text));
    },
    logger: (logger) => maskLogger(logger, text),
  };
}

const NOTHING: Masking = {
  text: (text) => text,
  json: (value) => JSON.stringify(value),
  logger: (logger) => maskLogger(logger, NOTHING.text),
};

// By value: in the text of JSON a mask could end up inside of an escape or of a number.
function maskJson(value: unknown, mask: MaskText): unknown {
  if (typeof value === 'string') return mask(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => maskJson(item, mask));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [mask(key), maskJson(item, mask)]));
}
