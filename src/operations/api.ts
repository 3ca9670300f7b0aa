/** The `api` operation: one outbound HTTP call through the HTTP port. */

import { isOrchestratorError, OrchestratorError } from '../engine/errors.ts';
import type { Json } from '../engine/json.ts';
import type { HttpClient, HttpResponse } from '../engine/ports/http.ts';
import type { Operation, OperationContext } from '../engine/ports/operation.ts';
import { describe, readBody, statusFailure } from './api/answer.ts';
import { type ApiConfig, apiConfig, checkApiConfig, isExpected } from './api/config.ts';
import { type ApiRequest, toApiRequest } from './api/request.ts';

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
 * `Retry-After` header `details.retryAfterMs`; retryable for 408, 425, 429 and 5xx. An error of the library's that the HTTP port throws is passed on; any other is logged.
 *
 * @param options - the HTTP port, and the wall clock
 */
export function apiOperation(options: ApiOperationOptions): Operation<ApiConfig> {
  const { http, now = Date.now } = options;
  return Object.freeze<Operation<ApiConfig>>({
    name: 'api',
    config: apiConfig,
    check: checkApiConfig,
    async run(context): Promise<ApiOutput> {
      const { config, idempotencyKey, signal } = context;
      const request = toApiRequest(config, idempotencyKey, signal);
      let response: HttpResponse;
      try {
        response = await http.send(request);
      } catch (thrown) {
        throw signal.aborted ? thrown : toClientFailure(thrown, request, context);
      }
      if (!isExpected(response.status, config.expect)) throw statusFailure(request, response, now());
      return { status: response.status, headers: response.headers, body: readBody(request, response) };
    },
  });
}

// The clients of this library throw errors of its own; what another one says may hold addresses and headers, and is for the log.
function toClientFailure(
  thrown: unknown,
  request: ApiRequest,
  { logger, execution }: OperationContext<ApiConfig>,
): unknown {
  if (isOrchestratorError(thrown)) return thrown;
  logger.error({ err: thrown, executionId: execution.id, agent: execution.agent }, 'the HTTP client failed');
  const message = `${describe(request)} failed in the HTTP client; the log has what it said`;
  return new OrchestratorError('AGENT_FAILED', message, { cause: thrown, retryable: true });
}
