/** The `api` operation: one outbound HTTP call through the HTTP port. */

import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import type { HttpClient, HttpResponse } from '../../engine/host/http.port.ts';
import { checkBySchema, describeProblems } from '../../engine/json-schema/check-by-schema.ts';
import type { Operation, OperationContext } from '../../engine/operation/operation.port.ts';
import { type ApiOutput, describeRequest, readBody, statusFailure } from './answer.ts';
import { checkApiConfig } from './check-config.ts';
import { type ApiConfig, apiConfig, isExpected } from './config.ts';
import { API_NEEDS, apiOutput } from './output.ts';
import { type PagedOutput, readPages } from './paginate.ts';
import { type ApiRequest, toApiRequest } from './request.ts';

export interface ApiOperationOptions {
  readonly http: HttpClient;
  /** Unix ms. Read only to turn a `Retry-After` date into a wait. Default: the system's clock. */
  readonly now?: (() => number) | undefined;
}

/**
 * Creates the `api` operation. For a status outside 2xx (or `expect`), the agent fails with `AGENT_FAILED` and `details.status`, and
 * with `details.retryAfterMs` if the answer has a `Retry-After` header. The failure is retryable for 408, 425, 429 and 5xx. An
 * `OrchestratorError` of the HTTP port is passed on. Any other error is logged.
 *
 * @param options - the HTTP port, and the wall clock
 */
export function apiOperation(options: ApiOperationOptions): Operation<ApiConfig> {
  const { http, now = Date.now } = options;
  return Object.freeze<Operation<ApiConfig>>({
    name: 'api',
    ignoresInput: true,
    get config() {
      return apiConfig();
    },
    check: checkApiConfig,
    output: apiOutput,
    needsValues: () => API_NEEDS,
    async run(context): Promise<ApiOutput | PagedOutput> {
      const { config, idempotencyKey, signal } = context;
      const call = async (request: ApiRequest): Promise<ApiOutput> => {
        let response: HttpResponse;
        try {
          response = await http.send({ ...request, partialBody: true });
        } catch (thrown) {
          throw signal.aborted ? thrown : toClientFailure(thrown, request, context);
        }
        if (!isExpected(response.status, config.expect)) throw statusFailure(request, response, now());
        if (response.bodyFailure) throw response.bodyFailure;
        return { status: response.status, headers: response.headers, body: readBody(request, response) };
      };
      const request = toApiRequest(context);
      const output = await (config.paginate
        ? readPages(request, config.paginate, idempotencyKey, call)
        : call(request));
      return config.response ? { ...output, body: checkBody(output, config.response, request) } : output;
    },
  });
}

/** @returns the body with defaults @throws INVALID_OUTPUT for a body that does not fit; INVALID_INPUT for a wrong schema */
function checkBody({ body, status }: ApiOutput | PagedOutput, schema: JsonObject, request: ApiRequest): Json {
  const checked = checkBySchema(schema, ['response'], 'the body')(body as Json);
  if ('value' in checked) return checked.value;
  const problems = describeProblems(checked.problems);
  const message = `${describeRequest(request)} answered ${status} with a body that does not fit \`response\`: ${problems}`;
  throw new OrchestratorError('INVALID_OUTPUT', message, { details: { status, issues: checked.problems } });
}

// The clients of this library throw an OrchestratorError. The message of another client may contain addresses and headers, so only the
// log receives it.
function toClientFailure(thrown: unknown, request: ApiRequest, { logger }: OperationContext<ApiConfig>): unknown {
  if (isOrchestratorError(thrown)) return thrown;
  logger.error({ err: thrown }, 'the HTTP client failed');
  const message = `${describeRequest(request)} failed in the HTTP client; the log has its error`;
  return new OrchestratorError('AGENT_FAILED', message, { cause: thrown, retryable: true });
}
