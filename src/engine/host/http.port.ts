/** The outbound HTTP port: one request and its complete answer. */

import type { OrchestratorError } from '../base/errors.ts';

export interface HttpRequest {
  readonly method: string;
  /** An absolute `http:` or `https:` URL without user info. */
  readonly url: string;
  /** Names in any case. A value with CR, LF or NUL is refused. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Time limit of the whole exchange, body included. Default 30,000 ms. */
  readonly timeoutMs?: number;
  /** The largest answer after decompression. Default 10 MiB. */
  readonly maxResponseBytes?: number;
  readonly signal?: AbortSignal;
  /**
   * Called with each part of the body, decoded, as it comes, whatever the status is. The answer has the whole body all the same. It is
   * never called for what exceeds `maxResponseBytes`, nor after `send` has settled. A client may ignore it: then the caller reads the
   * body at the end. What it throws ends the exchange, and `send` rejects with it.
   */
  readonly onChunk?: (chunk: Uint8Array, head: HttpHead) => void;
  /**
   * `true`: a body that can't be read is an answer all the same, for a caller that needs only its status. `send` then resolves with the
   * status, the headers, what was read of the body, and the `bodyFailure`. Not together with `onChunk`. A client may ignore it.
   */
  readonly partialBody?: boolean;
}

/** The beginning of an answer, before its body. */
export type HttpHead = Pick<HttpResponse, 'status' | 'headers'>;

export interface HttpResponse {
  readonly status: number;
  /** Names in lower case. Several values of one name are joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** The whole body, decoded. */
  readonly body: Uint8Array;
  /** What `send` would have rejected with: the rest of the body could not be read. Only with `partialBody`. */
  readonly bodyFailure?: OrchestratorError;
  /** Whether the address that answered is a public one. Absent: the client does not know. */
  readonly isPublic?: boolean;
}

/**
 * Sends one request. Redirects are never followed: a 3xx status is an answer.
 *
 * If `signal` aborts, `send` rejects with the signal's reason. Otherwise it rejects only with an `OrchestratorError`:
 *
 * | code | retryable | cause |
 * |---|---|---|
 * | `INVALID_REQUEST` | no | the request is refused: scheme, user info, a private address, a forbidden or malformed header |
 * | `TIMEOUT` | yes | `timeoutMs` passed |
 * | `AGENT_FAILED` | yes | the exchange broke: connection, TLS, malformed answer |
 * | `AGENT_FAILED` | no | the answer is larger than `maxResponseBytes`, or consists almost only of framing |
 *
 * Messages contain the whole path of a request, without its query. A caller that shows a message masks it first, and then cuts it.
 * The socket is closed in every case.
 */
export interface HttpClient {
  send(request: HttpRequest): Promise<HttpResponse>;
}
