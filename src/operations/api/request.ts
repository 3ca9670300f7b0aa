/** Turns an evaluated `api` config into the request to send. */

import { toBase64 } from '../../engine/base/bytes/base64.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import { toMs } from '../../engine/base/time/duration.ts';
import type { HttpRequest } from '../../engine/host/http.port.ts';
import type { OperationContext } from '../../engine/operation/operation.port.ts';
import { encodeForm, toBody } from './body.ts';
import { CONTENT_TYPE_OF_MULTIPART } from './check-config.ts';
import type { ApiAuth, ApiConfig } from './config.ts';

export const DEFAULT_TIMEOUT_MS = 30_000;

/** The request to send. All values in `headers` may be secret. */
export type ApiRequest = Required<Pick<HttpRequest, 'method' | 'url' | 'headers' | 'timeoutMs' | 'signal'>> &
  Pick<HttpRequest, 'body'>;

/**
 * The request of an attempt. It has the headers `Idempotency-Key` and `X-Ensemble-Hops`, unless the config sets them.
 *
 * @throws OrchestratorError `INVALID_REQUEST` if the url is not an absolute URL, or the body can't be sent as the config describes it
 */
export function toApiRequest({ config, idempotencyKey, signal, execution }: OperationContext<ApiConfig>): ApiRequest {
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
  const ownType = Object.keys(headers).find((name) => name.toLowerCase() === 'content-type');
  if (config.multipart && ownType !== undefined) {
    throw new OrchestratorError('INVALID_REQUEST', CONTENT_TYPE_OF_MULTIPART, { details: { reason: 'header' } });
  }
  const body = toBody(config, ownType && headers[ownType], idempotencyKey);
  if (body?.contentType !== undefined) add('Content-Type', body.contentType);
  if (config.auth) add('Authorization', authorization(config.auth));
  add('Idempotency-Key', idempotencyKey);
  add('X-Ensemble-Hops', String(execution.hops + 1));
  return {
    method: (config.method ?? 'GET').toUpperCase(),
    url: withParameters(config),
    headers,
    body: body?.content,
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

function authorization(auth: ApiAuth): string {
  return auth.type === 'bearer'
    ? `Bearer ${auth.token}`
    : `Basic ${toBase64(new TextEncoder().encode(`${auth.username}:${auth.password}`))}`;
}
