/** The HTTP client for Node: like `fetchHttp`, but it checks all addresses of a name, and connects only to checked addresses. */

import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { pipeline, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import { aFunction, readOptions } from '../../engine/base/read-options.ts';
import type { HttpClient, HttpRequest, HttpResponse } from '../../engine/host/http.port.ts';
import { type AddressRules, addressRules } from './address-rules.ts';
import { type AdmittedRequest, admitRequest, refuseAddress } from './admit-request.ts';
import { bodyCollector, fragmentedAnswer } from './body-collector.ts';
import {
  type ContentCoding,
  collectHeaders,
  contentCoding,
  exchangeFailure,
  type OnHead,
  toExchangeFailure,
  underDeadline,
} from './exchange.ts';
import { nameLookups, type ResolveName } from './name-lookups.ts';
import { SOCKET_CHECKS, socketSlots } from './socket-slots.ts';

export interface NodeHttpOptions {
  /** As for `fetchHttp`. A listed name may resolve to any address. A listed range allows the addresses of all names in it. */
  readonly allow?: readonly string[] | undefined;
  /** The largest number of concurrent exchanges with one host and port. Others wait within their timeout. Default 64. */
  readonly maxSocketsPerHost?: number | undefined;
  /**
   * Returns all addresses of a name. Called for each new connection. Default: the system's resolver, or the name servers while a name
   * that no server answers occupies that resolver.
   */
  readonly resolve?: ((host: string) => Promise<readonly string[]>) | undefined;
}

export interface NodeHttpClient extends HttpClient {
  /** Closes idle connections. The client can still be used. Idle connections never keep a process alive. */
  close(): void;
}

// Less than the 5 s after which common servers close an idle connection: a request must not use a socket that is being closed.
const IDLE_SOCKET_MS = 4_000;

/**
 * The outbound HTTP port over `node:http` and `node:https`. It refuses what `fetchHttp` refuses, and each name that has an address that
 * is not public. So it also refuses a name with one private address among several, and a name that changes between check and
 * connection (DNS rebinding).
 *
 * @param options - see {@link NodeHttpOptions}
 * @throws TypeError for an invalid option
 */
export function nodeHttp(options: NodeHttpOptions = {}): NodeHttpClient {
  readOptions('nodeHttp', options, { ...SOCKET_CHECKS, resolve: aFunction });
  const rules = addressRules(options.allow);
  const slots = socketSlots(options.maxSocketsPerHost ?? 64);
  const resolve = options.resolve ?? nameLookups();
  // Deno sends a request again when a connection that it has kept ends without an answer, whatever the method is.
  const keeps = { keepAlive: !isDeno(), timeout: IDLE_SOCKET_MS };
  const agents = {
    http: new HttpAgent(keeps),
    https: new HttpsAgent(keeps),
    publicRules: addressRules(),
  };
  return Object.freeze({
    async send(request: HttpRequest): Promise<HttpResponse> {
      const admitted = admitRequest(request, rules);
      const lookup = guardedLookup(admitted, rules, resolve);
      return underDeadline(admitted, (signal, onHead) =>
        slots.run(admitted.url.host, signal, () => exchange(admitted, { signal, onHead }, agents, lookup)),
      );
    },
    close() {
      // Not destroy(), which would break active exchanges.
      for (const agent of [agents.http, agents.https]) {
        for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
      }
    },
  });
}

// The socket connects only to the addresses that this function returns, which are the checked ones.
function guardedLookup(request: AdmittedRequest, rules: AddressRules, resolve: ResolveName): LookupFunction {
  const trusted = rules.allowsHost(request.url.hostname, request.port);
  const check = async (host: string) => {
    const addresses = await resolve(host);
    if (addresses.length === 0) throw Object.assign(new Error('no address'), { code: 'ENOTFOUND' });
    for (const address of addresses) {
      const problem = isIP(address) === 0 || !trusted ? rules.addressProblem(address, request.port) : undefined;
      if (problem !== undefined) throw refuseAddress(request, problem);
    }
    return addresses.map((address) => ({ address, family: isIP(address) }));
  };
  return (host, options, callback) => {
    check(host).then(
      (entries) => {
        const [first] = entries;
        if (options.all || first === undefined) callback(null, entries);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };
}

function isDeno(): boolean {
  return 'Deno' in globalThis;
}

/** What all exchanges of a client share. */
interface Agents {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
  /** Only public addresses. */
  readonly publicRules: AddressRules;
}

async function exchange(
  request: AdmittedRequest,
  { signal, onHead }: { readonly signal: AbortSignal; readonly onHead: OnHead },
  agents: Agents,
  lookup: LookupFunction,
): Promise<HttpResponse> {
  let sent: ClientRequest | undefined;
  const destroy = () => sent?.destroy();
  try {
    if (signal.aborted) throw signal.reason;
    signal.addEventListener('abort', destroy, { once: true });
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      sent = beginRequest(request, agents, lookup).on('response', resolve).on('error', reject);
      sent.end(request.body);
    });
    const status = answer.statusCode ?? 0;
    // Read now: a socket that was closed has no address.
    const isPublic = agents.publicRules.addressProblem(answer.socket.remoteAddress ?? '', request.port) === undefined;
    const headersOf = (decoded: boolean) => collectHeaders(rawPairs(answer.rawHeaders), decoded);
    onHead(() => ({ status, headers: headersOf(false), body: new Uint8Array(), isPublic }));
    const coding = contentCoding(request, status, answer.headers['content-encoding']);
    const head = { status, headers: headersOf(coding !== undefined) };
    const collector = bodyCollector(request, head, signal);
    onHead(() => ({ ...head, body: collector.join(), isPublic }));
    if (coding === 'br' && isDeno()) {
      const what = 'answered in br without being asked to; Deno accepts such a body when it is cut short';
      throw exchangeFailure(request, 'encoding', what);
    }
    const received = piecesOf(request, answer);
    for await (const piece of coding === undefined ? received : decodeBody(received, coding)) collector.add(piece);
    return { ...head, body: collector.join(), isPublic };
  } catch (thrown) {
    destroy();
    throw toExchangeFailure(request, thrown);
  } finally {
    signal.removeEventListener('abort', destroy);
  }
}

/** The largest allowed framing of an answer, in addition to the size of its body. */
const FRAMING_BYTES = 512 * 1024;

// Node's parser makes a call for each chunk of a chunked answer, which takes some microseconds, before the stream joins the chunks.
// The number of received bytes shows what the chunks cost.
async function* piecesOf(request: AdmittedRequest, answer: IncomingMessage): AsyncGenerator<Uint8Array> {
  const { socket } = answer;
  const before = socket.bytesRead;
  let size = 0;
  for await (const piece of answer as AsyncIterable<Uint8Array>) {
    size += piece.byteLength;
    if (socket.bytesRead - before > 2 * size + FRAMING_BYTES) throw fragmentedAnswer(request);
    yield piece;
  }
}

function beginRequest(request: AdmittedRequest, agents: Agents, lookup: LookupFunction): ClientRequest {
  const secure = request.url.protocol === 'https:';
  const headers: Record<string, string | number> = {
    'accept-encoding': isDeno() ? 'gzip, deflate' : 'gzip, deflate, br',
    ...request.headers,
  };
  // Otherwise Node sends the body of a DELETE or OPTIONS request without a length.
  if (request.body !== undefined) headers['content-length'] = request.body.byteLength;
  const options = { method: request.method, headers, lookup };
  return secure
    ? httpsRequest(request.url, { ...options, agent: agents.https })
    : httpRequest(request.url, { ...options, agent: agents.http });
}

function* rawPairs(raw: readonly string[]): Generator<readonly [string, string]> {
  for (let i = 0; i + 1 < raw.length; i += 2) yield [raw[i] as string, raw[i + 1] as string];
}

/**
 * Yields the decoded pieces. Decodes only what the reader asks for. An empty body stays empty. If the reader stops early, the decoder
 * is destroyed, but not the source.
 *
 * @throws zlib's error if the body ends early or does not have the coding
 */
export async function* decodeBody(
  source: AsyncIterable<Uint8Array>,
  coding: ContentCoding,
): AsyncGenerator<Uint8Array> {
  const pieces = source[Symbol.asyncIterator]();
  const first = await pieces.next();
  if (first.done) return;
  const decoder = createDecoder(coding, first.value);
  const encoded = async function* () {
    yield first.value;
    for (let next = await pieces.next(); !next.done; next = await pieces.next()) yield next.value;
  };
  // The loop below throws the error that this callback ignores.
  pipeline(encoded(), decoder, () => {});
  for await (const chunk of decoder) yield chunk;
}

function createDecoder(coding: ContentCoding, firstPiece: Uint8Array): Transform {
  if (coding === 'gzip') return createGunzip();
  if (coding === 'br') return createBrotliDecompress();
  // By the standard, `deflate` means zlib's format, but some servers send the bare stream. A zlib header has 8 in its low nibble.
  return ((firstPiece[0] ?? 0) & 0x0f) === 0x08 ? createInflate() : createInflateRaw();
}
