/** The portable HTTP client: the runtime's `fetch`, with checks of each request. It does not look up names. `nodeHttp` does. */

import { aFunction, readOptions } from '../../engine/base/read-options.ts';
import type { HttpClient, HttpRequest, HttpResponse } from '../../engine/host/http.port.ts';
import { addressRules } from './address-rules.ts';
import { type AdmittedRequest, admitRequest, refuseAddress } from './admit-request.ts';
import { type BodyCollector, bodyCollector } from './body-collector.ts';
import {
  type ContentCoding,
  collectHeaders,
  contentCoding,
  encodingFailure,
  exchangeFailure,
  type OnHead,
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
 * asks for bodies without compression, and refuses a compressed one. That of Deno reads only the first part of a gzip body that has
 * several, so there the client asks for br, and refuses gzip. `nodeHttp` reads all of them.
 *
 * An attempt sends one request. Only what HTTP calls idempotent may be sent twice, if a connection ends without an answer: by Deno
 * all methods except POST and PATCH, by Bun GET and HEAD. On Deno, the body of a POST or PATCH is sent in chunks, without a length: with
 * a length, Deno would send it twice. `nodeHttp` sends each request once, with its length, on every runtime that has it.
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
      return underDeadline(admitted, (signal, onHead) =>
        slots.run(admitted.url.host, signal, () => exchange(admitted, { signal, onHead }, own ?? globalThis.fetch)),
      );
    },
  });
}

async function exchange(
  request: AdmittedRequest,
  { signal, onHead }: { readonly signal: AbortSignal; readonly onHead: OnHead },
  fetch: typeof globalThis.fetch,
): Promise<HttpResponse> {
  let response: Response | undefined;
  const runtime = thisRuntime();
  try {
    response = await fetch(request.url.href, {
      method: request.method,
      headers: { ...runtime.accepts, ...request.headers },
      // The DOM types ask for an ArrayBuffer, but every runtime accepts any view.
      body: (runtime.name === 'deno' ? sentOnce(request) : request.body) as BodyInit | undefined,
      redirect: 'manual',
      signal,
      // Otherwise Bun sends such a request again when a connection that it has kept ends without an answer.
      ...(runtime.name === 'bun' && !NOT_RESENT.has(request.method) && { keepalive: false }),
    });
    if (signal.aborted) throw signal.reason;
    if (response.type === 'opaqueredirect' || response.status === 0 || response.redirected) {
      throw exchangeFailure(
        request,
        'redirect',
        'answered with a redirect that this runtime hides or follows; ask the final address',
      );
    }
    const { status, headers } = response;
    onHead(() => ({ status, headers: collectHeaders(headers, false), body: new Uint8Array() }));
    const coding = contentCoding(request, status, headers.get('content-encoding'));
    if (coding !== undefined && runtime.misreads(coding)) throw cutFailure(request, coding);
    if (coding === 'deflate' && !runtime.readsDeflate) throw encodingFailure(request, 'the content coding "deflate"');
    const head = { status, headers: collectHeaders(headers, coding !== undefined) };
    const collector = bodyCollector(request, head, signal);
    onHead(() => ({ ...head, body: collector.join() }));
    await readBody(response, signal, collector);
    return { ...head, body: collector.join() };
  } catch (thrown) {
    // Not awaited: a body that hangs may hang here too, and the result is known.
    if (response?.body && !response.body.locked) response.body.cancel().catch(() => {});
    throw fetchRefusal(request, thrown) ?? toExchangeFailure(request, thrown);
  }
}

/** How the `fetch` of a runtime differs from the others. */
interface Runtime {
  readonly name?: 'deno' | 'bun';
  /** The headers that ask for the bodies that it reads whole. */
  readonly accepts: Readonly<Record<string, string>>;
  /** Whether it takes a part of such a body as the whole. */
  misreads(coding: ContentCoding): boolean;
  /** The others return the bytes as they are, and ask for deflate only if the caller sets Accept-Encoding. */
  readonly readsDeflate: boolean;
}

const asIs: Runtime = { accepts: {}, misreads: () => false, readsDeflate: true };
const NODE: Runtime = { ...asIs, accepts: { 'accept-encoding': 'identity' }, misreads: () => true };
const DENO: Runtime = {
  ...{ name: 'deno', accepts: { 'accept-encoding': 'br' }, readsDeflate: false },
  misreads: (coding) => coding === 'gzip',
};
const BUN: Runtime = { ...asIs, name: 'bun' };
const WORKERS: Runtime = { ...asIs, readsDeflate: false };

// All of them may have a `process` like that of Node.js.
function thisRuntime(): Runtime {
  const { process, Deno, Bun, navigator } = globalThis as {
    readonly process?: { readonly release?: { readonly name?: string } };
    readonly Deno?: unknown;
    readonly Bun?: unknown;
    readonly navigator?: { readonly userAgent?: string };
  };
  if (Deno !== undefined) return DENO;
  if (Bun !== undefined) return BUN;
  if (navigator?.userAgent === 'Cloudflare-Workers') return WORKERS;
  return process?.release?.name === 'node' ? NODE : asIs;
}

/** RFC 9110, section 9.2.2. */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);
/** The methods that Bun never sends twice, and those that may be sent twice. */
const NOT_RESENT: ReadonlySet<string> = new Set(['POST', 'PATCH', 'GET', 'HEAD']);

/** A stream, which Deno can't send a second time, for a request that must not be sent twice. */
function sentOnce({ method, body }: AdmittedRequest): ReadableStream<Uint8Array> | Uint8Array | undefined {
  if (IDEMPOTENT.has(method)) return body;
  return new ReadableStream({
    start(controller) {
      if (body !== undefined && body.byteLength > 0) controller.enqueue(body);
      controller.close();
    },
  });
}

function cutFailure(request: AdmittedRequest, coding: ContentCoding): Error {
  const what = `answered in ${coding} without being asked to; the fetch of this runtime may read only a part of it. Use nodeHttp of ensemble-orchestrator/node, which can`;
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
