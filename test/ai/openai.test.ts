/** `aiModels` with OpenAI's provider and with the one for compatible servers, against the wire formats of both APIs. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ModelAnswer, ModelProvider } from '../../src/engine/operation/model.port.ts';
import { aiModels } from '../../src/entries/ai.ts';
import { scaled } from '../slowdown.ts';
import { chunks, events, json, type ModelServer, modelServer, text } from './model-server.ts';
import { providers } from './providers.ts';
import { chunk, completion, functionCall, outputText, request, response, SCHEMA, usageChunk, WEATHER } from './wire.ts';

const API_KEY = 'sk-proj-0123456789abcdefghij';

let server: ModelServer;
let responses: ModelProvider;
let chat: ModelProvider;
let compatible: ModelProvider;
beforeEach(async () => {
  server = await modelServer();
  const openai = providers.createOpenAI({ apiKey: API_KEY, baseURL: `${server.url}/v1` });
  responses = aiModels(openai);
  chat = aiModels((id) => openai.chat(id));
  compatible = aiModels(providers.createOpenAICompatible({ name: 'local', apiKey: API_KEY, baseURL: server.url }));
});
afterEach(() => server.close());

const weatherCall = (args: string) => ({
  id: 'call_1',
  type: 'function',
  function: { name: 'get_weather', arguments: args },
});
type Calls = ModelAnswer['toolCalls'];

describe('the Responses API of OpenAI', () => {
  it('answers with text, usage and model, for one request with the key of the call', async () => {
    server.next(json(response([outputText('msg_1', 'Rain.')])));
    expect(await responses.generate(request({ system: 'Be brief.', maxTokens: 50 }))).toMatchObject({
      text: 'Rain.',
      toolCalls: [],
      usage: { inputTokens: 12, outputTokens: 7 },
      finishReason: 'stop',
      model: 'gpt-5-2025-08-07',
    });
    const [sent] = server.received;
    expect(sent?.path).toBe('/v1/responses');
    expect(sent?.headers).toMatchObject({ authorization: `Bearer ${API_KEY}`, 'idempotency-key': 'key-1' });
    expect(sent?.body).toMatchObject({ model: 'm-1', max_output_tokens: 50 });
    expect(JSON.stringify(sent?.body.input)).toContain('Be brief.');
  });

  it('gets the ids of its items back with the results of the tools', async () => {
    const reasoning = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Look.' }] };
    const call = functionCall('fc_1', 'call_1', '{"city":"Oslo"}');
    server.next(json(response([reasoning, call])), json(response([outputText('msg_1', 'Rain.')])));
    const asked = await responses.generate(request({ tools: [WEATHER] }));
    expect(asked).toMatchObject({
      finishReason: 'tool-calls',
      toolCalls: [{ id: 'call_1', name: 'get_weather', arguments: { city: 'Oslo' } }],
    });
    const answer: ModelAnswer = JSON.parse(JSON.stringify(asked));
    const [made] = answer.toolCalls as [Calls[0]];
    await responses.generate(
      request({
        tools: [WEATHER],
        messages: [
          { role: 'user', text: 'Weather?' },
          { role: 'assistant', answer },
          { role: 'tool', call: made, result: { rain: true }, isError: false },
        ],
      }),
    );
    const [, thought, called, result] = server.received[1]?.body.input ?? [];
    expect(thought).toMatchObject({ id: 'rs_1' });
    // The provider sends a reference to the call, or the call itself.
    expect(called).toMatchObject(called.type === 'item_reference' ? { id: 'fc_1' } : { call_id: 'call_1' });
    expect(result).toEqual({ type: 'function_call_output', call_id: 'call_1', output: '{"rain":true}' });
  });

  it('streams', async () => {
    const started = response([], { status: 'in_progress' });
    const item = { type: 'message', id: 'msg_1', status: 'in_progress', role: 'assistant', content: [] };
    const delta = (part: string) => ({
      type: 'response.output_text.delta',
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      delta: part,
      logprobs: [],
    });
    server.next(
      events([
        { type: 'response.created', response: started },
        { type: 'response.in_progress', response: started },
        { type: 'response.output_item.added', output_index: 0, item },
        delta('It '),
        delta('rains.'),
        { type: 'response.output_item.done', output_index: 0, item: outputText('msg_1', 'It rains.') },
        { type: 'response.completed', response: response([outputText('msg_1', 'It rains.')]) },
      ]),
    );
    const deltas: string[] = [];
    const answer = await responses.generate(request({ onText: (part) => deltas.push(part) }));
    expect(deltas).toEqual(['It ', 'rains.']);
    expect(answer).toMatchObject({
      text: 'It rains.',
      usage: { inputTokens: 12, outputTokens: 7 },
      finishReason: 'stop',
      model: 'gpt-5-2025-08-07',
    });
  });

  it('a failure inside a stream is retryable if it is the server’s', async () => {
    const error = { code: 'server_error', message: 'The server had an error' };
    server.next(
      events([
        { type: 'response.created', response: response([], { status: 'in_progress' }) },
        { type: 'response.failed', response: response([], { status: 'failed', error }) },
      ]),
    );
    const failed = responses.generate(request({ onText: () => {} }));
    await expect(failed).rejects.toMatchObject({ code: 'AGENT_FAILED', retryable: true });
  });
});

describe('chat completions', () => {
  it.each([
    ['of OpenAI', () => chat, '/v1/chat/completions'],
    ['of a compatible server', () => compatible, '/chat/completions'],
  ] as const)('%s: text, calls and results of tools', async (_, provider, path) => {
    const asked = completion({ content: 'I look.', tool_calls: [weatherCall('{"city":"Oslo"}')] }, 'tool_calls');
    server.next(json(asked), json(completion({ content: 'Rain.' })));
    const answer = await provider().generate(request({ tools: [WEATHER], temperature: 0 }));
    expect(answer).toEqual({
      text: 'I look.',
      toolCalls: [{ id: 'call_1', name: 'get_weather', arguments: { city: 'Oslo' } }],
      usage: { inputTokens: 12, outputTokens: 7 },
      finishReason: 'tool-calls',
      model: 'gpt-4o-2024-08-06',
    });
    const [call] = answer.toolCalls as [Calls[0]];
    const last = await provider().generate(
      request({
        tools: [WEATHER],
        messages: [
          { role: 'user', text: 'Weather?' },
          { role: 'assistant', answer },
          { role: 'tool', call, result: { rain: true }, isError: false },
        ],
      }),
    );
    expect(last).toMatchObject({ text: 'Rain.', finishReason: 'stop' });
    expect(server.received[0]).toMatchObject({ path, headers: { 'idempotency-key': 'key-1' } });
    expect(server.received[0]?.body).toMatchObject({
      temperature: 0,
      tools: [{ type: 'function', function: { name: 'get_weather', parameters: WEATHER.inputSchema } }],
    });
    expect(server.received[1]?.body.messages.slice(1)).toMatchObject([
      { role: 'assistant', content: 'I look.', tool_calls: [weatherCall('{"city":"Oslo"}')] },
      { role: 'tool', tool_call_id: 'call_1', content: '{"rain":true}' },
    ]);
  });

  it('arguments that are not JSON stay text, and missing ones are an empty object', async () => {
    server.next(json(completion({ content: null, tool_calls: [weatherCall('{"city": Oslo')] }, 'tool_calls')));
    expect((await compatible.generate(request({ tools: [WEATHER] }))).toolCalls[0]?.arguments).toBe('{"city": Oslo');
    server.next(json(completion({ content: null, tool_calls: [weatherCall('')] }, 'tool_calls')));
    expect((await compatible.generate(request({ tools: [WEATHER] }))).toolCalls[0]?.arguments).toEqual({});
  });

  it('an answer without usage has zeros', async () => {
    const { usage: _, ...bare } = completion({ content: 'Rain.' });
    server.next(json(bare));
    expect((await compatible.generate(request())).usage).toEqual({ inputTokens: 0, outputTokens: 0 });
  });

  it('streams text and calls', async () => {
    const call = (part: object) => ({ tool_calls: [{ index: 0, ...part }] });
    server.next(
      chunks([
        chunk({ role: 'assistant', content: '' }),
        chunk({ content: 'I ' }),
        chunk({ content: 'look.' }),
        chunk(call({ id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '' } })),
        chunk(call({ function: { arguments: '{"city":' } })),
        chunk(call({ function: { arguments: '"Oslo"}' } })),
        chunk({}, 'tool_calls'),
        usageChunk,
      ]),
    );
    const deltas: string[] = [];
    const answer = await chat.generate(request({ tools: [WEATHER], onText: (part) => deltas.push(part) }));
    expect(deltas).toEqual(['I ', 'look.']);
    expect(answer).toEqual({
      text: 'I look.',
      toolCalls: [{ id: 'call_1', name: 'get_weather', arguments: { city: 'Oslo' } }],
      usage: { inputTokens: 12, outputTokens: 7 },
      finishReason: 'tool-calls',
      model: 'gpt-4o-2024-08-06',
    });
    expect(server.received[0]?.body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
  });

  it.each([
    ['OpenAI', () => chat],
    ['a compatible server', () => compatible],
  ] as const)('a stream of %s that ends early fails, retryable', async (_, provider) => {
    const begun = [chunk({ role: 'assistant', content: 'It ' })];
    for (const reply of [chunks(begun, { breaks: true }), chunks(begun, { done: false })]) {
      server.next(reply);
      const deltas: string[] = [];
      const failed = provider().generate(request({ onText: (part) => deltas.push(part) }));
      await expect(failed).rejects.toMatchObject({ code: 'AGENT_FAILED', retryable: true });
      expect(deltas).toEqual(['It ']);
    }
  });
});

describe('structured output', () => {
  it('the schema is in the request of OpenAI', async () => {
    server.next(json(completion({ content: '{"mood":"fine"}' })), json(response([outputText('m', '{"mood":"fine"}')])));
    for (const provider of [chat, responses]) {
      expect((await provider.generate(request({ schema: SCHEMA }))).text).toBe('{"mood":"fine"}');
    }
    expect(server.received[0]?.body.response_format).toMatchObject({
      type: 'json_schema',
      json_schema: { schema: SCHEMA },
    });
    expect(server.received[1]?.body.text.format).toMatchObject({ type: 'json_schema', schema: SCHEMA });
  });

  it('the schema is in the prompt of a compatible server, unless the host says that the server knows schemas', async () => {
    server.next(json(completion({ content: '{"mood":"fine"}' })), json(completion({ content: '{"mood":"fine"}' })));
    await compatible.generate(request({ schema: SCHEMA, system: 'Be brief.' }));
    const [plain] = server.received;
    expect(plain?.body.response_format).toEqual({ type: 'json_object' });
    expect(plain?.body.messages[0]).toMatchObject({
      role: 'system',
      content: expect.stringMatching(/^Be brief\.\n\nAnswer with JSON only.*"mood"/s),
    });
    const knowing = providers.createOpenAICompatible({
      name: 'local',
      baseURL: server.url,
      supportsStructuredOutputs: true,
    });
    await aiModels(knowing).generate(request({ schema: SCHEMA }));
    expect(server.received[1]?.body.response_format).toMatchObject({ json_schema: { schema: SCHEMA } });
    expect(server.received[1]?.body.messages).toHaveLength(1);
  });
});

describe('failures of a server', () => {
  const generate = () => compatible.generate(request());

  it('the wait before a retry is read from seconds, from ms and from a date', async () => {
    const body = { error: { message: 'Rate limit reached', type: 'requests', code: 'rate_limit_exceeded' } };
    const later = new Date(Date.now() + 3_600_000).toUTCString();
    const waits: unknown[] = [];
    for (const headers of [
      { 'retry-after': '2' },
      { 'retry-after-ms': '1500', 'retry-after': '2' },
      { 'retry-after': later },
    ]) {
      server.next(json(body, 429, headers as unknown as Record<string, string>));
      const error = await generate().catch((thrown) => thrown);
      expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: true, details: { status: 429 } });
      waits.push(error.details.retryAfterMs);
    }
    expect(waits.slice(0, 2)).toEqual([2000, 1500]);
    expect(waits[2]).toBeGreaterThan(3_000_000);
    expect(waits[2]).toBeLessThanOrEqual(3_600_000);
  });

  it('an answer that is not of the API fails, retryable, and its text is not in the error', async () => {
    for (const reply of [
      text('<html>private page</html>', 'text/html'),
      text('{"choices": [', 'application/json'),
      json({ private: 1 }),
    ]) {
      server.next(reply);
      const error = await generate().catch((thrown) => thrown);
      expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: true, details: { reason: 'malformed' } });
      expect(error.message).not.toContain('private');
    }
  });

  it('a part of a stream that is not of the API fails in the same way', async () => {
    for (const data of ['{"choices": [private', '{"choices": "private"}']) {
      server.next(text(`data: ${data}\n\n`, 'text/event-stream'));
      const error = await compatible.generate(request({ onText: () => {} })).catch((thrown) => thrown);
      expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: true, details: { reason: 'malformed' } });
      expect(error.message).not.toContain('private');
    }
  });

  it('a server error with a page in place of JSON keeps its status', async () => {
    server.next(text('<html>bad gateway</html>', 'text/html', 502));
    await expect(generate()).rejects.toMatchObject({ retryable: true, details: { status: 502 } });
  });

  it('a message of the provider is cut, and loses keys and the queries of URLs', async () => {
    const message = `Bad. Key ${API_KEY} at https://user:pw@host.example/path?token=abc, Authorization: Bearer abcdef. ${'x'.repeat(2000)}`;
    server.next(json({ error: { message, type: 'invalid_request_error' } }, 400));
    const error = await generate().catch((thrown) => thrown);
    expect(error.message).toMatch(/^the model m-1 of local\.chat answered 400: Bad\. Key \*\*\* at/);
    expect(error.message).toContain('https://host.example/path');
    for (const secret of [API_KEY, 'token=abc', 'pw@', 'abcdef']) expect(error.message).not.toContain(secret);
    expect(error.message.length).toBeLessThan(600);
    expect(error.cause).toBeUndefined();
  });

  it('a server that is not there fails, retryable, with the code of the network', async () => {
    await server.close();
    await expect(generate()).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: true,
      details: { reason: 'connection', code: 'ECONNREFUSED' },
    });
  });

  it('a missing key is not retryable, and the message names what to set', async () => {
    const before = process.env.OPENAI_API_KEY;
    delete process.env.OPENAI_API_KEY;
    try {
      const models = aiModels(providers.createOpenAI({ baseURL: server.url }));
      await expect(models.generate(request())).rejects.toMatchObject({
        code: 'AGENT_FAILED',
        retryable: false,
        message: expect.stringContaining('OPENAI_API_KEY'),
      });
      expect(server.received).toEqual([]);
    } finally {
      if (before !== undefined) process.env.OPENAI_API_KEY = before;
    }
  });
});

describe('the end of a call', () => {
  it('a call that takes too long ends with TIMEOUT, retryable, and its connection is closed', async () => {
    const timeoutMs = scaled(100);
    server.next(() => {});
    await expect(compatible.generate(request({ timeoutMs }))).rejects.toMatchObject({
      code: 'TIMEOUT',
      retryable: true,
      details: { timeoutMs },
    });
    await server.hungUp;
  });

  it('a stream that never ends stops at the deadline, and its connection is closed', async () => {
    server.next((reply) => {
      reply.writeHead(200, { 'content-type': 'text/event-stream' });
      reply.write(`data: ${JSON.stringify(chunk({ role: 'assistant', content: 'It ' }))}\n\n`);
    });
    const failed = compatible.generate(request({ timeoutMs: scaled(100), onText: () => {} }));
    await expect(failed).rejects.toMatchObject({ code: 'TIMEOUT', retryable: true });
    await server.hungUp;
  });

  it('an abort of the caller rejects with its reason, and closes the connection', async () => {
    const controller = new AbortController();
    const reason = new Error('cancelled');
    server.next(() => controller.abort(reason));
    await expect(compatible.generate(request({ signal: controller.signal }))).rejects.toBe(reason);
    await server.hungUp;
    await expect(compatible.generate(request({ signal: controller.signal }))).rejects.toBe(reason);
    expect(server.received).toHaveLength(1);
  });
});
