/** The conformance suite of the outbound HTTP port: what each `HttpClient` must do, for any test runner with `describe` and `it`. */

import type { HttpClient } from '../../engine/ports/http.ts';
import { suiteContext } from './http-suite/context.ts';
import { exchangeCases } from './http-suite/exchanges.ts';
import { guardCases } from './http-suite/guards.ts';
import { peerCases } from './http-suite/peers.ts';

/** The two functions of a test runner that the suite needs. */
export interface SuiteRunner {
  describe(name: string, body: () => void): void;
  it(name: string, body: () => Promise<void>): void;
}

export interface HttpSuiteOptions {
  readonly name: string;
  /** A fresh client that lets through what `allow` lists (as the `allow` of `fetchHttp`) and otherwise has its defaults. */
  readonly create: (options: { readonly allow: readonly string[] }) => HttpClient;
  /**
   * Base URL of the peer, on 127.0.0.1 and without a final slash; called inside the tests. Its routes:
   *
   * | route | answer |
   * |---|---|
   * | `/echo` | 200, JSON `{ method, url, headers, body }`: the request as it arrived, header names in lower case, body in base64; headers `x-one: 1` and `x-many: a`, `x-many: b` |
   * | `/bytes` | 200, the 256 bytes 0 to 255 |
   * | `/status/N` | status N, body `status N` (no body for 204 and 304) |
   * | `/redirect` | 302 to `/redirected` of the same peer |
   * | `/count/NAME` | 200, in decimal how many requests for `/NAME` arrived |
   * | `/gzip`, `/deflate`, `/br` | 200, `squeezed` in that content coding |
   * | `/encodings` | 200, a body in eight gzip codings, so labelled |
   * | `/zstd` | 200, any body labelled `content-encoding: zstd` |
   * | `/bomb` | 200, gzip of 200 MiB of zeros |
   * | `/never` | nothing, ever |
   * | `/trickle` | 200, then a byte now and then without end |
   * | `/infinite` | 200, then bytes as fast as they are taken, without end |
   * | `/reset` | the connection is reset before any answer |
   * | `/reset-mid-body` | 200 with a length of 1,000, ten bytes, then a reset |
   * | `/short` | 200 with a length of 1,000, ten bytes, then the end of the connection |
   * | `/garbage` | bytes that are not HTTP |
   * | `/open/NAME` | 200, in decimal how many connections that last asked for `/NAME` are open |
   */
  readonly peer: () => string;
  readonly test: SuiteRunner;
}

/**
 * Declares the suite's tests.
 *
 * @param options - see {@link HttpSuiteOptions}
 * @example
 * ```ts no-run
 * import { describe, it } from 'vitest';
 * import type { HttpClient } from 'ensemble-orchestrator';
 * import { httpSuite } from 'ensemble-orchestrator/testing';
 *
 * declare const myHttp: (options: { allow: readonly string[] }) => HttpClient;
 * declare const peer: { baseUrl: string };
 * httpSuite({ name: 'myHttp', create: (options) => myHttp(options), peer: () => peer.baseUrl, test: { describe, it } });
 * ```
 */
export function httpSuite(options: HttpSuiteOptions): void {
  const { describe, it } = options.test;
  const context = suiteContext(options.create, options.peer);
  describe(`${options.name} as an HttpClient`, () => {
    exchangeCases(context, it);
    peerCases(context, it);
    guardCases(context, it);
  });
}
