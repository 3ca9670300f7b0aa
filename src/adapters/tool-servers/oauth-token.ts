/** Obtains and keeps the token of a tool server: OAuth client credentials (RFC 6749, section 4.4). */

import { toBase64 } from '../../engine/base/bytes/base64.ts';
import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import type { Json } from '../../engine/base/json/json.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { HttpClient } from '../../engine/host/http.port.ts';
import type { ToolServerAuth } from '../../engine/operation/tool-server.port.ts';
import { readAnswer, statusFailure } from './read-answer.ts';
import { sharedTask } from './shared-task.ts';

export interface TokenSourceDependencies {
  readonly auth: Extract<ToolServerAuth, { readonly type: 'oauth' }>;
  /** The name of the tool server, for messages. */
  readonly server: string;
  readonly http: HttpClient;
  readonly clock: Clock;
}

interface Token {
  readonly value: string;
  /** On the monotonic clock. */
  readonly renewAt: number;
  readonly refreshToken: string | undefined;
}

const MAX_ANSWER_BYTES = 64 * 1024;
const RENEW_BEFORE_MS = 30_000;
const DEFAULT_LIFETIME_MS = 3_600_000;
const MAX_LIFETIME_MS = 86_400_000;
/** The signal ends the request earlier. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
const OAUTH_ERRORS =
  /^(?:invalid_(?:request|client|grant|scope)|unauthorized_client|unsupported_grant_type|temporarily_unavailable)$/;

/**
 * @returns a function that gives a token. Parallel calls share one request for it
 */
export function oauthToken(
  dependencies: TokenSourceDependencies,
): (isRefused: (token: string) => boolean, signal: AbortSignal) => Promise<string> {
  const { clock } = dependencies;
  let current: Token | undefined;
  const obtain = sharedTask(async (signal) => {
    current = await renew(dependencies, current?.refreshToken, signal);
    return current.value;
  });
  return async (isRefused, signal) => {
    const isFresh = current !== undefined && clock.monotonic() < current.renewAt && !isRefused(current.value);
    return isFresh && current ? current.value : obtain(signal);
  };
}

/** With the refresh token, if there is one and the server still takes it. */
async function renew(
  dependencies: TokenSourceDependencies,
  refreshToken: string | undefined,
  signal: AbortSignal,
): Promise<Token> {
  if (refreshToken !== undefined) {
    try {
      return await request(dependencies, { grant_type: 'refresh_token', refresh_token: refreshToken }, signal);
    } catch (error) {
      if (signal.aborted || !isOrchestratorError(error) || error.retryable) throw error;
    }
  }
  return request(dependencies, { grant_type: 'client_credentials' }, signal);
}

async function request(
  { auth, server, http, clock }: TokenSourceDependencies,
  fields: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Token> {
  const began = clock.monotonic();
  const response = await http.send({
    method: 'POST',
    url: auth.tokenUrl,
    headers: {
      Accept: 'application/json',
      Authorization: `Basic ${toBase64(new TextEncoder().encode(`${formEncode(auth.clientId)}:${formEncode(auth.clientSecret)}`))}`,
      'Content-Type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams(fields).toString(),
    maxResponseBytes: MAX_ANSWER_BYTES,
    timeoutMs: NO_TIMEOUT_MS,
    signal,
  });
  const { origin, pathname } = new URL(auth.tokenUrl);
  const what = `the request for a token of tool server \`${server}\`, POST ${origin}${pathname},`;
  const isOk = response.status >= 200 && response.status < 300;
  if (!isOk) {
    const error = errorCode(response.body);
    const because = error === undefined ? undefined : `the error is ${error}`;
    throw statusFailure(what, response, { now: clock.now(), reason: 'token', ...(because && { because }) });
  }
  return toToken(readAnswer(what, response), began, fields.refresh_token, what);
}

function formEncode(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}

/** Only the codes of the standard: any other text might repeat what was sent. */
function errorCode(body: Uint8Array): string | undefined {
  try {
    const { error } = JSON.parse(new TextDecoder().decode(body));
    return OAUTH_ERRORS.test(error) ? error : undefined;
  } catch {
    return undefined;
  }
}

function toToken(answer: Json, began: number, oldRefreshToken: string | undefined, what: string): Token {
  const given = (typeof answer === 'object' && answer !== null ? answer : {}) as Readonly<Record<string, unknown>>;
  const { access_token: value, token_type: type = 'bearer', expires_in: seconds, refresh_token: refreshToken } = given;
  const refuse = (found: string) =>
    new OrchestratorError('AGENT_FAILED', `${what} was answered with ${found}`, { details: { reason: 'token' } });
  if (typeof value !== 'string' || value === '') throw refuse('no `access_token`');
  if (!/^[!-~]+$/.test(value)) throw refuse('an `access_token` that a header can not carry');
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
    throw refuse('a `token_type` that is not `Bearer`, the only one that is supported');
  const lifetime = lifetimeOf(seconds);
  return {
    value,
    renewAt: began + lifetime - Math.min(RENEW_BEFORE_MS, lifetime / 2),
    refreshToken: typeof refreshToken === 'string' && refreshToken !== '' ? refreshToken : oldRefreshToken,
  };
}

/** How long a token counts as valid, ms: an hour without a readable number, at most a day, and only for one call at 0 and below. */
function lifetimeOf(given: unknown): number {
  const seconds = typeof given === 'string' && given.trim() !== '' ? Number(given) : given;
  if (typeof seconds !== 'number' || Number.isNaN(seconds)) return DEFAULT_LIFETIME_MS;
  return Math.min(Math.max(seconds * 1000, 0), MAX_LIFETIME_MS);
}
