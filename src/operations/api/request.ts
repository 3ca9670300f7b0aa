/** Turns an evaluated `api` config into the request to send. */

import { toBase64 } from '../../engine/base/base64.ts';
import { toMs } from '../../engine/base/duration.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json } from '../../engine/base/json.ts';
import type { HttpRequest } from '../../engine/ports/http.ts';
import type { ApiAuth, ApiConfig } from './config.ts';

export const DEFAULT_TIMEOUT_MS = 30_000;

/** The request to send. All values in `headers` may be secret. */
export type ApiRequest = Required<Pick<HttpRequest, 'method' | 'url' | 'headers' | 'timeoutMs' | 'signal'>> &
  Pick<HttpRequest, 'body'>;

/**
 * @param config - the evaluated config
 * @param idempotencyKey - sent as `Idempotency-Key` unless the config sets that header
 * @throws OrchestratorError `INVALID_REQUEST` if the url is not an absolute URL
 */
export function toApiRequest(config: ApiConfig, idempotencyKey: string, signal: AbortSignal): ApiRequest {
  const headers: Record<string, string> = Object.create(null);
  const names = new Set<string>();
  for (const [name, value] of Object.entries(config.headers ?? {})) {
    if (value === null) continue;
    headers[name] = String(value);
    names.add(name.toLowerCase());
  }
  const add = (name: string, value: string) => {
    if (!names.has(name.toLowerCase())) headers[name] = value;
  };
  const body = config.body ?? undefined;
  if (body !== undefined && typeof body !== 'string') add('Content-Type', 'application/json');
  if (config.auth) add('Authorization', authorization(config.auth));
  add('Idempotency-Key', idempotencyKey);
  return {
    method: (config.method ?? 'GET').toUpperCase(),
    url: withParameters(config),
    headers,
    body: body === undefined || typeof body === 'string' ? body : encodeBody(body, headers),
    timeoutMs: toMs(config.timeout ?? DEFAULT_TIMEOUT_MS),
    signal,
  };
}

function withParameters(config: ApiConfig): string {
  if (!URL.canParse(config.url)) {
    throw new OrchestratorError('INVALID_REQUEST', "'config.url' is not an absolute URL; write https://host/path", {
      details: { reason: 'url' },
    });
  }
  const added = encodeForm(config.query ?? config.params ?? {});
  if (added === '') return config.url;
  const url = new URL(config.url);
  // Added as text: searchParams would change the spelling of the url's own query.
  url.search = url.search.length > 1 ? `${url.search}&${added}` : added;
  return url.href;
}

type Fields = Readonly<Record<string, Json | undefined>>;

function encodeForm(fields: Fields): string {
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

function encodeBody(body: Json, headers: Readonly<Record<string, string>>): string {
  const name = Object.keys(headers).find((key) => key.toLowerCase() === 'content-type');
  const type = name === undefined ? '' : (headers[name] ?? '').toLowerCase();
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  return isObject && type.startsWith('application/x-www-form-urlencoded')
    ? encodeForm(body as Fields)
    : JSON.stringify(body);
}

function authorization(auth: ApiAuth): string {
  return auth.type === 'bearer'
    ? `Bearer ${auth.token}`
    : `Basic ${toBase64(new TextEncoder().encode(`${auth.username}:${auth.password}`))}`;
}
