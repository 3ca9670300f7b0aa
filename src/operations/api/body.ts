/** The bodies of an `api` request: JSON, text, forms, files, and multipart forms. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { fromBase64 } from '../../engine/base/bytes/base64.ts';
import { ByteBuffer } from '../../engine/base/bytes/byte-buffer.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json } from '../../engine/base/json/json.ts';
import { headerProblem } from '../../engine/host/http-header.ts';
import type { ApiConfig, FileContent, Multipart } from './config.ts';

export interface RequestBody {
  readonly content: string | Uint8Array;
  /** Sent unless the config sets that header. */
  readonly contentType?: string;
}

const FORM = 'application/x-www-form-urlencoded';

/**
 * @param contentType - the header of the config
 * @param idempotencyKey - gives a multipart body its boundary, so that every attempt sends the same bytes
 * @returns undefined if the config has no body
 * @throws OrchestratorError `INVALID_REQUEST` if a file is not what it says
 */
export function toBody(
  config: ApiConfig,
  contentType: string | undefined,
  idempotencyKey: string,
): RequestBody | undefined {
  const { body, form, multipart, binary } = config;
  if (form) return { content: encodeForm(form), contentType: FORM };
  if (multipart) return encodeMultipart(multipart, idempotencyKey);
  if (binary)
    return { content: toBytes(binary, 'binary'), contentType: binary.contentType ?? 'application/octet-stream' };
  if (body === undefined || body === null) return undefined;
  if (typeof body === 'string') return { content: body };
  const isForm = typeof body === 'object' && !Array.isArray(body) && contentType?.toLowerCase().startsWith(FORM);
  return isForm
    ? { content: encodeForm(body as Fields) }
    : { content: JSON.stringify(body), contentType: 'application/json' };
}

type Fields = Readonly<Record<string, Json | undefined>>;

/** Encodes a query or a form. An array repeats its name, and null is left out. */
export function encodeForm(fields: Fields): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item === null || item === undefined) continue;
      pairs.append(name, typeof item === 'object' ? JSON.stringify(item) : String(item));
    }
  }
  // Queries and forms both read %20 as a space. A plus is a space only in forms.
  return pairs.toString().replaceAll('+', '%20');
}

function toBytes({ content, encoding }: FileContent, key: string): Uint8Array {
  const bytes = encoding === 'base64' ? fromBase64(content) : new TextEncoder().encode(content);
  if (bytes === undefined) throw invalidBody(`'config.${key}' has a content that is not valid base64`);
  return bytes;
}

function encodeMultipart(fields: Multipart, idempotencyKey: string): RequestBody {
  const parts: Uint8Array[] = [];
  // The boundary is a hash of all parts: a text that holds its own hash can't be made.
  const hash = sha256.create().update(new TextEncoder().encode(idempotencyKey));
  for (const [name, value] of Object.entries(fields)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item === null) continue;
      const part = toPart(name, item);
      hash.update(part);
      parts.push(part);
    }
  }
  const boundary = bytesToHex(hash.digest()).slice(0, 32);
  const encoder = new TextEncoder();
  const content = new ByteBuffer();
  for (const part of parts) {
    content.append(encoder.encode(`--${boundary}\r\n`));
    content.append(part);
  }
  content.append(encoder.encode(`--${boundary}--\r\n`));
  return { content: content.bytes(), contentType: `multipart/form-data; boundary=${boundary}` };
}

function toPart(name: string, item: string | number | boolean | FileContent): Uint8Array {
  const file = typeof item === 'object' ? item : { content: String(item) };
  const { contentType, encoding } = file;
  // Servers recognise a file by its file name.
  const filename = file.filename ?? (encoding === 'base64' ? name : null);
  let head = `Content-Disposition: form-data; name="${escapeName(name)}"`;
  if (filename !== null) head += `; filename="${escapeName(filename)}"`;
  if (contentType != null) {
    const problem = headerProblem('Content-Type', contentType);
    if (problem !== undefined) throw invalidBody(`'config.multipart.${name}' was refused: ${problem}`);
    head += `\r\nContent-Type: ${contentType}`;
  }
  const part = new ByteBuffer();
  part.append(new TextEncoder().encode(`${head}\r\n\r\n`));
  part.append(toBytes(file, `multipart.${name}`));
  part.append(new Uint8Array([13, 10]));
  return part.bytes();
}

// As browsers do.
function escapeName(text: string): string {
  return text.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function invalidBody(message: string): OrchestratorError {
  return new OrchestratorError('INVALID_REQUEST', message, { details: { reason: 'body' } });
}
