/** Masks secrets in what people read: logs, errors, responses. Stored step results are never changed. */

import { type Logger, NO_LINE, SILENT } from '../../host/logger.port.ts';
import type { Masking } from '../../host/masking.port.ts';
import { findTexts } from './find-texts.ts';
import { FieldCopy } from './mask-fields.ts';
import { formsOf, inJson } from './secret-forms.ts';

/** Shorter secrets are not masked: they would match too much of every text. */
const MIN_LENGTH = 8;
const MASK = '***';

export type MaskText = (text: string) => string;

/** The proof in a link of `signalUrl()`. No part of it has a slash, so that it is found in one pass. */
const LINK = /(signals(?:\/|%2[Ff]))[A-Za-z0-9_-]+\.[0-9a-f]{64}/g;

/**
 * @param secrets - values to mask, in every spelling that `formsOf` returns
 * @param hasLinks - signal links are in use: they are masked too
 */
export function createMasking(secrets: Iterable<string>, hasLinks = false): Masking {
  const forms = new Set<string>();
  for (const secret of secrets) {
    if (secret.length < MIN_LENGTH) continue;
    for (const form of formsOf(secret)) if (form.length >= MIN_LENGTH - 1) forms.add(form);
  }
  if (forms.size === 0 && !hasLinks) return NOTHING;
  const inText = forms.size > 0 ? findTexts(forms) : undefined;
  // In JSON, a secret appears escaped, and the escapes of its forms are escaped again.
  const inWritten = forms.size > 0 ? findTexts(new Set([...forms].map(inJson))) : undefined;
  const text: MaskText = (given) => {
    // Links first: after a secret in its payload is masked, a link is no longer found.
    const unlinked = hasLinks ? given.replace(LINK, `$1${MASK}`) : given;
    return inText ? inText.replace(unlinked, MASK) : unlinked;
  };
  const isClean = (written: string) => !inWritten?.isIn(written) && !(hasLinks && written.search(LINK) >= 0);
  return {
    text,
    openFrom: inText?.openFrom ?? ((given) => given.length),
    json(value) {
      const written = JSON.stringify(value) as string | undefined;
      return written === undefined || isClean(written) ? written : JSON.stringify(maskJson(JSON.parse(written), text));
    },
    logger: (logger) => maskLogger(logger, text),
  };
}

const NOTHING: Masking = {
  text: (text) => text,
  openFrom: (text) => text.length,
  json: (value) => JSON.stringify(value),
  logger: (logger) => maskLogger(logger, NOTHING.text),
};

// Masks value by value: in the JSON text, a mask could end up inside an escape or a number.
function maskJson(value: unknown, mask: MaskText): unknown {
  if (typeof value === 'string') return mask(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => maskJson(item, mask));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [mask(key), maskJson(item, mask)]));
}

type Level = 'debug' | 'info' | 'warn' | 'error';

/** A logger that masks secrets in messages and fields. It never throws, whatever `logger` does and whatever is logged. */
function maskLogger(logger: Logger, mask: (text: string) => string): Logger {
  if (logger === SILENT) return SILENT;
  const level = (name: Level) => {
    if (logger[name] === NO_LINE) return NO_LINE;
    return (fields: object, message?: string) => {
      try {
        const masked = new FieldCopy(mask, true).of(fields) as object;
        const written: unknown = write(logger, name, masked, message === undefined ? undefined : mask(message));
        if (written instanceof Promise) written.catch(() => {});
      } catch {
        // A logger that fails can't log its own failure, and must not fail a run.
      }
    };
  };
  return {
    debug: level('debug'),
    info: level('info'),
    warn: level('warn'),
    error: level('error'),
    child: (fields) => maskLogger(childOf(logger, new FieldCopy(mask, true).of(fields) as object), mask),
  };
}

/** console prints an argument that is undefined. */
function write(logger: Logger, name: Level, fields: object, message: string | undefined): unknown {
  return message === undefined ? logger[name](fields) : logger[name](fields, message);
}

/** A logger that adds fields to each line: the logger's own child, or, if it has none, one that merges the fields. */
function childOf(logger: Logger, bound: object): Logger {
  try {
    const child = logger.child?.(bound);
    if (child) return child;
  } catch {
    // The fields are merged instead.
  }
  const level = (name: Level) => {
    if (logger[name] === NO_LINE) return NO_LINE;
    return (fields: object | string, message?: string) => {
      if (typeof fields === 'string') return write(logger, name, bound, message ? `${fields} ${message}` : fields);
      if (fields instanceof Error) return write(logger, name, { ...bound, err: fields }, message ?? fields.message);
      return write(logger, name, { ...bound, ...fields }, message);
    };
  };
  return { debug: level('debug'), info: level('info'), warn: level('warn'), error: level('error') };
}
