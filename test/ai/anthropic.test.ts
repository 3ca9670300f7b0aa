/** `aiModels` with Anthropic's provider, against the wire format of the Messages API. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ModelAnswer, ModelProvider } from '../../src/engine/operation/model.port.ts';
import { aiModels } from '../../src/entries/ai.ts';
import { events, json, type ModelServer, modelServer } from './model-server.ts';
import { providers } from './providers.ts';
import { block, message, messageEvents, request, SCHEMA, textDelta, WEATHER } from './wire.ts';

const API_KEY = 'sk-ant-api03-0123456789abcdef';

let server: ModelServer;
let models: ModelProvider;
beforeEach(async () => {
  server = await modelServer();
  models = aiModels(providers.createAnthropic({ apiKey: API_KEY, baseURL: `${server.url}/v1` }));
});
afterEach(() => server.close());

const toolUse = { type: 'tool_use', id: 'toolu_01', name: 'get_weather', input: { city: 'Oslo' } };

describe('one call of Anthropic', () => {
  it('sends the prompt and its settings, and answers with text, usage and model', async () => {
    server.next(json(message([{ type: 'text', text: 'Rain.' }])));
    const answer = await models.generate(request({ system: 'Be brief.', temperature: 0.2, maxTokens: 50 }));
    expect(answer).toEqual({
      text: 'Rain.',
      toolCalls: [],
      usage: { inputTokens: 12, outputTokens: 7 },
      finishReason: 'stop',
      model: 'claude-sonnet-4-5-20250929',
    });
    const [sent] = server.received;
    expect(sent?.path).toBe('/v1/messages');
    expect(sent?.headers).toMatchObject({ 'x-api-key': API_KEY, 'idempotency-key': 'key-1' });
    expect(sent?.body).toMatchObject({
      model: 'm-1',
      max_tokens: 50,
      temperature: 0.2,
      system: [{ type: 'text', text: 'Be brief.' }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'What is the weather in Oslo?' }] }],
    });
    expect(sent?.body).not.toHaveProperty('stream');
  });

  it('sends provider options, and the price of a model stays with the provider', async () => {
    const prices = { 'm-1': { input: 3, output: 15 } };
    const thinking = aiModels(providers.createAnthropic({ apiKey: API_KEY, baseURL: `${server.url}/v1` }), {
      prices,
      providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 2000 } } },
    });
    server.next(json(message([{ type: 'text', text: 'Rain.' }])));
    await thinking.generate(request());
    expect(server.received[0]?.body.thinking).toEqual({ type: 'enabled', budget_tokens: 2000 });
    expect(thinking.prices).toEqual(prices);
  });

  it('reports what ended the answer', async () => {
    server.next(json(message([{ type: 'text', text: 'Ra' }], { stop_reason: 'max_tokens' })));
    expect(await models.generate(request())).toMatchObject({ text: 'Ra', finishReason: 'length' });
    server.next(json(message([], { stop_reason: 'refusal' })));
    expect(await models.generate(request())).toMatchObject({ text: '', finishReason: 'content-filter' });
  });
});

describe('tools of Anthropic', () => {
  it('sends tools, and a result goes back with signed thinking, calls and errors in their order', async () => {
    const thinking = { type: 'thinking', thinking: 'The user asks for weather.', signature: 'c2lnbmF0dXJl' };
    const second = { ...toolUse, id: 'toolu_02', input: { city: 'Bergen' } };
    const content = [thinking, { type: 'text', text: 'I look.' }, toolUse, second];
    server.next(json(message(content, { stop_reason: 'tool_use' })), json(message([{ type: 'text', text: 'Rain.' }])));
    const asked = await models.generate(request({ tools: [WEATHER] }));
    expect(asked).toMatchObject({
      text: 'I look.',
      finishReason: 'tool-calls',
      toolCalls: [
        { id: 'toolu_01', name: 'get_weather', arguments: { city: 'Oslo' } },
        { id: 'toolu_02', name: 'get_weather', arguments: { city: 'Bergen' } },
      ],
    });
    const { name, description, inputSchema } = WEATHER;
    expect(server.received[0]?.body.tools).toEqual([
      expect.objectContaining({ name, description, input_schema: inputSchema }),
    ]);

    // What a resumed execution has is the stored JSON.
    const stored: ModelAnswer = JSON.parse(JSON.stringify(asked));
    const [first, other] = stored.toolCalls as [ModelAnswer['toolCalls'][0], ModelAnswer['toolCalls'][0]];
    await models.generate(
      request({
        tools: [WEATHER],
        messages: [
          { role: 'user', text: 'Weather?' },
          { role: 'assistant', answer: stored },
          { role: 'tool', call: first, result: { rain: true }, isError: false },
          { role: 'tool', call: other, result: 'no such city', isError: true },
        ],
      }),
    );
    const [user, assistant, results, ...more] = server.received[1]?.body.messages ?? [];
    expect(more).toEqual([]);
    expect(user.content).toEqual([{ type: 'text', text: 'Weather?' }]);
    expect(assistant).toEqual({ role: 'assistant', content });
    expect(results).toEqual({
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_01', content: '{"rain":true}' },
        { type: 'tool_result', tool_use_id: 'toolu_02', content: 'no such city', is_error: true },
      ],
    });
  });

  it('an answer without state, such as one of another provider, goes back by its text and calls', async () => {
    server.next(json(message([{ type: 'text', text: 'Rain.' }])));
    const call = { id: 'toolu_01', name: 'get_weather', arguments: '{"city": Oslo' };
    const answer = { text: '', toolCalls: [call], usage: { inputTokens: 1, outputTokens: 1 }, model: 'other' };
    await models.generate(
      request({
        tools: [WEATHER],
        messages: [
          { role: 'user', text: 'Weather?' },
          { role: 'assistant', answer: { ...answer, finishReason: 'tool-calls', state: { itemId: 'x' } } },
          { role: 'tool', call, result: 'the arguments are not JSON', isError: true },
        ],
      }),
    );
    expect(server.received[0]?.body.messages[1].content).toEqual([
      { type: 'tool_use', id: 'toolu_01', name: 'get_weather', input: {} },
    ]);
  });
});

describe('a stream of Anthropic', () => {
  const thought = block(0, { type: 'thinking', thinking: '', signature: '' }, [
    { type: 'thinking_delta', thinking: 'Oslo ' },
    { type: 'thinking_delta', thinking: 'is wet.' },
    { type: 'signature_delta', signature: 'c2lnbmF0dXJl' },
  ]);
  const said = block(1, { type: 'text', text: '' }, [textDelta('It '), textDelta('rains.')]);
  const called = block(2, { type: 'tool_use', id: 'toolu_01', name: 'get_weather', input: {} }, [
    { type: 'input_json_delta', partial_json: '' },
    { type: 'input_json_delta', partial_json: '{"city":' },
    { type: 'input_json_delta', partial_json: '"Oslo"}' },
  ]);

  it('passes each part of the text, and answers as a call without a stream does', async () => {
    server.next(events(messageEvents([...thought, ...said, ...called], 'tool_use')));
    const deltas: string[] = [];
    const answer = await models.generate(request({ tools: [WEATHER], onText: (delta) => deltas.push(delta) }));
    expect(deltas).toEqual(['It ', 'rains.']);
    expect(answer).toMatchObject({
      text: 'It rains.',
      toolCalls: [{ id: 'toolu_01', name: 'get_weather', arguments: { city: 'Oslo' } }],
      usage: { inputTokens: 12, outputTokens: 7 },
      finishReason: 'tool-calls',
      model: 'claude-sonnet-4-5-20250929',
    });
    expect(server.received[0]?.body.stream).toBe(true);

    server.next(json(message([{ type: 'text', text: 'Rain.' }])));
    const [call] = answer.toolCalls as [ModelAnswer['toolCalls'][0]];
    await models.generate(
      request({
        tools: [WEATHER],
        messages: [
          { role: 'user', text: 'Weather?' },
          { role: 'assistant', answer },
          { role: 'tool', call, result: 'rain', isError: false },
        ],
      }),
    );
    expect(server.received[1]?.body.messages[1].content).toEqual([
      { type: 'thinking', thinking: 'Oslo is wet.', signature: 'c2lnbmF0dXJl' },
      { type: 'text', text: 'It rains.' },
      toolUse,
    ]);
  });

  it('that breaks in the middle fails, retryable, after the parts that came', async () => {
    const begun = messageEvents(said, 'end_turn').slice(0, 4);
    server.next(events(begun, true), events(begun));
    for (const _ of [1, 2]) {
      const deltas: string[] = [];
      const failed = models.generate(request({ onText: (delta) => deltas.push(delta) }));
      await expect(failed).rejects.toMatchObject({ code: 'AGENT_FAILED', retryable: true });
      expect(deltas).toEqual(['It ']);
    }
  });

  it('that reports an overload in the middle fails, retryable', async () => {
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
    server.next(events([...messageEvents(said, 'end_turn').slice(0, 4), error]));
    const failed = models.generate(request({ onText: () => {} }));
    await expect(failed).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: true,
      message: expect.stringContaining('Overloaded'),
    });
  });
});

describe('refusals of Anthropic', () => {
  const refuse = (status: number, type: string, text: string, headers: Readonly<Record<string, string>> = {}) =>
    json({ type: 'error', error: { type, message: text }, request_id: 'req_1' }, status, headers);

  it('a rate limit is retryable, with the wait that the server asks for, and nothing is sent twice', async () => {
    server.next(refuse(429, 'rate_limit_error', 'Too many tokens', { 'retry-after': '17' }));
    await expect(models.generate(request())).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: true,
      details: { status: 429, retryAfterMs: 17_000 },
    });
    expect(server.received).toHaveLength(1);
  });

  it('an overload (529) is retryable, also before a stream begins', async () => {
    for (const onText of [undefined, () => {}]) {
      server.next(refuse(529, 'overloaded_error', 'Overloaded'));
      await expect(models.generate(request(onText ? { onText } : {}))).rejects.toMatchObject({
        retryable: true,
        details: { status: 529 },
      });
    }
  });

  it('a wrong request is not retryable, and the message says what the provider says', async () => {
    server.next(refuse(400, 'invalid_request_error', 'max_tokens: must be at least 1'));
    await expect(models.generate(request())).rejects.toMatchObject({
      retryable: false,
      message: 'the model m-1 of anthropic.messages answered 400: max_tokens: must be at least 1',
      details: { status: 400 },
    });
  });

  it('a refused key is not retryable, and the error does not hold the key', async () => {
    server.next(refuse(401, 'authentication_error', `invalid x-api-key: ${API_KEY}`));
    const error = await models.generate(request()).catch((thrown) => thrown);
    expect(error).toMatchObject({ retryable: false, details: { status: 401 } });
    expect(error.message).toContain('API key');
    expect(`${error.message}${error.stack}${JSON.stringify(error)}${String(error.cause)}`).not.toContain(API_KEY);
  });
});

it('Anthropic is asked for structured output by its schema', async () => {
  server.next((response) => {
    // The provider asks old models by a tool, and new ones by a format.
    const { tools } = server.received[0]?.body ?? {};
    const tool = { type: 'tool_use', id: 'toolu_01', name: 'json', input: { mood: 'fine' } };
    json(message([tools ? tool : { type: 'text', text: '{"mood":"fine"}' }]))(response);
  });
  const answer = await models.generate(request({ schema: SCHEMA }));
  expect(JSON.parse(answer.text)).toEqual({ mood: 'fine' });
  expect(answer.toolCalls).toEqual([]);
  expect(JSON.stringify(server.received[0]?.body)).toContain('"mood":{"type":"string"}');
});
