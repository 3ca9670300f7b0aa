import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fetchHttp } from '../../src/adapters/http/fetch-http.ts';
import { nodeHttp } from '../../src/adapters/http/node-http.ts';
import { isOrchestratorError } from '../../src/engine/base/errors.ts';
import type { HttpClient, HttpRequest } from '../../src/engine/host/http.port.ts';
import { scaled } from '../slowdown.ts';
import { type BadPeer, startBadPeer } from './bad-peer.ts';

// Real sockets and real time, because both are tested here.
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

/** How long after a plain timer of `TIMEOUT_MS` the work ended, in ms. A slow machine delays both equally. */
async function overrun(work: () => Promise<unknown>): Promise<number> {
  const fired = new Promise<number>((resolve) => setTimeout(() => resolve(performance.now()), TIMEOUT_MS));
  await work();
  const ended = performance.now();
  return ended - (await fired);
}

// Counts live memory only: the garbage collector is called before each measurement.
setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');
function liveMemory(): number {
  // The memory of buffers that the first call found to be unused is returned by the second.
  collect();
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const repeat = <T>(work: () => Promise<T>) => Promise.all(Array.from({ length: TIMES }, work));

describe.each(clients)('bad peers and %s', (name, create) => {
  // The fetch of Node.js accepts a compressed body that is cut short.
  const decodes = name === 'nodeHttp';
  const send = (path: string, request: Partial<HttpRequest> = {}) =>
    create(['127.0.0.1']).send({ method: 'GET', url: peer.baseUrl + path, timeoutMs: 10_000, ...request });

  const outcome = (path: string, request?: Partial<HttpRequest>) =>
    send(path, request).then(
      (answer) => `answered ${answer.status} with ${answer.body.byteLength} bytes`,
      (error: unknown) =>
        isOrchestratorError(error) ? `${error.code} ${error.details.reason ?? ''} ${error.retryable}` : `${error}`,
    );

  it.each(['/never', '/trickle', '/infinite-1xx'])('%s ends at the timeout, with its sockets closed', async (path) => {
    const late = await repeat(() =>
      overrun(async () => expect(await outcome(path, { timeoutMs: TIMEOUT_MS })).toBe('TIMEOUT  true')),
    );
    expect(Math.max(...late)).toBeLessThan(scaled(SLACK_MS));
    await peer.closed(path);
  });

  it.each([
    ['/infinite', 'AGENT_FAILED too-large false'],
    ['/big-header', 'AGENT_FAILED malformed true'],
    ['/garbage', 'AGENT_FAILED malformed true'],
    ['/reset', 'AGENT_FAILED connection true'],
    ['/reset-mid-body', 'AGENT_FAILED connection true'],
    ['/short', /^AGENT_FAILED (connection|malformed) true$/],
    // The length is too small: the rest does not belong to this answer.
    ['/long', /^answered 200 with 5 bytes$|^AGENT_FAILED (connection|malformed) true$/],
  ])('%s ends as %s, with its sockets closed', async (path, expected) => {
    for (const result of await repeat(() => outcome(path, { maxResponseBytes: 256 * 1024 }))) {
      expect(result).toMatch(expected);
    }
    await peer.closed(path);
  });

  it('a server that refuses the connection is a broken exchange, with the error code', async () => {
    const closedPort = await startBadPeer().then((other) => other.close().then(() => other.port));
    const failing = create(['127.0.0.1']).send({ method: 'GET', url: `http://127.0.0.1:${closedPort}/x?token=1` });
    await expect(failing).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: true,
      message: `GET http://127.0.0.1:${closedPort}/x failed: the connection broke or could not be made (ECONNREFUSED)`,
      details: { reason: 'connection', code: 'ECONNREFUSED' },
    });
  });

  it.runIf(decodes)(
    'a gzip bomb of 200 MiB stops at 10 decoded MiB, and memory grows by less than twice that',
    async () => {
      await outcome('/bomb', { maxResponseBytes: 1 });
      const before = liveMemory();
      let peak = before;
      let watch: ReturnType<typeof setTimeout> | undefined;
      // A measurement takes long on a slow machine: between two of them, the answer gets more time.
      const look = () => {
        const began = performance.now();
        peak = Math.max(peak, liveMemory());
        watch = setTimeout(look, 20 + performance.now() - began);
      };
      look();
      const result = await outcome('/bomb', { timeoutMs: 50_000 });
      look();
      clearTimeout(watch);
      expect(result).toBe('AGENT_FAILED too-large false');
      expect(peak - before).toBeLessThan(20 * MIB);
      await peer.closed('/bomb');
    },
  );

  it('many codings and unknown codings are one error; broken and cut compression are another', async () => {
    const seen = await Promise.all(['/encodings', '/zstd', '/broken-gzip'].map((path) => outcome(path)));
    const broken = `AGENT_FAILED ${decodes ? 'malformed' : 'encoding'} true`;
    expect(seen).toEqual(['AGENT_FAILED encoding true', 'AGENT_FAILED encoding true', broken]);
  });

  it.runIf(decodes)('reads deflate without a zlib header, and an empty body with the coding gzip', async () => {
    expect(new TextDecoder().decode((await send('/raw-deflate')).body)).toBe('squeezed');
    expect((await send('/empty-gzip')).body).toHaveLength(0);
  });

  it('a redirect loop and a redirect to the metadata address cause one request each', async () => {
    expect(await outcome('/redirect-loop')).toBe('answered 302 with 0 bytes');
    const before = peer.count('/redirect-metadata');
    expect(await outcome('/redirect-metadata')).toBe('answered 307 with 0 bytes');
    expect(peer.count('/redirect-metadata')).toBe(before + 1);
  });

  it('an address outside the allowed range is refused without a connection, and not retryable', async () => {
    await expect(create(['127.0.0.1']).send({ method: 'GET', url: 'http://127.0.0.2/' })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      retryable: false,
      message:
        "GET http://127.0.0.2/ was refused: the address is not public (loopback). If it is meant to be reached, allow it with the option `http: fetchHttp({ allow: ['127.0.0.2:80'] })`, or the same with nodeHttp",
    });
  });
});
