/** The request keys port: what handlers take from their orchestrator for requests with an `Idempotency-Key`. */

export interface KeyedRequest {
  /** Whose key it is: no caller meets the keys of another one. */
  readonly caller: string;
  readonly key: string;
  /** Names what is asked. The same key with something else is a mistake of the caller. */
  readonly asked: string;
  /** What only the caller has. The stored answer, which may hold a new token, is encrypted with it. */
  readonly secret: string;
}

/** An answer that its twins get, too. */
export interface KeptAnswer {
  readonly status: number;
  readonly json?: unknown;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface RequestKeys {
  /**
   * Runs a request, unless the same one was run or runs. An answer from 400 on is not kept: the next request with the key runs.
   * @throws IDEMPOTENCY_KEY_REUSED for another request under the key; CONFLICT if the first one still runs after 30 s
   */
  once<Answer extends KeptAnswer>(request: KeyedRequest, run: () => Promise<Answer>): Promise<Answer | KeptAnswer>;
}
