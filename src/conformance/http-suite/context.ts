/** What the cases of the HTTP suite share: requests to the peer, and small assertions that throw plain errors. */

import { isOrchestratorError, type OrchestratorError } from '../../engine/base/errors.ts';
import type { HttpClient, HttpRequest, HttpResponse } from '../../engine/host/http.port.ts';

/** Declares one test; the `it` of a test runner. */
export type It = (name: string, body: () => Promise<void>) => void;

export interface SuiteContext {
  /** A client with this allow list. */
  readonly create: (options: { readonly allow: readonly string[] }) => HttpClient;
  readonly peer: () => string;
  /** Sends a request to a path of the peer, with a client that allows its address. */
  send(path: string, request?: Partial<HttpRequest>): Promise<HttpResponse>;
  /** The number in the answer of a route. */
  ask(path: string): Promise<number>;
  /** Waits until no connection is open whose last request was for `/name`. @throws Error when one stays open */
  waitUntilClosed(name: string): Promise<void>;
}

export function suiteContext(create: SuiteContext['create'], peer: () => string): SuiteContext {
  const send: SuiteContext['send'] = (path, request = {}) =>
    create({ allow: ['127.0.0.0/8'] }).send({ method: 'GET', url: peer() + path, timeoutMs: 5_000, ...request });
  const ask = async (path: string) => Number(text(await send(path)));
  const waitUntilClosed = async (name: string) => {
    // Each request is a round trip to the peer. That is the only delay, and 200 round trips are the limit.
    for (let tries = 0; tries < 200; tries++) if ((await ask(`/open/${name}`)) === 0) return;
    throw new Error(
      `a connection of a request for /${name} is still open; a client must close it when the exchange fails`,
    );
  };
  return { create, peer, send, ask, waitUntilClosed };
}

/** @returns the error of a promise that must reject with this code */
export async function fails(
  promise: Promise<unknown>,
  code: OrchestratorError['code'],
  retryable: boolean,
): Promise<OrchestratorError> {
  const thrown = await failureOf(promise);
  same(thrown.code, code, `code of "${thrown.message}"`);
  same(thrown.retryable, retryable, `retryable of "${thrown.message}"`);
  return thrown;
}

/** @returns the error of a promise that must reject with an `OrchestratorError` */
export async function failureOf(promise: Promise<unknown>): Promise<OrchestratorError> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (isOrchestratorError(thrown)) return thrown;
  throw new Error(`expected an OrchestratorError, got ${String(thrown)}`);
}

/** @throws Error unless `details.reason` is the expected one */
export function reason(error: OrchestratorError, expected: string): void {
  same(error.details.reason, expected, `details.reason of "${error.message}"`);
}

/** @throws Error unless both are identical */
export function same(actual: unknown, expected: unknown, what: string): void {
  if (!Object.is(actual, expected)) throw new Error(`${what}: expected ${String(expected)}, got ${String(actual)}`);
}

/** Whether a client refuses bodies in this content coding, because its runtime can't read them safely. */
export async function refusesCoding(send: SuiteContext['send'], coding: string): Promise<boolean> {
  const thrown = await send(`/${coding}`).catch((error: unknown) => error);
  return isOrchestratorError(thrown) && thrown.details.reason === 'encoding';
}

/** A body as text. */
export function text(response: HttpResponse): string {
  return new TextDecoder().decode(response.body);
}

export function fromBase64(value: string): Uint8Array {
  return Uint8Array.from(atob(value), (character) => character.charCodeAt(0));
}
