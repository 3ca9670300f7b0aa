/** The failures of a model server. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { isMap } from '../../engine/base/json/is-map.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import type { HttpResponse } from '../../engine/host/http.port.ts';
import { maskSent } from '../../engine/host/peer-text.ts';
import { isRetryableStatus, parseRetryAfter } from '../../engine/host/retry-after.ts';
import { parseJson } from './chat-json.ts';

/** What failures say about a call. */
export interface ChatCall {
  /** The method and the address, without its query. */
  readonly label: string;
  /** What no message may contain. */
  readonly secrets: readonly string[];
}

const MAX_TEXT = 500;

/** The failure for a status outside 2xx. Retryable for 408, 409, 425, 429 and 5xx. */
export function statusFailure(call: ChatCall, response: HttpResponse, now: number): OrchestratorError {
  const { status } = response;
  const retryAfterMs = parseRetryAfter(response.headers['retry-after'], now);
  const text = new TextDecoder().decode(response.body);
  const said = errorText(parseJson(text)) ?? (/^\s*[<{]/.test(text) ? '' : text.trim());
  const limit = said.includes('max_completion_tokens') ? "; set `maxTokensField: 'max_completion_tokens'`" : '';
  const message = `${call.label} answered ${status}${said && `: ${maskModelText(said, call)}`}${hint(status)}${limit}`;
  return new OrchestratorError('AGENT_FAILED', message, {
    details: { status, ...(retryAfterMs !== undefined && { retryAfterMs }) },
    retryable: isRetryable(status),
  });
}

function hint(status: number): string {
  if (status === 401) return '; check the `apiKey` of the provider';
  return status === 404 ? '; check the `url` of the provider and the name of the model' : '';
}

/** The failure for an error inside an answer with a status of 2xx, as proxies and streams send it; undefined when there is none. */
export function errorInside(call: ChatCall, json: Json): OrchestratorError | undefined {
  const error = isMap(json) ? json.error : undefined;
  if (error === undefined || error === null) return undefined;
  const code = Number(isMap(error) ? (error.status ?? error.code) : undefined);
  const status = code >= 400 && code <= 599 ? code : undefined;
  const said = errorText(json) ?? '';
  return new OrchestratorError(
    'AGENT_FAILED',
    `${call.label} answered with an error${said && `: ${maskModelText(said, call)}`}`,
    {
      details: { reason: 'error-answer', ...(status !== undefined && { status }) },
      retryable: status === undefined || isRetryable(status),
    },
  );
}

/** The failure for an answer that can't be read. */
export function answerFailure(call: ChatCall, reason: string, what: string, retryable = false): OrchestratorError {
  return new OrchestratorError('AGENT_FAILED', `${call.label} answered with ${what}`, {
    details: { reason },
    retryable,
  });
}

function isRetryable(status: number): boolean {
  return status === 409 || isRetryableStatus(status);
}

function errorText(json: Json | undefined): string | undefined {
  if (!isMap(json)) return undefined;
  const error = isMap(json.error) ? json.error : (json as JsonObject);
  return [error.message, json.error, error.detail].find((text) => typeof text === 'string');
}

function maskModelText(text: string, { secrets }: ChatCall): string {
  const masked = maskSent(text, secrets);
  return masked.length > MAX_TEXT ? `${masked.slice(0, MAX_TEXT)}...` : masked;
}
