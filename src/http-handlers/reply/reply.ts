/** Replies: what a stage of the pipeline returns, without the headers that every response has. */

import { type ErrorCode, isOrchestratorError, type OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import { BODY_WAS_READ } from '../../engine/host/host.port.ts';
import { STATUS } from './status.ts';

/** The content type of server-sent events. */
export const EVENT_STREAM = 'text/event-stream; charset=utf-8';

export interface Reply {
  readonly status: number;
  /** Becomes the JSON body. Without it the response has no body, unless there is a page or a stream. */
  readonly json?: unknown;
  /** A whole page, or another text whose content type is in `headers`. */
  readonly html?: string;
  /** Server-sent events. */
  readonly stream?: ReadableStream<Uint8Array>;
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The messages that replace those of internal failures, which are for the log alone. */
const FIXED_MESSAGES: Readonly<Record<string, string>> = {
  INTERNAL: 'something went wrong inside the service; its log has the details under this X-Request-Id',
  NOT_CONFIGURED: 'the service is not set up for this; its log has the details under this X-Request-Id',
};
const MAX_MESSAGE = 2_000;
const MAX_ISSUES = 250;

/** Whether the response hides what was thrown, so that the log must have it. */
export function isHidden(thrown: unknown): boolean {
  return !isOrchestratorError(thrown) || thrown.code in FIXED_MESSAGES;
}

/** A person who tries out a webhook sees the response first. The text says nothing about the service. */
function isHostMistake(thrown: unknown): boolean {
  return isOrchestratorError(thrown) && thrown.message === BODY_WAS_READ;
}

/** The specification's error body: `{ error: { code, message, ...extra } }`. Anything but an OrchestratorError becomes `INTERNAL`. */
export function errorReply(thrown: unknown, headers?: Reply['headers']): Reply {
  const code = isOrchestratorError(thrown) ? thrown.code : 'INTERNAL';
  const fixed = isHostMistake(thrown) ? undefined : FIXED_MESSAGES[code];
  if (fixed !== undefined) return { status: STATUS[code], json: { error: { code, message: fixed } }, headers };
  const { message, details } = thrown as OrchestratorError;
  const { code: _code, message: _message, ...extra } = boundDetails(details);
  const text = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}...` : message;
  return {
    status: STATUS[code],
    json: { error: { code, message: text, ...extra } },
    headers: { ...ownHeaders(thrown as OrchestratorError), ...headers },
  };
}

const PROBLEM = 'application/problem+json';
/** The phrases of the statuses that errors have (RFC 9110). */
const TITLES: Readonly<Record<number, string>> = {
  ...{ 400: 'Bad Request', 401: 'Unauthorized', 403: 'Forbidden', 404: 'Not Found', 405: 'Method Not Allowed' },
  ...{ 409: 'Conflict', 413: 'Content Too Large', 415: 'Unsupported Media Type', 422: 'Unprocessable Content' },
  ...{ 429: 'Too Many Requests', 500: 'Internal Server Error', 503: 'Service Unavailable', 504: 'Gateway Timeout' },
};

/** An error as a problem of RFC 9457, for a caller whose `Accept` names that type. Other replies stay as they are. */
export function asProblem(reply: Reply, accept: string | undefined): Reply {
  const { error } = (reply.json ?? {}) as { readonly error?: JsonObject };
  if (error?.code === undefined || !takesProblem(accept)) return reply;
  // RFC 9457 has a `status` of its own.
  const { message: detail, status: executionStatus, ...extra } = error;
  const problem = {
    ...extra,
    ...(executionStatus !== undefined && { executionStatus }),
    type: 'about:blank',
    title: TITLES[reply.status] ?? String(error.code),
    status: reply.status,
    detail,
  };
  return { ...reply, json: problem, headers: { ...reply.headers, 'content-type': `${PROBLEM}; charset=utf-8` } };
}

/** Whether an `Accept` names the type, and not with `q=0`. */
function takesProblem(accept = ''): boolean {
  const given = accept
    .toLowerCase()
    .split(',')
    .find((one) => one.trim().startsWith(PROBLEM));
  return given !== undefined && !/;\s*q=0(\.0*)?\s*(;|$)/.test(given);
}

/** The error body of inbound webhooks: `{ error: string }`. */
export function withPlainError(json: unknown): unknown {
  const { error } = json as { readonly error?: { readonly message?: string } };
  return error?.message === undefined ? json : { error: error.message };
}

const LIMITS: readonly string[] = [
  'RATE_LIMIT_EXCEEDED',
  'QUOTA_EXCEEDED',
  'CONCURRENT_LIMIT_EXCEEDED',
] satisfies ErrorCode[];

function ownHeaders({ code, details, retryable }: OrchestratorError): Reply['headers'] {
  if (code === 'FORBIDDEN' && details.requiredScope !== undefined)
    return { 'www-authenticate': `Bearer error="insufficient_scope", scope="${details.requiredScope}"` };
  if (code === 'OVERLOADED' || (code === 'CONFLICT' && retryable)) return { 'retry-after': '1' };
  return LIMITS.includes(code) ? { 'retry-after': String(details.retryAfter) } : undefined;
}

// A request of a megabyte may be wrong in a hundred thousand places: the response names the first ones.
function boundDetails(details: OrchestratorError['details']): OrchestratorError['details'] {
  const { issues } = details;
  return Array.isArray(issues) && issues.length > MAX_ISSUES
    ? { ...details, issues: issues.slice(0, MAX_ISSUES) }
    : details;
}
