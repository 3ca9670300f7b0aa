/** The `api` operation: one outbound HTTP call through the HTTP port. */

import type { Json } from '../engine/json.ts';
import type { HttpClient } from '../engine/ports/http.ts';
import type { Operation } from '../engine/ports/operation.ts';
import { readBody, statusFailure } from './api/answer.ts';
import { type ApiConfig, apiConfig, checkApiConfig, isExpected } from './api/config.ts';
import { toApiRequest } from './api/request.ts';

export interface ApiOperationOptions {
  readonly http: HttpClient;
  /** Unix ms; read only to turn a `Retry-After` date into a wait. Default the system's clock. */
  readonly now?: () => number;
}

/** What an `api` agent gives. */
export interface ApiOutput {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** A JSON value, text, `{ content, contentType, encoding: 'base64' }` for binary types, or null when empty. */
  readonly body: Json;
}

/**
 * Makes the `api` operation. Its agent fails outside 2xx (or `expect`) with `AGENT_FAILED`, `details.status`, and for a
 * `Retry-After` header `details.retryAfterMs`; retryable for 408, 425, 429 and 5xx. What the HTTP port throws is passed on.
 *
 * @param options - the HTTP port, and the wall clock
 */
export function apiOperation(options: ApiOperationOptions): Operation<ApiConfig> {
  const { http, now = Date.now } = options;
  return Object.freeze<Operation<ApiConfig>>({
    name: 'api',
    config: apiConfig,
    check: checkApiConfig,
    async run({ config, idempotencyKey, signal }): Promise<ApiOutput> {
      const request = toApiRequest(config, idempotencyKey, signal);
      const response = await http.send(request);
      if (!isExpected(response.status, config.expect)) throw statusFailure(request, response, now());
      return { status: response.status, headers: response.headers, body: readBody(request, response) };
    },
  });
}
