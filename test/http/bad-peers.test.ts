import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fetchHttp } from '../../src/adapters/http/fetch-http.ts';
import { nodeHttp } from '../../src/adapters/http/node-http.ts';
import { isOrchestratorError } from '../../src/engine/errors.ts';
import type { HttpClient, HttpRequest } from '../../src/engine/ports/http.ts';
import { type BadPeer, startBadPeer } from './bad-peer.ts';

// The plan's figure is 1,000 each; the normal run does 20. Real sockets and real time: the one place where both are the subject.
const TIMES = 20;
const TIMEOUT_MS = 120;
const SLACK_MS = 100;
const MIB = 1024 * 1024;

let peer: BadPeer;
beforeAll(async () => {
  peer = await startBadPeer();
});
afterAll(() => peer.close());

const clients: [string, (allow: readonly string[]) => HttpClient][] = [
  ['fetchHttp', (allow) => fetchHttp({ allow })],
  ['nodeHttp', (allow) => nodeHttp({ allow })],
];

/** How long after a plain timer of `TIMEOUT_MS` the work ended, in ms: a stalled machine delays both alike. */
async function overrun(work: () => Promise<unknown>): Promise<number> {
  const fired = new Promise<number>((resolve) => setTimeout(() => resolve(performance.now()), TIMEOUT_MS));
  await work();
  const ended = performance.now();
  return ended - (await fired);
}

// What is live, not what waits to be collected: the collector is called before each look.
setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');
function liveMemory(): number {
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const repeat = <T>(work: () => Promise<T>) => Promise.all(Array.from({ length: TIMES }, work));

describe.each(clients)('bad peers and %s', (_name, create) => {
  const send = (path: string, request: Partial<HttpRequest> = {}) =>
    create(['127.0.0.1']).send({ method: 'GET', url: peer.baseUrl + path, timeoutMs: 10_000, ...request });

  const outcome = (path: string, request?: Partial<HttpRequest>) =>
    send(path, request).then(
      (answer) => `answered ${answer.status} with ${answer.body.byteLength} bytes`,
      (error: unknown) =>
        isOrchestratorError(error) ? `${error.code} ${error.details.reason ?? ''} ${error.retryable}` : `${error}`,
    );

  it.each(['/never', '/trickle', '/infinite-1xx'])('T34: %s ends by the timeout, its sockets closed', async (path) => {
    const late = await repeat(() =>
      overrun(async () => expect(await outcome(path, { timeoutMs: TIMEOUT_MS })).toBe('TIMEOUT  true')),
    );
    expect(Math.max(...late)).toBeLessThan(SLACK_MS);
    await peer.closed(path);
  });

  it.each([
    ['/infinite', 'AGENT_FAILED too-large false'],
    ['/big-header', 'AGENT_FAILED malformed true'],
    ['/garbage', 'AGENT_FAILED malformed true'],
    ['/reset', 'AGENT_FAILED connection true'],
    ['/reset-mid-body', 'AGENT_FAILED connection true'],
    ['/short', /^AGENT_FAILED (connection|malformed) true$/],
    // A length that lies low: what stands past it is not this answer.
    ['/long', /^answered 200 with 5 bytes$|^AGENT_FAILED (connection|malformed) true$/],
  ])('T34: %s ends as %s, its sockets closed', async (path, expected) => {
    for (const result of await repeat(() => outcome(path, { maxResponseBytes: 256 * 1024 }))) {
      expect(result).toMatch(expected);
    }
    await peer.closed(path);
  });

  it('T34: a server that refuses the connection is a broken exchange that names the code', async () => {
    const closedPort = await startBadPeer().then((other) => other.close().then(() => other.port));
    const failing = create(['127.0.0.1']).send({ method: 'GET', url: `http://127.0.0.1:${closedPort}/x?token=1` });
    await expect(failing).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: true,
      message: `GET http://127.0.0.1:${closedPort}/x failed: the connection broke or could not be made (ECONNREFUSED)`,
      details: { reason: 'connection', code: 'ECONNREFUSED' },
    });
  });

  it('T35: a gzip bomb of 200 MiB stops at 10 MiB decoded, with memory growth below twice that', async () => {
    await outcome('/bomb', { maxResponseBytes: 1 });
    const before = liveMemory();
    let peak = before;
    const look = () => {
      peak = Math.max(peak, liveMemory());
    };
    const watch = setInterval(look, 20);
    // The looks take longer than the answer: on a slow machine many seconds.
    const result = await outcome('/bomb', { timeoutMs: 50_000 });
    clearInterval(watch);
    look();
    expect(result).toBe('AGENT_FAILED too-large false');
    expect(peak - before).toBeLessThan(20 * MIB);
    await peer.closed('/bomb');
  });

  it('T35: eight codings and unknown codings are one error; broken and cut compression another', async () => {
    const seen = await Promise.all(['/encodings', '/zstd', '/broken-gzip'].map((path) => outcome(path)));
    expect(seen).toEqual(['AGENT_FAILED encoding true', 'AGENT_FAILED encoding true', 'AGENT_FAILED malformed true']);
  });

  it('reads deflate without its zlib header, and an empty body that claims to be gzip', async () => {
    expect(new TextDecoder().decode((await send('/raw-deflate')).body)).toBe('squeezed');
    expect((await send('/empty-gzip')).body).toHaveLength(0);
  });

  it('T36: a redirect loop and a redirect to the metadata address make one request each', async () => {
    expect(await outcome('/redirect-loop')).toBe('answered 302 with 0 bytes');
    const before = peer.count('/redirect-metadata');
    expect(await outcome('/redirect-metadata')).toBe('answered 307 with 0 bytes');
    expect(peer.count('/redirect-metadata')).toBe(before + 1);
  });

  it('A44: an address outside the allowed range is refused, not retried, without a connection', async () => {
    await expect(create(['127.0.0.1']).send({ method: 'GET', url: 'http://127.0.0.2/' })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      retryable: false,
      message:
        "GET http://127.0.0.2/ was refused: the address is not public (loopback). If it is meant to be reached, name it in the HTTP client's allow list",
    });
  });
});
