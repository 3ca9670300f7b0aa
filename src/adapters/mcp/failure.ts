/** Turns what goes wrong with an MCP server into errors of this library, without secrets. */

import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import { maskSent } from '../../engine/host/peer-text.ts';
import { isRetryableStatus } from '../../engine/host/retry-after.ts';
import type { CallScope } from './call-scope.ts';

const MAX_TEXT = 1000;
/** JSON-RPC: the server failed. Every other code refuses the request. */
const INTERNAL_ERROR = -32603;
const UNSUPPORTED_VERSION = -32022;

/** What is known about the server when a call of it fails. */
interface FailureContext {
  readonly server: string;
  /** What was sent and may not be shown. */
  readonly secrets: readonly string[];
  readonly retryAfterMs?: number | undefined;
}

/** @returns the error to throw for what the client package threw */
export function toFailure(thrown: unknown, server: string, scope: CallScope): OrchestratorError {
  const context = { server, secrets: scope.secrets, retryAfterMs: scope.retryAfterMs };
  const own = ownError(thrown);
  if (own) return own;
  const { code, message, data } = thrown as {
    readonly code?: unknown;
    readonly message?: unknown;
    readonly data?: unknown;
  };
  const status = httpStatus(thrown);
  if (status !== undefined) return statusFailure(status, (data as { readonly text?: unknown }).text, context);
  if (typeof code === 'number') return protocolFailure(code, String(message), context);
  if (typeof code === 'string') return packageFailure(code, context);
  const what = 'answered with something that is not valid MCP, or the MCP client failed; the log has the error';
  return agentFailed(context, what, { reason: 'malformed', cause: thrown });
}

// The client package puts the error of an exchange into `cause` while it looks for the version of the server.
function ownError(thrown: unknown): OrchestratorError | undefined {
  let error = thrown;
  for (let depth = 0; depth < 5 && typeof error === 'object' && error !== null; depth++) {
    if (isOrchestratorError(error)) return error;
    error = (error as { readonly cause?: unknown }).cause;
  }
  return undefined;
}

/** The HTTP status with which the server refused a request, if that is why the client package threw. */
function httpStatus(thrown: unknown): number | undefined {
  const { code, data } = (thrown ?? {}) as { readonly code?: unknown; readonly data?: { readonly status?: unknown } };
  // The code of an error that the server wrote is a number. Its `data` may be anything.
  return typeof code === 'string' && typeof data?.status === 'number' ? data.status : undefined;
}

/** What servers answer that no longer speak the form of a connection. */
const OTHER_FORM = [400, 404, 405, 406, 415, 422];

/**
 * Whether the server does not know the session or the version of the connection, so that a new connection can help.
 * @param connection - without it, only what says so itself counts
 */
export function needsNewConnection(
  thrown: unknown,
  connection?: { readonly hasSession: boolean; readonly isOld: boolean },
): boolean {
  const status = httpStatus(thrown);
  // 404 is the standard's answer. Servers also answer 400 for a session that they don't know.
  if (status === 404 || status === 400) return connection?.hasSession === true || connection?.isOld === true;
  if (status !== undefined) return connection?.isOld === true && OTHER_FORM.includes(status);
  return (thrown as { readonly code?: unknown } | null)?.code === UNSUPPORTED_VERSION;
}

function statusFailure(status: number, text: unknown, context: FailureContext): OrchestratorError {
  const { retryAfterMs } = context;
  const body = typeof text === 'string' && text !== '' ? maskToolText(text, context.secrets) : undefined;
  return new OrchestratorError('AGENT_FAILED', `tool server \`${context.server}\` answered ${status}${hint(status)}`, {
    details: {
      status,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(body === undefined ? {} : { body }),
    },
    retryable: isRetryableStatus(status),
  });
}

function hint(status: number): string {
  if (status >= 300 && status < 400) return '; redirects are not followed, so set `url` to the final address';
  if (status === 401) return '; look at its `auth`';
  return status === 404 || status === 405 ? '; look at its `url`, which is the whole address of the MCP endpoint' : '';
}

function protocolFailure(code: number, message: string, context: FailureContext): OrchestratorError {
  // The text is the server's. Only about the output schema, it is the client package's.
  const text = maskToolText(message, context.secrets);
  return agentFailed(context, `refused the call: ${text} (${code})`, {
    reason: 'mcp-error',
    retryable: code === INTERNAL_ERROR,
  });
}

function packageFailure(code: string, context: FailureContext): OrchestratorError {
  const [what, retryable] = PACKAGE_FAILURES[code] ?? ['answered with something that is not valid MCP', false];
  return agentFailed(context, what, { reason: code.toLowerCase().replaceAll('_', '-'), retryable });
}

const PACKAGE_FAILURES: Readonly<Record<string, readonly [what: string, retryable: boolean]>> = {
  CONNECTION_CLOSED: ['did not answer before the connection was closed', true],
  NOT_CONNECTED: ['did not answer before the connection was closed', true],
  LIST_PAGINATION_EXCEEDED: ['lists its tools in too many pages', false],
  UNSUPPORTED_RESULT_TYPE: ['asks for input during the call, which a workflow can not give', false],
};

/** The failure of an answer that ended without the result of the call. */
export function incompleteAnswer(server: string): OrchestratorError {
  return agentFailed({ server }, 'ended its answer without the result of the call', {
    reason: 'incomplete',
    retryable: true,
  });
}

function agentFailed(
  { server }: Pick<FailureContext, 'server'>,
  what: string,
  { reason, retryable, cause }: { readonly reason: string; readonly retryable?: boolean; readonly cause?: unknown },
): OrchestratorError {
  const options = { details: { reason }, retryable: retryable ?? false, cause };
  return new OrchestratorError('AGENT_FAILED', `tool server \`${server}\` ${what}`, options);
}

function maskToolText(text: string, secrets: readonly string[]): string {
  return maskSent(text, secrets).slice(0, MAX_TEXT);
}
