/** What the cases of the HTTP suite share: how they ask the peer, and small assertions that throw plain errors. */

import { isOrchestratorError, type OrchestratorError } from '../../../engine/errors.ts';
import type { HttpClient, HttpRequest, HttpResponse } from '../../../engine/ports/http.ts';

/** Declares one test; the `it` of a test runner. */
export type It = (name: string, body: () => Promise<void>) => void;

export interface SuiteContext {
  /** A client with this allow list. */
  readonly create: (options: { readonly allow: readonly string[] }) => HttpClient;
  readonly peer: () => string;
  /** Sends to a path of the peer, with a client that may. */
  send(path: string, request?: Partial<HttpRequest>): Promise<HttpResponse>;
  /** The number that a route answers with. */
  ask(path: string): Promise<number>;
  /** Waits until no connection that last asked for `/name` is open. */
  isClosed(name: string): Promise<void>;
}

export function suiteContext(create: SuiteContext['create'], peer: () => string): SuiteContext {
  const send: SuiteContext['send'] = (path, request = {}) =>
    create({ allow: ['127.0.0.0/8'] }).send({ method: 'GET', url: peer() + path, timeoutMs: 5_000, ...request });
  const ask = async (path: string) => Number(text(await send(path)));
  const isClosed = async (name: string) => {
    // Each question is a round trip to the peer, so this waits by working, and ends.
    for (let tries = 0; tries < 200; tries++) if ((await ask(`/open/${name}`)) === 0) return;
    throw new Error(`a connection that asked for /${name} is still open; it must be closed when its exchange fails`);
  };
  return { create, peer, send, ask, isClosed };
}

/** The error that `promise` must reject with. */
export async function fails(
  promise: Promise<unknown>,
  code: OrchestratorError['code'],
  retryable: boolean,
): Promise<OrchestratorError> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!isOrchestratorError(thrown)) throw new Error(`expected an OrchestratorError ${code}, got ${String(thrown)}`);
  same(thrown.code, code, `code of "${thrown.message}"`);
  same(thrown.retryable, retryable, `retryable of "${thrown.message}"`);
  return thrown;
}

/** Checks `details.reason`. */
export function reason(error: OrchestratorError, expected: string): void {
  same(error.details.reason, expected, `details.reason of "${error.message}"`);
}

/** Checks identity. */
export function same(actual: unknown, expected: unknown, what: string): void {
  if (!Object.is(actual, expected)) throw new Error(`${what}: expected ${String(expected)}, got ${String(actual)}`);
}

/** A body as text. */
export function text(response: HttpResponse): string {
  return new TextDecoder().decode(response.body);
}

export function fromBase64(value: string): Uint8Array {
  return Uint8Array.from(atob(value), (character) => character.charCodeAt(0));
}
