/** The conformance suite of the outbound HTTP port: the rules that every `HttpClient` must follow. It runs on any test runner with `describe` and `it`. */

import type { HttpClient } from '../engine/host/http.port.ts';
import { chunkCases } from './http-suite/chunks.ts';
import { suiteContext } from './http-suite/context.ts';
import { exchangeCases } from './http-suite/exchanges.ts';
import { guardCases } from './http-suite/guards.ts';
import { onceCases } from './http-suite/once.ts';
import { peerCases } from './http-suite/peers.ts';

/** The two functions of a test runner that the suite needs. */
export interface SuiteRunner {
  describe(name: string, body: () => void): void;
  it(name: string, body: () => Promise<void>): void;
}

export interface HttpSuiteOptions {
  readonly name: string;
  /** Creates a client that allows the addresses of `allow` (as in `fetchHttp`), and otherwise has its defaults. */
  readonly create: (options: { readonly allow: readonly string[] }) => HttpClient;
  /**
   * The base URL of the peer, on 127.0.0.1 and without a final slash. The suite calls it inside the tests. The peer's routes:
   *
   * | route | answer |
   * |---|---|
   * | `/echo` | 200, JSON `{ method, url, headers, body }` of the request, with header names in lower case and the body in base64; headers `x-one: 1` and `x-many: a`, `x-many: b` |
   * | `/bytes` | 200, the 256 bytes 0 to 255 |
   * | `/status/N` | status N, body `status N` (no body for 204 and 304) |
   * | `/redirect` | 302 to `/redirected` of the same peer |
   * | `/count/NAME` | 200, the number of requests for `/NAME` so far, in decimal; the name may have a slash |
   * | `/gzip`, `/deflate`, `/br` | 200, `squeezed` in that content coding |
   * | `/two-gzips` | 200, `squeezed` in gzip, as two members |
   * | `/cut-gzip`, `/cut-deflate`, `/cut-br` | 200, the first half of a body in that content coding, as a complete answer |
   * | `/cut-chunked` | 200, a chunked body whose connection ends before its last chunk |
   * | `/encodings` | 200, a body that is gzipped eight times, and labelled so |
   * | `/zstd` | 200, any body labelled `content-encoding: zstd` |
   * | `/bomb` | 200, gzip of 200 MiB of zeros |
   * | `/never` | none |
   * | `/trickle` | 200, then single bytes at intervals, without end |
   * | `/infinite` | 200, then bytes as fast as the client reads them, without end |
   * | `/reset` | the connection is reset before any answer |
   * | `/reset-mid-body` | 200 with a length of 1,000, ten bytes, then a reset |
   * | `/short` | 200 with a length of 1,000, ten bytes, then the end of the connection |
   * | `/kept` | 200, and the connection stays open |
   * | `/end/NAME`, `/reset/NAME`, `/never/NAME` | none: the connection ends, is reset, or stays open |
   * | `/garbage` | bytes that are not HTTP |
   * | `/open/NAME` | 200, the number of open connections whose last request was for `/NAME`, in decimal |
   */
  readonly peer: () => string;
  /** `false` for a client that ignores `onChunk`. Default true. */
  readonly chunks?: boolean | undefined;
  /** The methods that the runtime may send twice when a connection ends without an answer. Default none. */
  readonly resent?: readonly string[] | undefined;
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
 * import { httpSuite } from 'ensemble-orchestrator/conformance';
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
    if (options.chunks !== false) chunkCases(context, it);
    peerCases(context, it);
    onceCases(context, options.resent ?? [], it);
    guardCases(context, it);
  });
}
