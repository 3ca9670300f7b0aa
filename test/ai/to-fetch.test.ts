/** `toFetch`: requests of a provider pass the checks of an HTTP client. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import type { HttpClient, HttpRequest } from '../../src/engine/host/http.port.ts';
import { aiModels, toFetch } from '../../src/entries/ai.ts';
import { nodeHttp } from '../../src/entries/node.ts';
import { fetchHttp } from '../../src/index.ts';
import { chunks, json, type ModelServer, modelServer } from './model-server.ts';
import { providers } from './providers.ts';
import { chunk, completion, request, usageChunk } from './wire.ts';

let server: ModelServer;
beforeEach(async () => {
  server = await modelServer();
});
afterEach(() => server.close());

const models = (http: HttpClient) =>
  aiModels(providers.createOpenAICompatible({ name: 'local', baseURL: server.url, fetch: toFetch(http) }));

describe.each([
  ['fetchHttp', fetchHttp],
  ['nodeHttp', nodeHttp],
] as const)('a provider over %s', (_, client) => {
  it('calls the model, whole and streamed', async () => {
    const { generate } = models(client({ allow: ['127.0.0.1'] }));
    server.next(json(completion({ content: 'Rain.' })));
    expect(await generate(request())).toMatchObject({ text: 'Rain.', finishReason: 'stop' });
    expect(server.received[0]?.headers).toMatchObject({ 'idempotency-key': 'key-1' });
    server.next(chunks([chunk({ content: 'It ' }), chunk({ content: 'rains.' }), chunk({}, 'stop'), usageChunk]));
    const deltas: string[] = [];
    const answer = await generate(request({ onText: (part) => deltas.push(part) }));
    expect(deltas.join('')).toBe('It rains.');
    expect(answer).toMatchObject({ text: 'It rains.', usage: { inputTokens: 12, outputTokens: 7 } });
  });

  it('is refused a private address, not retryable, and the server gets nothing', async () => {
    await expect(models(client()).generate(request())).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      retryable: false,
      details: { reason: 'address' },
    });
    expect(server.received).toEqual([]);
  });

  it('keeps statuses and headers of refusals, and follows no redirect', async () => {
    const { generate } = models(client({ allow: ['127.0.0.1'] }));
    server.next(json({ error: { message: 'slow down' } }, 429, { 'retry-after': '3' }));
    await expect(generate(request())).rejects.toMatchObject({
      retryable: true,
      details: { status: 429, retryAfterMs: 3000 },
    });
    server.next(json({}, 307, { location: `${server.url}/elsewhere` }));
    await expect(generate(request())).rejects.toMatchObject({ retryable: false, details: { status: 307 } });
    expect(server.received).toHaveLength(2);
  });

  it('ends with the reason of the caller, and the connection is closed', async () => {
    const controller = new AbortController();
    const reason = new Error('cancelled');
    server.next(() => controller.abort(reason));
    const { generate } = models(client({ allow: ['127.0.0.1'] }));
    await expect(generate(request({ signal: controller.signal }))).rejects.toBe(reason);
    await server.hungUp;
  });
});

describe('a client that calls `onChunk`', () => {
  const HEAD = { status: 200, headers: { 'content-type': 'text/event-stream' } };
  const data = (value: unknown) => new TextEncoder().encode(`data: ${JSON.stringify(value)}\n\n`);

  it('streams each part as it comes', async () => {
    const deltas: string[] = [];
    const http: HttpClient = {
      async send({ onChunk }: HttpRequest) {
        onChunk?.(data(chunk({ content: 'It ' })), HEAD);
        while (deltas.length === 0) await new Promise((resolve) => setImmediate(resolve));
        onChunk?.(data(chunk({ content: 'rains.' })), HEAD);
        onChunk?.(data(chunk({}, 'stop')), HEAD);
        return { ...HEAD, body: new Uint8Array() };
      },
    };
    const answer = await models(http).generate(request({ onText: (part) => deltas.push(part) }));
    expect(deltas).toEqual(['It ', 'rains.']);
    expect(answer.text).toBe('It rains.');
  });

  it('passes on what breaks the body, with its code', async () => {
    const http: HttpClient = {
      async send({ onChunk }: HttpRequest) {
        onChunk?.(data(chunk({ content: 'It ' })), HEAD);
        throw new OrchestratorError('AGENT_FAILED', 'the answer is too large', { details: { reason: 'too-large' } });
      },
    };
    await expect(models(http).generate(request({ onText: () => {} }))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: false,
      details: { reason: 'too-large' },
    });
  });
});
