/** The conformance suite of the outbound HTTP port: what each `HttpClient` must do, for any test runner with `describe` and `it`. */

import { isOrchestratorError, type OrchestratorError } from '../../engine/errors.ts';
import type { HttpClient, HttpRequest, HttpResponse } from '../../engine/ports/http.ts';

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
 * ```ts
 * import { describe, it } from 'vitest';
 * import { httpSuite } from 'ensemble-orchestrator/testing';
 *
 * httpSuite({ name: 'myHttp', create: (options) => myHttp(options), peer: () => peer.baseUrl, test: { describe, it } });
 * ```
 */
export function httpSuite(options: HttpSuiteOptions): void {
  const { describe, it } = options.test;
  const open = () => options.create({ allow: ['127.0.0.0/8'] });
  const send = (path: string, request: Partial<HttpRequest> = {}): Promise<HttpResponse> =>
    open().send({ method: 'GET', url: options.peer() + path, timeoutMs: 5_000, ...request });
  const ask = async (path: string) => Number(text(await send(path)));
  const isClosed = async (name: string) => {
    // Each question is a round trip to the peer, so this waits by working, and ends.
    for (let tries = 0; tries < 200; tries++) if ((await ask(`/open/${name}`)) === 0) return;
    throw new Error(`a connection that asked for /${name} is still open; it must be closed when its exchange fails`);
  };

  describe(`${options.name} as an HttpClient`, () => {
    it('sends method, path, query, headers and body, and gives status, headers and body', async () => {
      const body = JSON.stringify({ name: 'Zoë' });
      const url = `${options.peer()}/echo?a=1&b=%20x#part`;
      const headers = { 'X-Own': 'yes', 'content-type': 'application/json' };
      const answer = await send('/', { method: 'POST', url, headers, body });
      const seen = JSON.parse(text(answer)) as {
        method: string;
        url: string;
        headers: Record<string, string>;
        body: string;
      };
      same(answer.status, 200, 'status');
      same(seen.method, 'POST', 'method');
      same(seen.url, '/echo?a=1&b=%20x', 'path and query');
      same(seen.headers['x-own'], 'yes', 'own header');
      same(seen.headers['content-type'], 'application/json', 'content type');
      same(new TextDecoder().decode(fromBase64(seen.body)), body, 'body');
      same(answer.headers['x-one'], '1', 'answer header');
      same(answer.headers['x-many'], 'a, b', 'answer header given twice');
    });

    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      it(`sends ${method}, in any case, and a body where the method has one`, async () => {
        const body = method === 'GET' ? undefined : 'content';
        const answer = await send('/echo', { method: method.toLowerCase(), body });
        const seen = JSON.parse(text(answer)) as { method: string; body: string; headers: Record<string, string> };
        same(seen.method, method, 'method');
        same(new TextDecoder().decode(fromBase64(seen.body)), body ?? '', 'body');
        same(seen.headers['content-length'], body && '7', 'content-length');
        same(seen.headers['content-type'], undefined, 'content type nobody set');
      });
    }

    it('gives a HEAD answer without a body', async () => {
      const answer = await send('/echo', { method: 'HEAD' });
      same(answer.status, 200, 'status');
      same(answer.body.byteLength, 0, 'body length');
    });

    it('refuses a body on GET and HEAD as INVALID_REQUEST', async () => {
      for (const method of ['GET', 'HEAD']) await fails(send('/echo', { method, body: 'x' }), 'INVALID_REQUEST', false);
    });

    it('keeps binary bodies byte for byte, both ways', async () => {
      const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
      same((await send('/bytes')).body.join(), bytes.join(), 'received bytes');
      const seen = JSON.parse(text(await send('/echo', { method: 'PUT', body: bytes }))) as { body: string };
      same(fromBase64(seen.body).join(), bytes.join(), 'sent bytes');
    });

    it('gives every status as an answer, errors and bodiless ones too', async () => {
      for (const status of [200, 201, 204, 304, 400, 404, 429, 500, 503]) {
        const answer = await send(`/status/${status}`);
        same(answer.status, status, 'status');
        same(text(answer), status === 204 || status === 304 ? '' : `status ${status}`, 'body');
      }
    });

    it('T36, A47: a redirect is an answer and is not followed: the target sees no request', async () => {
      const before = await ask('/count/redirected');
      const answer = await send('/redirect');
      same(answer.status, 302, 'status');
      if (!answer.headers.location?.endsWith('/redirected')) throw new Error('the location header is missing');
      same(await ask('/count/redirected'), before, 'requests at the target');
    });

    it('decodes gzip, deflate and br', async () => {
      for (const coding of ['gzip', 'deflate', 'br']) {
        const answer = await send(`/${coding}`, { headers: { 'accept-encoding': 'gzip, deflate, br' } });
        same(text(answer), 'squeezed', `${coding} body`);
        same(answer.headers['content-encoding'], undefined, 'content-encoding of a decoded body');
      }
    });

    it('T35: a chain of codings and an unknown coding are refused, never handed over undecoded', async () => {
      for (const path of ['/encodings', '/zstd']) reason(await fails(send(path), 'AGENT_FAILED', true), 'encoding');
    });

    it('T35: the limit counts decoded bytes, so a gzip bomb ends there', async () => {
      const error = await fails(send('/bomb', { maxResponseBytes: 1024 * 1024 }), 'AGENT_FAILED', false);
      reason(error, 'too-large');
      await isClosed('bomb');
    });

    it('T34: an endless body ends at the limit and its socket is closed', async () => {
      reason(await fails(send('/infinite', { maxResponseBytes: 100_000 }), 'AGENT_FAILED', false), 'too-large');
      await isClosed('infinite');
    });

    it('takes a body of exactly the limit and refuses one byte more', async () => {
      same((await send('/bytes', { maxResponseBytes: 256 })).body.byteLength, 256, 'bytes');
      reason(await fails(send('/bytes', { maxResponseBytes: 255 }), 'AGENT_FAILED', false), 'too-large');
    });

    for (const path of ['never', 'trickle']) {
      it(`T34: /${path} ends by the timeout, retryable, and its socket is closed`, async () => {
        await fails(send(`/${path}`, { timeoutMs: 80 }), 'TIMEOUT', true);
        await isClosed(path);
      });

      it(`an abort during /${path} rejects with the signal's own reason and closes the socket`, async () => {
        const controller = new AbortController();
        const why = new Error('no longer needed');
        const pending = send(`/${path}`, { signal: controller.signal });
        const outcome = pending.then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        // Aborted once the peer has the request, so that a socket is there to be closed.
        while ((await ask(`/open/${path}`)) === 0);
        controller.abort(why);
        same(await outcome, why, 'what was thrown');
        await isClosed(path);
      });
    }

    it('an aborted signal sends nothing', async () => {
      const before = await ask('/count/echo');
      const why = new Error('never mind');
      const thrown = await send('/echo', { signal: AbortSignal.abort(why) }).catch((error: unknown) => error);
      same(thrown, why, 'what was thrown');
      same(await ask('/count/echo'), before, 'requests at the peer');
    });

    for (const path of ['reset', 'reset-mid-body', 'short', 'garbage']) {
      it(`T34: /${path} is a broken exchange: AGENT_FAILED, retryable`, async () => {
        const error = await fails(send(`/${path}`), 'AGENT_FAILED', true);
        if (!['connection', 'malformed'].includes(String(error.details.reason))) {
          throw new Error(`details.reason is ${String(error.details.reason)}`);
        }
      });
    }

    it('a peer that speaks no TLS is a broken exchange', async () => {
      const url = options.peer().replace('http:', 'https:');
      reason(await fails(open().send({ method: 'GET', url, timeoutMs: 5_000 }), 'AGENT_FAILED', true), 'connection');
    });

    it('A54, A66: refuses headers that would break the message, before anything is sent', async () => {
      const bad: Record<string, string>[] = [
        { 'x-a': 'b\r\nx-c: d' },
        { 'x-a': 'b\n' },
        { 'x-a': 'b\0' },
        { 'x-a': '☃' },
        { 'x-a\r\nx-b': 'c' },
        { 'x a': 'b' },
        { 'x:a': 'b' },
        { '': 'b' },
        { Host: 'other.example' },
        { 'Content-Length': '1' },
        { 'transfer-encoding': 'chunked' },
        { Connection: 'close' },
        { 'x-a': '1', 'X-A': '2' },
      ];
      const before = await ask('/count/echo');
      for (const headers of bad) reason(await fails(send('/echo', { headers }), 'INVALID_REQUEST', false), 'header');
      same(await ask('/count/echo'), before, 'requests at the peer');
    });

    it('A41, A42, A43: refuses local addresses and names that are not allowed, before anything is sent', async () => {
      const before = await ask('/count/echo');
      const { port } = new URL(options.peer());
      const closed = options.create({ allow: [] });
      for (const host of [
        '127.0.0.1',
        '2130706433',
        '0x7f.1',
        '[::ffff:127.0.0.1]',
        'localhost',
        'a.localhost.',
        '0',
      ]) {
        const error = await fails(
          closed.send({ method: 'GET', url: `http://${host}:${port}/echo` }),
          'INVALID_REQUEST',
          false,
        );
        reason(error, 'address');
      }
      same(await ask('/count/echo'), before, 'requests at the peer');
    });

    it('A48, A49: refuses other schemes and user info', async () => {
      const urls = [
        'file:///etc/hosts',
        'data:text/plain,x',
        'ftp://a.example/',
        'javascript:1',
        '/echo',
        'http://user:pw@a.example/',
      ];
      for (const url of urls) reason(await fails(open().send({ method: 'GET', url }), 'INVALID_REQUEST', false), 'url');
    });

    it('A41: an error names the request without query, credentials or body', async () => {
      const url = `${options.peer()}/reset?token=planted-secret-1`;
      const headers = { authorization: 'Bearer planted-secret-2' };
      const failing = open().send({ method: 'POST', url, headers, body: 'planted-secret-3', timeoutMs: 5_000 });
      const error = await fails(failing, 'AGENT_FAILED', true);
      if (!error.message.includes(`POST ${options.peer()}/reset`)) throw new Error(`unclear message: ${error.message}`);
      const everything = `${error.message} ${JSON.stringify(error.details)} ${String(error.cause)}`;
      if (everything.includes('planted-secret')) throw new Error(`a secret stands in the error: ${everything}`);
    });

    it('many exchanges at once stay apart', async () => {
      const client = open();
      const paths = Array.from({ length: 50 }, (_, i) => `/echo?i=${i}`);
      const answers = await Promise.all(
        paths.map((path) => client.send({ method: 'GET', url: options.peer() + path })),
      );
      for (const [i, answer] of answers.entries())
        same((JSON.parse(text(answer)) as { url: string }).url, paths[i], 'url seen');
    });
  });
}

async function fails(
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

function reason(error: OrchestratorError, expected: string): void {
  same(error.details.reason, expected, `details.reason of "${error.message}"`);
}

function same(actual: unknown, expected: unknown, what: string): void {
  if (!Object.is(actual, expected)) throw new Error(`${what}: expected ${String(expected)}, got ${String(actual)}`);
}

function text(response: HttpResponse): string {
  return new TextDecoder().decode(response.body);
}

function fromBase64(value: string): Uint8Array {
  return Uint8Array.from(atob(value), (character) => character.charCodeAt(0));
}
