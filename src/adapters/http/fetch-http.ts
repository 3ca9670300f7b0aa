/** The portable HTTP client: the runtime's `fetch`, with checks of each request. It does not look up names. `nodeHttp` does. */

import { aFunction, readOptions } from '../../engine/base/read-options.ts';
import type { HttpClient, HttpRequest, HttpResponse } from '../../engine/ports/http.ts';
import { addressRules } from './address-rules.ts';
import { type AdmittedRequest, admitRequest, refuseAddress } from './admit-request.ts';
import { type BodyCollector, bodyCollector } from './body-collector.ts';
import {
  type ContentCoding,
  collectHeaders,
  contentCoding,
  encodingFailure,
  exchangeFailure,
  toExchangeFailure,
  underDeadline,
} from './exchange.ts';
import { SOCKET_CHECKS, socketSlots } from './socket-slots.ts';

export interface FetchHttpOptions {
  /**
   * What may be reached in addition to public addresses: ranges (`127.0.0.0/8`), addresses, names (`localhost`), and wildcards
   * (`*.internal.example`). All except ranges may have a `:port`. Without it, an allowed host may use any port.
   */
  readonly allow?: readonly string[] | undefined;
  /** The largest number of concurrent exchanges with one host and port. Others wait within their timeout. Default 64. On Workers: Infinity. */
  readonly maxSocketsPerHost?: number | undefined;
  /** The `fetch` to use. Default: the runtime's, looked up at each call. */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

/**
 * The outbound HTTP port over `fetch`, for every runtime. It sends only http and https, and follows no redirects. Unless `allow` lists
 * them, it refuses private, loopback, link-local and reserved addresses, `localhost` names, names without a dot, and names below
 * `.internal`, `.local`, `.svc` and `.home.arpa`.
 *
 * A body that is cut short fails. The `fetch` of Node.js takes a compressed body that ends too early as complete, so there the client
 * asks for bodies without compression, and refuses a compressed one. `nodeHttp` reads both.
 *
 * It checks only the URL: it does not notice a public name that resolves to a private address, because runtimes without a resolver
 * hook can't. If definitions may contain URLs of strangers, use `nodeHttp` or an egress proxy.
 *
 * @param options - see {@link FetchHttpOptions}
 * @throws TypeError for an invalid option
 */
export function fetchHttp(options: FetchHttpOptions = {}): HttpClient {
  readOptions('fetchHttp', options, { ...SOCKET_CHECKS, fetch: aFunction });
  const rules = addressRules(options.allow, true);
  const slots = socketSlots(options.maxSocketsPerHost ?? 64);
  const own = options.fetch;
  return Object.freeze({
    async send(request: HttpRequest): Promise<HttpResponse> {
      const admitted = admitRequest(request, rules);
      return underDeadline(admitted, (signal) =>
        slots.run(admitted.url.host, signal, () => exchange(admitted, signal, own ?? globalThis.fetch)),
      );
    },
  });
}

async function exchange(
  request: AdmittedRequest,
  signal: AbortSignal,
  fetch: typeof globalThis.fetch,
): Promise<HttpResponse> {
  let response: Response | undefined;
  try {
    response = await fetch(request.url.href, {
      method: request.method,
      headers: hidesCuts() ? { 'accept-encoding': 'identity', ...request.headers } : { ...request.headers },
      // The DOM types ask for an ArrayBuffer, but every runtime accepts any view.
      body: request.body as BodyInit | undefined,
      redirect: 'manual',
      signal,
    });
    if (signal.aborted) throw signal.reason;
    if (response.type === 'opaqueredirect' || response.status === 0 || response.redirected) {
      throw exchangeFailure(
        request,
        'redirect',
        'answered with a redirect that this runtime hides or follows; ask the final address',
      );
    }
    const coding = contentCoding(request, response.status, response.headers.get('content-encoding'));
    if (coding !== undefined && hidesCuts()) throw cutFailure(request, coding);
    if (coding === 'deflate' && !readsDeflate()) throw encodingFailure(request, 'the content coding "deflate"');
    const head = { status: response.status, headers: collectHeaders(response.headers, coding !== undefined) };
    const collector = bodyCollector(request, head, signal);
    await readBody(response, signal, collector);
    return { ...head, body: collector.join() };
  } catch (thrown) {
    // Not awaited: a body that hangs may hang here too, and the result is known.
    if (response?.body && !response.body.locked) response.body.cancel().catch(() => {});
    throw fetchRefusal(request, thrown) ?? toExchangeFailure(request, thrown);
  }
}

// These runtimes return the bytes as they are, and ask for deflate only if the caller sets Accept-Encoding.
function readsDeflate(): boolean {
  return !('Deno' in globalThis) && globalThis.navigator?.userAgent !== 'Cloudflare-Workers';
}

// Of all versions of Node.js. The other runtimes fail such a body. All of them have a `process` like that of Node.js.
function hidesCuts(): boolean {
  const { process, Deno, Bun, navigator } = globalThis as {
    readonly process?: { readonly release?: { readonly name?: string } };
    readonly Deno?: unknown;
    readonly Bun?: unknown;
    readonly navigator?: { readonly userAgent?: string };
  };
  const isOther = Deno !== undefined || Bun !== undefined || navigator?.userAgent === 'Cloudflare-Workers';
  return process?.release?.name === 'node' && !isOther;
}

function cutFailure(request: AdmittedRequest, coding: ContentCoding): Error {
  const what = `answered in ${coding} without being asked to; the fetch of Node.js accepts such a body when it is cut short. Use nodeHttp of ensemble-orchestrator/node, which can`;
  return exchangeFailure(request, 'encoding', what);
}

// Two refusals of Node's fetch have a message but no code: ports that the fetch standard blocks (such as 6000 and 6667, even if the
// allow list has them), and more than five content codings.
function fetchRefusal(request: AdmittedRequest, thrown: unknown): Error | undefined {
  const message = (thrown as { cause?: { message?: unknown } } | null)?.cause?.message;
  if (!(thrown instanceof TypeError) || typeof message !== 'string') return undefined;
  if (message === 'bad port') {
    return refuseAddress(request, `this runtime's fetch never uses port ${request.port}`, 'Use nodeHttp, which can');
  }
  return message.includes('content-encodings')
    ? encodingFailure(request, 'a long chain of content codings')
    : undefined;
}

async function readBody(response: Response, signal: AbortSignal, collector: BodyCollector): Promise<void> {
  if (response.body === null) return;
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  signal.addEventListener('abort', cancel, { once: true });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      collector.add(value);
    }
    // A stream that was cancelled from outside ends like a complete one.
    signal.throwIfAborted();
  } catch (thrown) {
    cancel();
    throw thrown;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}
