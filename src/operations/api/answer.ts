/** Turns an HTTP answer into the output of the `api` operation, or into a failure. */

import { toBase64 } from '../../engine/base/bytes/base64.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import { copyJson, type Json, JsonError, MAX_DEPTH } from '../../engine/base/json/json.ts';
import { nestsTooDeep } from '../../engine/base/json/json-text.ts';
import type { HttpResponse } from '../../engine/host/http.port.ts';
import { decodeText, maskSent } from '../../engine/host/peer-text.ts';
import { isRetryableStatus, parseRetryAfter } from '../../engine/host/retry-after.ts';
import type { ApiRequest } from './request.ts';

const MAX_ERROR_BODY = 1000;

/** The output of an `api` agent. */
export interface ApiOutput {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** A JSON value, text, `{ content, contentType, encoding: 'base64' }` for binary types, or null for an empty body. */
  readonly body: Json;
}

/** A body that is not text. */
export interface BinaryBody {
  readonly content: string;
  readonly contentType: string;
  readonly encoding: 'base64';
}

/**
 * Reads a body by its content type: JSON (also `+json`) as its value, text as a string, any other type as {@link BinaryBody}. An empty
 * body is null.
 *
 * @throws OrchestratorError `AGENT_FAILED`, not retryable, if a body with a JSON content type is not JSON, is nested deeper than 64
 *   levels, is larger than the output of a step may be, or has a prototype key
 */
export function readBody(request: ApiRequest, response: HttpResponse): Json {
  if (response.body.byteLength === 0) return null;
  const type = response.headers['content-type'] ?? '';
  const mediaType = (type.split(';')[0] ?? '').trim().toLowerCase();
  if (mediaType === 'application/json' || mediaType.endsWith('+json')) return readJson(request, response);
  const text = isBinary(mediaType) ? undefined : decodeText(response.body, charsetOf(type));
  if (text !== undefined) return text;
  const binary: BinaryBody = {
    content: toBase64(response.body),
    contentType: mediaType || 'application/octet-stream',
    encoding: 'base64',
  };
  return { ...binary };
}

function readJson(request: ApiRequest, response: HttpResponse): Json {
  const text = decodeText(response.body);
  if (text === undefined) throw unreadable(request, response, 'invalid-json', 'JSON that is not valid UTF-8');
  if (nestsTooDeep(text))
    throw unreadable(request, response, 'unsafe-json', `JSON nested deeper than ${MAX_DEPTH} levels`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw unreadable(request, response, 'invalid-json', 'a JSON content type and a body that is not JSON');
  }
  try {
    return copyJson(value);
  } catch (error) {
    if (error instanceof JsonError)
      throw unreadable(request, response, 'unsafe-json', `JSON that is refused: ${error.problem.message}`);
    throw error;
  }
}

function charsetOf(contentType: string): string {
  return /;\s*charset="?([A-Za-z0-9_.:-]{1,40})"?/i.exec(contentType)?.[1] ?? 'utf-8';
}

// Decided by type and not by content: the same call always returns the same shape, for any bytes of an image.
function isBinary(mediaType: string): boolean {
  if (mediaType === 'image/svg+xml') return false;
  return /^(?:image|audio|video|font)\//.test(mediaType) || BINARY_TYPES.has(mediaType);
}

const BINARY_TYPES: ReadonlySet<string> = new Set([
  'application/gzip',
  'application/octet-stream',
  'application/pdf',
  'application/protobuf',
  'application/wasm',
  'application/x-gzip',
  'application/x-protobuf',
  'application/x-tar',
  'application/zip',
]);

/** The failure for an unexpected status. Retryable for 408, 425, 429 and 5xx. */
export function statusFailure(request: ApiRequest, response: HttpResponse, now: number): OrchestratorError {
  const { status } = response;
  const retryAfterMs = parseRetryAfter(response.headers['retry-after'], now);
  const body = errorBody(request, response);
  const hint = status >= 300 && status < 400 ? '; redirects are not followed' : '';
  return new OrchestratorError('AGENT_FAILED', `${describeRequest(request)} answered ${status}${hint}`, {
    details: {
      status,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(body === undefined ? {} : { body }),
    },
    retryable: isRetryableStatus(status),
  });
}

function unreadable(request: ApiRequest, response: HttpResponse, reason: string, what: string): OrchestratorError {
  const { status } = response;
  return new OrchestratorError('AGENT_FAILED', `${describeRequest(request)} answered ${status} with ${what}`, {
    details: { status, reason },
  });
}

/** A request in messages: without its query. */
export function describeRequest(request: ApiRequest): string {
  const { origin, pathname } = new URL(request.url);
  return `${request.method} ${origin}${pathname}`;
}

// Most headers of a config are not secret. Short values would match too much of the text.
const MIN_HEADER = 8;

// The peer's text about the failure, for people who read the execution, without the values of all sent headers.
function errorBody(request: ApiRequest, response: HttpResponse): string | undefined {
  const contentType = response.headers['content-type'] ?? '';
  const isText = !isBinary((contentType.split(';')[0] ?? '').trim().toLowerCase());
  const given = isText && response.body.byteLength > 0 ? decodeText(response.body, charsetOf(contentType)) : undefined;
  if (given === undefined) return undefined;
  const sent = Object.entries(request.headers).flatMap(([name, value]) =>
    PUBLIC_HEADERS.has(name.toLowerCase()) ? [] : [value],
  );
  const text = maskSent(given, sent, MIN_HEADER);
  return text.length > MAX_ERROR_BODY ? `${text.slice(0, MAX_ERROR_BODY)}...` : text;
}

const PUBLIC_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'accept-language',
  'content-type',
  'idempotency-key',
  'user-agent',
]);
