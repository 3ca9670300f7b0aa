/** The parts of an exchange that all HTTP clients share: the deadline, the headers of the answer, and the errors. */

import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import { underDeadline as withinTime } from '../../engine/base/time/under-deadline.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { HttpClient, HttpResponse } from '../../engine/host/http.port.ts';
import type { AdmittedRequest } from './admit-request.ts';
import { CallbackFailure } from './body-collector.ts';

/** Takes what is known of an answer before its body is read. */
export type OnHead = (known: () => HttpResponse) => void;

/**
 * Runs an exchange until it settles, the caller's signal aborts, or `timeoutMs` passes. Aborts the signal of `start` unless the
 * exchange succeeds. With `partialBody`, what is known of the answer is the result when its body fails.
 *
 * @throws the reason of the caller's signal, `TIMEOUT` (retryable), or the error of `start`
 */
export function underDeadline(
  request: AdmittedRequest,
  start: (signal: AbortSignal, onHead: OnHead) => Promise<HttpResponse>,
): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    const { signal: outer, timeoutMs, partialBody } = request;
    if (outer?.aborted) return reject(outer.reason);
    const controller = new AbortController();
    let known: (() => HttpResponse) | undefined;
    const settle = () => {
      clearTimeout(timer);
      outer?.removeEventListener('abort', onAbort);
    };
    // Rejects first: a fetch that ignores its signal must not delay the caller.
    const end = (reason: unknown) => {
      settle();
      if (known && partialBody && isOrchestratorError(reason)) resolve({ ...known(), bodyFailure: reason });
      else reject(reason);
      controller.abort(reason);
    };
    const onAbort = () => {
      known = undefined;
      end(outer?.reason);
    };
    const timer = setTimeout(() => end(timeoutFailure(request.label, timeoutMs)), timeoutMs);
    outer?.addEventListener('abort', onAbort, { once: true });
    const onHead: OnHead = (head) => {
      known = head;
    };
    start(controller.signal, onHead).then((value) => {
      settle();
      resolve(value);
    }, end);
  });
}

function timeoutFailure(label: string, timeoutMs: number): OrchestratorError {
  const message = `${label} took longer than ${timeoutMs} ms; raise its timeout or look at the peer`;
  return new OrchestratorError('TIMEOUT', message, { details: { timeoutMs }, retryable: true });
}

/**
 * A client whose requests also end on a clock: one that hangs ends on the manual clock of a test, and one that ignores `timeoutMs` ends
 * too.
 */
export function onClock(http: HttpClient, { setTimer }: Clock): HttpClient {
  return {
    send(request) {
      const { method, url, timeoutMs, signal } = request;
      if (timeoutMs === undefined) return http.send(request);
      const late = () => timeoutFailure(`${method} ${url.split('?')[0]}`, timeoutMs);
      return withinTime({ timeoutMs, setTimer, late, ...(signal && { signal }) }, (within) =>
        http.send({ ...request, signal: within }),
      );
    },
  };
}

// These headers describe the connection, not the answer, and differ between runtimes.
const HOP_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * The headers of an answer, in the form of the port.
 *
 * @param decoded - whether the body was decompressed. Then its encoding and length are not valid any more, and are left out
 */
export function collectHeaders(pairs: Iterable<readonly [string, string]>, decoded: boolean): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of pairs) {
    const lower = name.toLowerCase();
    if (HOP_HEADERS.has(lower) || (decoded && (lower === 'content-encoding' || lower === 'content-length'))) continue;
    headers[lower] = Object.hasOwn(headers, lower) ? `${headers[lower]}, ${value}` : value;
  }
  return headers;
}

export type ContentCoding = 'gzip' | 'deflate' | 'br';

const CODINGS: Readonly<Record<string, ContentCoding>> = {
  gzip: 'gzip',
  'x-gzip': 'gzip',
  deflate: 'deflate',
  br: 'br',
};

/**
 * The content coding of an answer's body. Every client refuses a chain of codings: Node would decode up to five of them, Deno and Bun
 * would decode none, and a chain multiplies the size to which a small answer can grow.
 *
 * @throws OrchestratorError `AGENT_FAILED`, `details.reason` `encoding`
 */
export function contentCoding(
  request: AdmittedRequest,
  status: number,
  header: string | null | undefined,
): ContentCoding | undefined {
  if (request.method === 'HEAD' || status === 204 || status === 304) return undefined;
  const names = (header ?? '').split(',').map((name) => name.trim().toLowerCase());
  const [name, ...more] = names.filter((item) => item !== '' && item !== 'identity');
  if (name === undefined) return undefined;
  if (more.length === 0 && Object.hasOwn(CODINGS, name)) return CODINGS[name];
  const what =
    more.length > 0
      ? `a chain of ${more.length + 1} content codings`
      : `the content coding ${JSON.stringify(name.slice(0, 40))}`;
  throw encodingFailure(request, what);
}

/** The failure for an answer whose content coding is not supported. */
export function encodingFailure(request: AdmittedRequest, what: string): OrchestratorError {
  return exchangeFailure(request, 'encoding', `answered in ${what}, which is not read here; expected gzip or br alone`);
}

/** The failure of an exchange that broke: `AGENT_FAILED`, retryable. */
export function exchangeFailure(
  request: AdmittedRequest,
  reason: string,
  what: string,
  code?: string,
): OrchestratorError {
  const details = code === undefined ? { reason } : { reason, code };
  return new OrchestratorError('AGENT_FAILED', `${request.label} ${what}`, { details, retryable: true });
}

/**
 * Converts an error that a runtime threw during an exchange; what `onChunk` threw stays as it is. Only its error code is kept, because the messages of runtimes contain the
 * whole URL with its query.
 */
export function toExchangeFailure(request: AdmittedRequest, thrown: unknown): unknown {
  if (thrown instanceof CallbackFailure) return thrown.thrown;
  if (isOrchestratorError(thrown)) return thrown;
  const code = errorCode(thrown);
  const malformed = code !== undefined && MALFORMED.test(code);
  const what = malformed
    ? 'answered with something that is not valid HTTP or does not decode'
    : 'failed: the connection broke or could not be made';
  return exchangeFailure(
    request,
    malformed ? 'malformed' : 'connection',
    code === undefined ? what : `${what} (${code})`,
    code,
  );
}

const MALFORMED =
  /^(?:HPE_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_|Z_|ERR_+(?:BROTLI|ERROR_FORMAT|PADDING)|ERR_INVALID_CHAR|ERR_HTTP)/;

function errorCode(thrown: unknown): string | undefined {
  let error = thrown;
  for (let depth = 0; depth < 5 && typeof error === 'object' && error !== null; depth++) {
    const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown };
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,60}$/.test(code)) return code;
    error = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  }
  return undefined;
}
