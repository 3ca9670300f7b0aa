/** The portable HTTP client: the runtime's own fetch behind the guards. Names are not looked up here; `nodeHttp` does that. */

import type { HttpClient, HttpRequest, HttpResponse } from '../../engine/ports/http.ts';
import { addressRules } from './address-rules.ts';
import { type AdmittedRequest, admitRequest, refuseAddress } from './admit-request.ts';
import { bodyCollector } from './body-collector.ts';
import {
  collectHeaders,
  contentCoding,
  encodingFailure,
  exchangeFailure,
  toExchangeFailure,
  underDeadline,
} from './exchange.ts';
import { socketSlots } from './socket-slots.ts';

export interface FetchHttpOptions {
  /**
   * What may be reached beside public addresses: ranges (`127.0.0.0/8`), addresses, names (`localhost`), wildcards
   * (`*.internal.example`), each but a range also with `:port`. An allowed host may use any port.
   */
  readonly allow?: readonly string[];
  /** Exchanges at a time with one host and port, default 64; the others wait within their timeout. On Workers use Infinity. */
  readonly maxSocketsPerHost?: number;
  /** The fetch to use; default the runtime's, looked up at each call. */
  readonly fetch?: typeof globalThis.fetch;
}

/**
 * The outbound HTTP port over `fetch`, for every runtime. http and https only; private, loopback, link-local and reserved
 * addresses, `localhost` names, names without a dot and those below `.internal`, `.local`, `.svc` and `.home.arpa` are refused
 * unless allowed; redirects are not followed. It judges the URL alone: a public name that resolves to a private address is not
 * seen (runtimes without a resolver hook can't), so where definitions may hold URLs of strangers use `nodeHttp`, or an egress
 * proxy.
 *
 * @param options - see {@link FetchHttpOptions}
 * @throws TypeError for an option that has no meaning
 */
export function fetchHttp(options: FetchHttpOptions = {}): HttpClient {
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
      headers: { ...request.headers },
      // The DOM types want an ArrayBuffer behind it; every runtime takes any view.
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
    const headers = collectHeaders(response.headers, coding !== undefined);
    return { status: response.status, headers, body: await readBody(request, response, signal) };
  } catch (thrown) {
    // Not awaited: a body that hangs may hang in here too, and the outcome is known.
    if (response?.body && !response.body.locked) response.body.cancel().catch(() => {});
    throw fetchRefusal(request, thrown) ?? toExchangeFailure(request, thrown);
  }
}

// Two refusals of Node's fetch carry no code, only a message: ports that the fetch standard blocks (6000 and 6667 among them,
// whatever the allow list says), and more than five content codings.
function fetchRefusal(request: AdmittedRequest, thrown: unknown): Error | undefined {
  const message = (thrown as { cause?: { message?: unknown } } | null)?.cause?.message;
  if (!(thrown instanceof TypeError) || typeof message !== 'string') return undefined;
  if (message === 'bad port') {
    return refuseAddress(request.label, `this runtime's fetch never uses port ${request.port} (nodeHttp can)`);
  }
  return message.includes('content-encodings')
    ? encodingFailure(request, 'a long chain of content codings')
    : undefined;
}

async function readBody(request: AdmittedRequest, response: Response, signal: AbortSignal): Promise<Uint8Array> {
  const collector = bodyCollector(request);
  if (response.body === null) return collector.join();
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  signal.addEventListener('abort', cancel, { once: true });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      collector.add(value);
    }
    // A stream that was cancelled from outside ends as if it were complete.
    if (signal.aborted) throw signal.reason;
    return collector.join();
  } catch (thrown) {
    cancel();
    throw thrown;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}
