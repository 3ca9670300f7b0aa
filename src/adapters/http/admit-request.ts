/** Checks an outbound request before anything is sent, by the same rules for every HTTP client. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { HttpRequest } from '../../engine/host/http.port.ts';
import { headerProblem } from '../../engine/host/http-header.ts';
import { type AddressRules, portOf } from './address-rules.ts';

/** A checked request, in the normal form that clients send. */
export interface AdmittedRequest {
  /**
   * The request in messages: `GET https://host/path`, without the query. The path is not cut, because a message is cut only after
   * masking: a part of a secret would not be found.
   */
  readonly label: string;
  readonly method: string;
  readonly url: URL;
  readonly port: number;
  /** Names in lower case, each once. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
  readonly timeoutMs: number;
  readonly maxResponseBytes: number;
  readonly signal: AbortSignal | undefined;
  readonly onChunk: HttpRequest['onChunk'];
  readonly partialBody: boolean;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_MAX_RESPONSE_BYTES = 10 * 1024 * 1024;
// With a longer delay, a platform's timer fires at once.
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
// More than servers accept, and small enough that a client's own work stays small.
const MAX_URL_LENGTH = 64 * 1024;
const MAX_HEADERS_LENGTH = 64 * 1024;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/;
const FORBIDDEN_METHODS: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK']);

/**
 * Checks a request and returns its normal form.
 *
 * @throws OrchestratorError `INVALID_REQUEST` (`details.reason`: `url`, `address`, `method`, `header`, `body` or `limit`)
 */
export function admitRequest(request: HttpRequest, rules: AddressRules): AdmittedRequest {
  const url = admitUrl(request.url);
  const method = request.method.toUpperCase();
  if (!TOKEN.test(method) || FORBIDDEN_METHODS.has(method)) {
    throw requestRefusal(
      'method',
      `method ${JSON.stringify(method.slice(0, 32))} can't be sent; use one such as GET or POST`,
    );
  }
  const label = `${method} ${url.origin}${url.pathname}`;
  const port = portOf(url);
  const problem = rules.hostProblem(url.hostname, port);
  if (problem !== undefined) throw refuseAddress({ label, url, port }, problem);
  if (request.body !== undefined && (method === 'GET' || method === 'HEAD')) {
    throw requestRefusal(
      'body',
      `${label} was refused: a ${method} request can't carry a body; use query parameters or another method`,
    );
  }
  return {
    label,
    method,
    url,
    port,
    headers: admitHeaders(request.headers ?? {}, label),
    // Bytes, not text: for a string, fetch would add a content type.
    body: typeof request.body === 'string' ? new TextEncoder().encode(request.body) : request.body,
    timeoutMs: Math.min(positive(request.timeoutMs, DEFAULT_TIMEOUT_MS, 'timeoutMs', label), MAX_TIMEOUT_MS),
    maxResponseBytes: positive(request.maxResponseBytes, DEFAULT_MAX_RESPONSE_BYTES, 'maxResponseBytes', label),
    signal: request.signal,
    onChunk: request.onChunk,
    partialBody: request.partialBody === true,
  };
}

/** The refusal of an address. `nodeHttp` throws it for the addresses of names too. */
export function refuseAddress(
  { label, url, port }: Pick<AdmittedRequest, 'label' | 'url' | 'port'>,
  problem: string,
  remedy?: string,
): OrchestratorError {
  const option = `\`http: fetchHttp({ allow: ['${url.hostname}:${port}'] })\``;
  const allowIt = `If it is meant to be reached, allow it with the option ${option}, or the same with nodeHttp`;
  return requestRefusal('address', `${label} was refused: ${problem}. ${remedy ?? allowIt}`);
}

function admitUrl(text: string): URL {
  if (text.length > MAX_URL_LENGTH)
    throw requestRefusal('url', `the url is longer than ${MAX_URL_LENGTH} characters; send data in the body`);
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    // The URL parser would silently drop line breaks and tabs, and the request would go to another address than the written one.
    if (code < 0x20 || code === 0x7f) {
      throw requestRefusal(
        'url',
        `the url holds a control character at ${i}, such as a line break; remove it or encode it with urlEncode()`,
      );
    }
  }
  if (!URL.canParse(text)) throw requestRefusal('url', 'the url is not an absolute URL; write https://host/path');
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw requestRefusal('url', `the url has the scheme ${url.protocol} only http: and https: are sent`);
  }
  if (url.username !== '' || url.password !== '') {
    throw requestRefusal(
      'url',
      `the url of ${url.host} holds a user name or password; send them in an Authorization header`,
    );
  }
  return url;
}

function admitHeaders(headers: Readonly<Record<string, string>>, label: string): Readonly<Record<string, string>> {
  const out: Record<string, string> = Object.create(null);
  let length = 0;
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    const problem = headerProblem(name, value) ?? (lower in out ? `header ${name} is given twice` : undefined);
    if (problem !== undefined) throw requestRefusal('header', `${label} was refused: ${problem}`);
    out[lower] = value;
    length += name.length + value.length + 4;
  }
  if (length > MAX_HEADERS_LENGTH) {
    throw requestRefusal(
      'header',
      `${label} was refused: its headers are longer than ${MAX_HEADERS_LENGTH} characters together`,
    );
  }
  out['user-agent'] ??= 'ensemble-orchestrator';
  out.accept ??= '*/*';
  return out;
}

function positive(value: number | undefined, fallback: number, name: string, label: string): number {
  if (value === undefined) return fallback;
  if (Number.isFinite(value) && value > 0) return value;
  throw requestRefusal('limit', `${label} was refused: ${name} is ${value}; expected a number above 0`);
}

function requestRefusal(reason: string, message: string): OrchestratorError {
  return new OrchestratorError('INVALID_REQUEST', message, { details: { reason } });
}
