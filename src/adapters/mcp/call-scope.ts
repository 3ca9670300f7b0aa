/** One call of a tool server: its deadline, its end, and what its exchanges may receive together. */

import { OrchestratorError } from '../../engine/base/errors.ts';

/** The largest number of bytes that all answers of one call have together: the pages of a list, and streams that were resumed. */
const MAX_RECEIVED_BYTES = 10 * 1024 * 1024;
/**
 * How many requests a server may send within a call: some at once, and one more for each 5 s. Servers ask whether a client is there;
 * everything else is refused.
 */
const MAX_REQUESTS = 32;
const REQUEST_EVERY_MS = 5000;
// With a longer delay, a platform's timer fires at once.
export const MAX_TIMER_MS = 2 ** 31 - 1;

export interface CallScope {
  /** Aborts when the call ends early. Its reason is a neutral text, because the client package sends it to the server. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Why the call ended early: undefined if it did not. */
  readonly failure: { readonly error: unknown } | undefined;
  /** Whether the authorization was renewed for this call. */
  renewed: boolean;
  /** What was sent and may not be shown. */
  secrets: readonly string[];
  /** The wait that the last refusal asked for, in ms. */
  retryAfterMs?: number | undefined;
  /** How many bytes the next exchange may receive. */
  bytesLeft: number;
  /** Counts a request of the server within the call. @throws OrchestratorError, which also ends the call, if there are too many */
  countRequest(): void;
  /** Ends the call early. Only the first failure counts. */
  fail(error: unknown): void;
  /** @returns `work`, or the failure of the call as soon as there is one */
  run<T>(work: Promise<T>): Promise<T>;
  /** Whether `fail` or `end` was called. */
  readonly ended: boolean;
  /** Releases the timer and the listener, and stops what is still open. */
  end(): void;
}

/**
 * @param server - the name of the server, for messages
 * @param timeoutMs - the longest time of the call. Without it, only `fail` ends the call early
 * @param outer - the caller's signal
 */
export function callScope(server: string, timeoutMs?: number, outer?: AbortSignal): CallScope {
  const controller = new AbortController();
  let failure: { readonly error: unknown } | undefined;
  const fail = (error: unknown, text = 'the call failed') => {
    if (controller.signal.aborted) return;
    failure = { error };
    stop(text);
  };
  const onAbort = () => fail(outer?.reason, 'the call was cancelled');
  const onDeadline = () => {
    const message = `tool server \`${server}\` took longer than ${timeoutMs} ms; raise its timeout or look at the server`;
    fail(new OrchestratorError('TIMEOUT', message, { details: { timeoutMs }, retryable: true }), 'the call timed out');
  };
  const timer = timeoutMs === undefined ? undefined : setTimeout(onDeadline, Math.min(timeoutMs, MAX_TIMER_MS));
  const stop = (text: string) => {
    clearTimeout(timer);
    outer?.removeEventListener('abort', onAbort);
    controller.abort(text);
  };
  const begun = performance.now();
  let requests = 0;
  const countRequest = () => {
    requests += 1;
    if (requests <= MAX_REQUESTS + (performance.now() - begun) / REQUEST_EVERY_MS) return;
    const message = `tool server \`${server}\` sent ${requests} requests of its own within one call; look at the server`;
    const error = new OrchestratorError('AGENT_FAILED', message, { details: { reason: 'too-many-requests' } });
    fail(error);
    throw error;
  };
  if (outer?.aborted) onAbort();
  else outer?.addEventListener('abort', onAbort, { once: true });
  return {
    signal: controller.signal,
    timeoutMs: Math.min(timeoutMs ?? MAX_TIMER_MS, MAX_TIMER_MS),
    get failure() {
      return failure;
    },
    renewed: false,
    secrets: [],
    bytesLeft: MAX_RECEIVED_BYTES,
    countRequest,
    fail: (error) => fail(error),
    run: (work) =>
      new Promise((resolve, reject) => {
        const onFailure = () => reject(failure?.error);
        // Also after the failure: what nobody handles ends a Node.js process.
        work.then(resolve, reject).finally(() => controller.signal.removeEventListener('abort', onFailure));
        if (failure) onFailure();
        else controller.signal.addEventListener('abort', onFailure, { once: true });
      }),
    get ended() {
      return controller.signal.aborted;
    },
    end: () => stop('the call has ended'),
  };
}
