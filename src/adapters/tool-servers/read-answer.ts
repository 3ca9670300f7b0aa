/** Reads the answers of tool servers and of the servers that give their tokens. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { copyJson, type Json, JsonError, MAX_DEPTH } from '../../engine/base/json/json.ts';
import { nestsTooDeep } from '../../engine/base/json/json-text.ts';
import type { HttpResponse } from '../../engine/host/http.port.ts';
import { decodeText, maskSent } from '../../engine/host/peer-text.ts';
import { isRetryableStatus, parseRetryAfter } from '../../engine/host/retry-after.ts';

const MAX_ERROR_BODY = 1000;

/**
 * The value of a JSON body, the text of any other one, or null for an empty body. A body without a content type is JSON if it can be.
 *
 * @param what - the request, for messages
 * @throws OrchestratorError `AGENT_FAILED`, not retryable: the server has handled the call
 */
export function readAnswer(what: string, { status, headers, body }: HttpResponse): Json {
  if (body.byteLength === 0) return null;
  const refuse = (reason: string, found: string) =>
    new OrchestratorError('AGENT_FAILED', `${what} answered ${status} with ${found}`, { details: { status, reason } });
  const text = decodeText(body);
  if (text === undefined) throw refuse('invalid-text', 'bytes that are not text in UTF-8; a tool answers JSON or text');
  const type = (headers['content-type']?.split(';')[0] ?? '').trim().toLowerCase();
  if (type === 'text/event-stream')
    throw refuse('event-stream', 'an event stream; a tool answers once, with JSON or text');
  if (type !== '' && type !== 'application/json' && !type.endsWith('+json')) return text;
  if (nestsTooDeep(text)) throw refuse('unsafe-json', `JSON nested deeper than ${MAX_DEPTH} levels`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    if (type === '') return text;
    throw refuse('invalid-json', 'a JSON content type and a body that is not JSON');
  }
  try {
    return copyJson(value);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw refuse('unsafe-json', `JSON that is refused: ${error.problem.message}`);
  }
}

/** Facts about a failed request in addition to its status. */
export interface FailureFacts {
  /** Unix ms. */
  readonly now: number;
  /** Why it failed, in words. */
  readonly because?: string;
  /** For `details`. */
  readonly reason?: string;
  /** What was sent and may be secret. With it, the answer's text is in `details.body`, and what was sent is masked. */
  readonly sent?: readonly string[];
}

/** The failure for a status that is not 2xx. */
export function statusFailure(what: string, response: HttpResponse, facts: FailureFacts): OrchestratorError {
  const { status } = response;
  const { now, reason, because = status >= 300 && status < 400 ? 'redirects are not followed' : undefined } = facts;
  const retryAfterMs = parseRetryAfter(response.headers['retry-after'], now);
  const body = facts.sent && errorText(response, facts.sent);
  return new OrchestratorError('AGENT_FAILED', `${what} answered ${status}${because ? `; ${because}` : ''}`, {
    details: {
      status,
      ...(reason !== undefined && { reason }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(body && { body }),
    },
    retryable: isRetryableStatus(status),
  });
}

function errorText({ body }: HttpResponse, sent: readonly string[]): string | undefined {
  const given = decodeText(body);
  const text = given === undefined ? undefined : maskSent(given, sent);
  return text !== undefined && text.length > MAX_ERROR_BODY ? `${text.slice(0, MAX_ERROR_BODY)}...` : text;
}
