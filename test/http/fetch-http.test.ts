import { describe, expect, it, vi } from 'vitest';
import { fetchHttp } from '../../src/adapters/http/fetch-http.ts';

const get = { method: 'GET', url: 'https://peer.example/a?token=planted' };
const answering = (response: () => Response | Promise<Response>) => fetchHttp({ fetch: async () => response() });

describe('fetchHttp', () => {
  it('calls the global fetch of that moment, unbound and without redirects', async () => {
    const original = globalThis.fetch;
    const http = fetchHttp();
    const seen: unknown[] = [];
    globalThis.fetch = async function (this: unknown, url, init) {
      seen.push(this, url, init?.redirect);
      return new Response('hello');
    };
    try {
      expect((await http.send(get)).status).toBe(200);
    } finally {
      globalThis.fetch = original;
    }
    expect(seen).toEqual([undefined, 'https://peer.example/a?token=planted', 'manual']);
  });

  it('a fetch that hides or follows a redirect is an error that says so', async () => {
    const hidden = Object.defineProperty(new Response(), 'type', { value: 'opaqueredirect' });
    const followed = Object.defineProperty(new Response('internal'), 'redirected', { value: true });
    for (const response of [hidden, followed]) {
      await expect(answering(() => response).send(get)).rejects.toMatchObject({
        code: 'AGENT_FAILED',
        details: { reason: 'redirect' },
        message: expect.stringContaining('GET https://peer.example/a answered with a redirect'),
      });
    }
  });

  it('refuses deflate on Workers, whose fetch would return the body undecoded', async () => {
    const http = answering(() => new Response('x', { headers: { 'content-encoding': 'deflate' } }));
    vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' });
    try {
      await expect(http.send(get)).rejects.toMatchObject({ code: 'AGENT_FAILED', details: { reason: 'encoding' } });
    } finally {
      vi.unstubAllGlobals();
    }
  });

  it('asks for no coding that the fetch of its runtime misreads, and refuses such a body: all on Node.js, gzip on Deno', async () => {
    const asked: unknown[] = [];
    const http = fetchHttp({
      fetch: async (_url, init) => {
        asked.push(new Headers(init?.headers).get('accept-encoding'));
        return new Response('x', { headers: { 'content-encoding': 'gzip' } });
      },
    });
    await expect(http.send(get)).rejects.toMatchObject({
      details: { reason: 'encoding' },
      message: expect.stringContaining('Use nodeHttp of ensemble-orchestrator/node'),
    });
    await http.send({ ...get, headers: { 'Accept-Encoding': 'gzip' } }).catch(() => {});
    expect(asked).toEqual(['identity', 'gzip']);
    vi.stubGlobal('Deno', {});
    await expect(http.send(get)).rejects.toMatchObject({ details: { reason: 'encoding' } });
    vi.unstubAllGlobals();
    vi.stubGlobal('Bun', {});
    expect((await http.send(get)).status).toBe(200);
    vi.unstubAllGlobals();
    expect(asked.slice(2)).toEqual(['br', null]);
  });

  it('ends at its timeout even if fetch ignores the signal, and cancels the late answer', async () => {
    let answer: (response: Response) => void = () => {};
    let cancelled: () => void = () => {};
    const wasCancelled = new Promise<void>((resolve) => {
      cancelled = resolve;
    });
    const http = answering(() => new Promise<Response>((resolve) => (answer = resolve)));
    await expect(http.send({ ...get, timeoutMs: 20 })).rejects.toMatchObject({
      code: 'TIMEOUT',
      details: { timeoutMs: 20 },
    });
    answer(new Response(new ReadableStream({ cancel: () => cancelled() })));
    await wasCancelled;
  });

  it('leaves no timer and no listener, whether it succeeds or fails', async () => {
    vi.useFakeTimers();
    try {
      const { signal } = new AbortController();
      const listeners = {
        added: vi.spyOn(signal, 'addEventListener'),
        removed: vi.spyOn(signal, 'removeEventListener'),
      };
      await answering(() => new Response('fine')).send({ ...get, signal });
      await expect(answering(() => Promise.reject(new Error('broken'))).send({ ...get, signal })).rejects.toThrow(
        'broke',
      );
      expect(vi.getTimerCount()).toBe(0);
      expect(listeners.added).toHaveBeenCalledTimes(2);
      expect(listeners.removed.mock.calls.map(([, listener]) => listener)).toEqual(
        listeners.added.mock.calls.map(([, listener]) => listener),
      );
    } finally {
      vi.useRealTimers();
    }
  });

  it('cancels a body that hangs after the headers when the signal is ignored', async () => {
    let cancelled: () => void = () => {};
    const wasCancelled = new Promise<void>((resolve) => {
      cancelled = resolve;
    });
    const http = answering(() => new Response(new ReadableStream({ cancel: () => cancelled() })));
    await expect(http.send({ ...get, timeoutMs: 20 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    await wasCancelled;
  });

  it('does not copy a runtime message with the whole URL into the error', async () => {
    const http = answering(() => Promise.reject(new TypeError(`error sending request for url (${get.url})`)));
    const error = await http.send(get).catch((thrown: Error) => thrown);
    expect(`${(error as Error).message} ${(error as Error).cause}`).not.toContain('planted');
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: true, details: { reason: 'connection' } });
  });

  it('a port that fetch blocks is a refusal, not a broken connection', async () => {
    await expect(fetchHttp().send({ method: 'GET', url: 'http://peer.example:6667/' })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      retryable: false,
      message: expect.stringMatching(/never uses port 6667\. Use nodeHttp/),
    });
  });

  it('joins repeated headers, also set-cookie, and drops headers of the connection', async () => {
    const headers = new Headers({ connection: 'keep-alive', 'x-a': '1' });
    headers.append('set-cookie', 'a=1');
    headers.append('set-cookie', 'b=2');
    const answer = await answering(() => new Response('', { headers })).send(get);
    expect(answer.headers).toEqual({
      'content-type': 'text/plain;charset=UTF-8',
      'set-cookie': 'a=1, b=2',
      'x-a': '1',
    });
  });

  it.each([0, -1, 1.5, Number.NaN])('maxSocketsPerHost %d is a TypeError at construction', (value) => {
    expect(() => fetchHttp({ maxSocketsPerHost: value })).toThrow(TypeError);
  });
});
