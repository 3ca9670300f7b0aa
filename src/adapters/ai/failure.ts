/** Turns what an AI SDK provider throws into an error of the library: whether trying again can help, and no secret in it. */

import { isOrchestratorError, messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import { isRetryableStatus, parseRetryAfter } from '../../engine/host/retry-after.ts';

/** The fields of `APICallError` and of the errors inside streams that are read. The others hold the URL and the body of the request. */
interface Thrown {
  readonly name?: unknown;
  readonly type?: unknown;
  readonly statusCode?: unknown;
  readonly isRetryable?: unknown;
  readonly responseHeaders?: unknown;
  readonly cause?: unknown;
}

/**
 * @param label - the model in messages
 * @param now - Unix ms, to read a `Retry-After` date
 * @returns `AGENT_FAILED`, or the error of the library that the provider's `fetch` threw
 */
export function toFailure(thrown: unknown, label: string, now: number): OrchestratorError {
  const own = ownError(thrown);
  if (own !== undefined) return own;
  const error = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as Thrown;
  const name = typeof error.name === 'string' ? error.name : '';
  if (MALFORMED.has(name)) return malformedAnswer(label, undefined);
  if (MISTAKES.has(name)) return fail(`${label} can't be called: ${providerText(thrown)}`, {}, false);
  const status = statusOf(error);
  if (status === undefined) return withoutStatus(error, thrown, name, label);
  if (status >= 200 && status < 300) return malformedAnswer(label, status);
  const retryAfterMs = waitOf(error, now);
  const details = { status, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  // A provider repeats the key that it refuses, or a part of it.
  const refusedKey = status === 401 || status === 403;
  const what = refusedKey ? 'it refused the API key; check the key and what it may do' : providerText(thrown);
  const again = error.isRetryable === true || isRetryableStatus(status);
  return fail(`${label} answered ${status}: ${what}`, details, again && !refusedKey);
}

/** Errors of the SDK about an answer that can't be read. Their messages quote the answer. */
const MALFORMED: ReadonlySet<string> = new Set([
  'AI_EmptyResponseBodyError',
  'AI_InvalidResponseDataError',
  'AI_JSONParseError',
  'AI_NoContentGeneratedError',
  'AI_TypeValidationError',
]);

/** Errors of the SDK about the call or the settings: the same call fails again. */
const MISTAKES: ReadonlySet<string> = new Set([
  'AI_InvalidArgumentError',
  'AI_InvalidPromptError',
  'AI_LoadAPIKeyError',
  'AI_LoadSettingError',
  'AI_NoSuchModelError',
  'AI_NoSuchProviderReferenceError',
  'AI_UnsupportedFunctionalityError',
]);

/** The kinds of errors inside streams that pass. */
const PASSING = /overloaded|rate_limit|timeout|unavailable|^(?:api|server|internal)\w*error$/;

function withoutStatus(error: Thrown, thrown: unknown, name: string, label: string): OrchestratorError {
  if (name === 'AI_APICallError' && error.isRetryable === true) {
    const code = errorCode(thrown);
    const message = `${label} could not be reached: the connection broke or could not be made${code ? ` (${code})` : ''}`;
    return fail(message, { reason: 'connection', ...(code ? { code } : {}) }, true);
  }
  const type = typeof error.type === 'string' ? error.type : undefined;
  // `APICallError` says false whenever there is no status: it does not know.
  const known = name === 'AI_APICallError' ? undefined : error.isRetryable;
  const again = typeof known === 'boolean' ? known : type === undefined || PASSING.test(type);
  return fail(`${label} failed: ${providerText(thrown)}`, {}, again);
}

function malformedAnswer(label: string, status: number | undefined): OrchestratorError {
  const details = { ...(status === undefined ? {} : { status }), reason: 'malformed' };
  return fail(`${label} answered with something that the provider can't read; check its base URL`, details, true);
}

function fail(message: string, details: Readonly<Record<string, unknown>>, retryable: boolean): OrchestratorError {
  return new OrchestratorError('AGENT_FAILED', message, { details, retryable });
}

const MAX_DEPTH = 5;

/** An error of this library that a provider's `fetch` threw, and that the provider passed on, perhaps as a cause. */
function ownError(thrown: unknown): OrchestratorError | undefined {
  let error = thrown;
  for (let depth = 0; depth < MAX_DEPTH && typeof error === 'object' && error !== null; depth++) {
    if (isOrchestratorError(error)) return error;
    error = (error as Thrown).cause;
  }
  return undefined;
}

function errorCode(thrown: unknown): string | undefined {
  let error = thrown;
  for (let depth = 0; depth < MAX_DEPTH && typeof error === 'object' && error !== null; depth++) {
    const { code, cause } = error as { readonly code?: unknown; readonly cause?: unknown };
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,60}$/.test(code)) return code;
    error = cause;
  }
  return undefined;
}

function statusOf({ statusCode }: Thrown): number | undefined {
  return typeof statusCode === 'number' && statusCode >= 100 && statusCode <= 599 ? statusCode : undefined;
}

// OpenAI sends the wait in ms, too.
function waitOf({ responseHeaders }: Thrown, now: number): number | undefined {
  const headers = (responseHeaders ?? {}) as Readonly<Record<string, string | undefined>>;
  const exact = headers['retry-after-ms'];
  const isExact = exact !== undefined && /^\d{1,8}$/.test(exact);
  return isExact ? Number(exact) : parseRetryAfter(headers['retry-after'], now);
}

const MAX_TEXT = 500;

// What the provider says, on one line. What looks like a key is masked, and a URL loses its query, before the text is cut.
function providerText(thrown: unknown): string {
  const text = messageOf(thrown)
    .replace(/\s+/g, ' ')
    .replace(/(https?:\/\/[^\s?#"'<>]*)[?#][^\s"'<>]*/gi, '$1')
    .replace(/(https?:\/\/)[^\s/?#"'<>@]*@/gi, '$1')
    .replace(/\b(Bearer|Basic) [^\s"',;]+/gi, '$1 ***')
    .replace(/\b(?:sk|pk|rk|gsk|xai|hf|r8|key|api|AIza|AKIA|csk|pplx|cfut|fw|nvapi|tvly)[-_]?[\w*-]{12,}/gi, '***')
    .trim();
  if (text === '') return 'it gave no reason';
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}...` : text;
}
