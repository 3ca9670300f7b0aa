/** Converts a value to the bytes of an object, and back. */

import { fromBase64, toBase64 } from '../../engine/base/bytes/base64.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import { copyJson, type Json, JsonError, type JsonObject, MAX_VALUE_BYTES } from '../../engine/base/json/json.ts';
import type { StoredObject } from '../../engine/storage/data.port.ts';
import { fromCsv } from './csv.ts';
import { CONTENT_TYPES, rowsToText } from './row-text.ts';

type Format = 'text' | 'json' | 'csv' | 'ndjson';

/**
 * Without a format, text is stored unchanged. `{ content, contentType, encoding }`, as in the output of an `api` agent, is stored as the
 * bytes that it describes. Every other value is stored as JSON.
 */
export function toStoredObject(
  value: Json,
  contentType: string | undefined,
  updatedAt: number,
  format?: Format,
): StoredObject {
  if (format === 'csv' || format === 'ndjson')
    return { content: encode(rowsToText(value, format)), contentType: contentType ?? CONTENT_TYPES[format], updatedAt };
  if (format === 'text' && typeof value !== 'string')
    throw new OrchestratorError('INVALID_INPUT', 'storage: `value` must be text for `format: text`');
  if (typeof value === 'string' && format !== 'json')
    return { content: encode(value), contentType: contentType ?? 'text/plain; charset=utf-8', updatedAt };
  if (isContent(value) && format !== 'json') {
    const content = value.encoding === 'base64' ? decodeBase64(value.content) : encode(value.content);
    return { content, contentType: contentType ?? value.contentType ?? 'application/octet-stream', updatedAt };
  }
  return { content: encode(JSON.stringify(value)), contentType: contentType ?? CONTENT_TYPES.json, updatedAt };
}

/** As text, bytes that are not UTF-8 are returned in base64, with `encoding`. CSV and lines of JSON are a list. */
export function fromStoredObject({ content, contentType }: StoredObject, format: Format): JsonObject {
  const size = content.byteLength;
  // As rows, it would be larger still.
  if (format === 'csv' && size > MAX_VALUE_BYTES) {
    const rule = `storage: the object has ${size} bytes, and an output at most ${MAX_VALUE_BYTES}`;
    throw new OrchestratorError('INVALID_OUTPUT', `${rule}; split it into several objects`);
  }
  const text = decodeText(content);
  if (format !== 'text') {
    if (text === undefined)
      throw new OrchestratorError('INVALID_INPUT', 'storage: the object is not UTF-8; read it with `format: text`');
    return { content: parse(text, format), contentType, size };
  }
  if (text === undefined) return { content: toBase64(content), contentType, size, encoding: 'base64' };
  return { content: text, contentType, size };
}

interface Content {
  readonly content: string;
  readonly contentType?: string;
  readonly encoding?: string;
}

function isContent(value: Json): value is Json & Content {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { content, encoding } = value as JsonObject;
  return typeof content === 'string' && (encoding === 'base64' || encoding === 'utf8');
}

// UTF-8 can't represent half of a surrogate pair: another character would be stored.
function encode(text: string): Uint8Array {
  if (/\p{Surrogate}/u.test(text)) {
    throw new OrchestratorError(
      'INVALID_INPUT',
      'storage: the text contains half of a surrogate pair, which is not a character',
    );
  }
  return new TextEncoder().encode(text);
}

function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function parse(text: string, format: 'json' | 'csv' | 'ndjson'): Json {
  try {
    if (format === 'csv') return copyJson(fromCsv(text));
    if (format === 'json') return copyJson(JSON.parse(text));
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    return copyJson(lines.map((line) => JSON.parse(line)));
  } catch (error) {
    if (error instanceof JsonError) throw new OrchestratorError('INVALID_INPUT', `storage: ${error.message}`);
    if (!(error instanceof SyntaxError)) throw error;
  }
  const what = format === 'json' ? 'not JSON' : 'not lines of JSON';
  throw new OrchestratorError('INVALID_INPUT', `storage: the object is ${what}; read it with \`format: text\``);
}

function decodeBase64(text: string): Uint8Array {
  const bytes = fromBase64(text);
  if (!bytes) throw new OrchestratorError('INVALID_INPUT', 'storage: `value.content` is not valid base64');
  return bytes;
}
