/** The outbound HTTP port: one guarded exchange, answered whole. */

export interface HttpRequest {
  readonly method: string;
  /** Absolute `http:` or `https:` URL without user info. */
  readonly url: string;
  /** Names in any case; a value with CR, LF or NUL is refused. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Time for the whole exchange, body included. Default 30,000 ms. */
  readonly timeoutMs?: number;
  /** Largest answer after decompression. Default 10 MiB. */
  readonly maxResponseBytes?: number;
  readonly signal?: AbortSignal;
}

export interface HttpResponse {
  readonly status: number;
  /** Lower-case names; several values of one name are joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** The decoded body, whole. */
  readonly body: Uint8Array;
}

/**
 * Sends one request. Redirects are never followed: a 3xx is an answer like any other.
 *
 * It rejects with an `OrchestratorError` and no other: `INVALID_REQUEST` (not retryable) when the request itself is refused
 * (scheme, user info, a private address, a forbidden or malformed header); `TIMEOUT` (retryable) when `timeoutMs` passes;
 * `AGENT_FAILED` (retryable) when the exchange breaks (connection, TLS, malformed answer); `AGENT_FAILED` (not retryable) when the answer is larger
 * than `maxResponseBytes`, or nearly all framing. Its messages name a request by its whole path, without the query: whoever shows them
 * masks and cuts them, in this order. When `signal` aborts it rejects with the signal's reason. The socket is closed in every case.
 */
export interface HttpClient {
  send(request: HttpRequest): Promise<HttpResponse>;
}
