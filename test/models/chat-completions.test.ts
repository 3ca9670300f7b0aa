/** The built-in model provider: what it sends to a server, and how it reads each answer. The server is a real one. */

import { afterEach, describe, expect, it } from 'vitest';
import { chatCompletions } from '../../src/adapters/models/chat-completions.ts';
import type { ModelServerOptions } from '../../src/adapters/models/model-server-options.ts';
import type { ModelRequest } from '../../src/entries/adapter.ts';
import { fetchHttp, type HttpClient, isOrchestratorError } from '../../src/index.ts';
import { completion, type ModelServer, type ScriptedAnswer, startModelServer, streamOf } from './model-server.ts';

const open: ModelServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

const NOW = Date.UTC(2026, 0, 1);
const KEY = 'sk-very-secret-key';
const allowed = fetchHttp({ allow: ['127.0.0.1'] });
/** A client that does not pass on the parts of a body. */
const withoutChunks: HttpClient = { send: ({ onChunk: _onChunk, ...request }) => allowed.send(request) };

async function serve(answers: readonly ScriptedAnswer[], options: Partial<ModelServerOptions> = {}, http = allowed) {
  const server = await startModelServer(answers);
  open.push(server);
  const provider = chatCompletions({ url: server.url, apiKey: KEY, ...options }, { http, now: () => NOW });
  return { server, provider };
}

const request = (more: Partial<ModelRequest> = {}): ModelRequest => ({
  model: 'small',
  messages: [{ role: 'user', text: 'Hi' }],
  timeoutMs: 20_000,
  idempotencyKey: 'key-1',
  signal: new AbortController().signal,
  ...more,
});

async function failureOf(answer: ScriptedAnswer, more: Partial<ModelRequest> = {}, options = {}) {
  const { provider } = await serve([answer], options);
  try {
    await provider.generate(request(more));
  } catch (error) {
    if (isOrchestratorError(error)) return error;
    throw error;
  }
  throw new Error('the call succeeded');
}

describe('a request', () => {
  it('has the key, an idempotency key, and the conversation in the wire format', async () => {
    const { server, provider } = await serve([completion('Hello')], { headers: { 'x-team': 'blue team' } });
    const answer = await provider.generate(
      request({
        system: 'Be brief.',
        temperature: 0.2,
        maxTokens: 50,
        tools: [{ name: 'find', description: 'Finds', inputSchema: { type: 'object', properties: {} } }],
        messages: [
          { role: 'user', text: 'Hi' },
          {
            role: 'assistant',
            answer: {
              text: '',
              toolCalls: [{ id: 'c1', name: 'find', arguments: { q: 'x' } }],
              usage: { inputTokens: 1, outputTokens: 1 },
              finishReason: 'tool-calls',
              model: 'small',
            },
          },
          { role: 'tool', call: { id: 'c1', name: 'find', arguments: {} }, result: { found: 2 }, isError: false },
        ],
      }),
    );
    expect(answer).toEqual({
      text: 'Hello',
      toolCalls: [],
      usage: { inputTokens: 11, outputTokens: 7 },
      finishReason: 'stop',
      model: 'small-1',
    });
    const [received] = server.requests;
    expect(received?.path).toBe('/v1/chat/completions');
    expect(received?.headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      'idempotency-key': 'key-1',
      'x-team': 'blue team',
    });
    expect(received?.body).toEqual({
      model: 'small',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'find', arguments: '{"q":"x"}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: '{"found":2}' },
      ],
      temperature: 0.2,
      max_tokens: 50,
      tools: [
        {
          type: 'function',
          function: { name: 'find', description: 'Finds', parameters: { type: 'object', properties: {} } },
        },
      ],
    });
  });

  const closed = {
    type: 'object',
    properties: { a: { type: 'string' } },
    required: ['a'],
    additionalProperties: false,
  };

  it('asks for JSON that fits a schema, strictly if the schema allows it', async () => {
    const { server, provider } = await serve([completion('{}')]);
    await provider.generate(request({ schema: closed }));
    await provider.generate(request({ schema: { ...closed, required: [] } }));
    await provider.generate(request({ schema: { type: 'array' } }));
    const formats = server.requests.map(({ body }) => body.response_format);
    expect(formats).toEqual([
      { type: 'json_schema', json_schema: { name: 'answer', schema: closed, strict: true } },
      { type: 'json_schema', json_schema: { name: 'answer', schema: { ...closed, required: [] }, strict: false } },
      undefined,
    ]);
    expect(server.requests[2]?.body.messages[0]).toMatchObject({
      role: 'system',
      content: expect.stringContaining('{"type":"array"}'),
    });
  });

  it.each([
    ['json_object', { type: 'json_object' }],
    ['prompt', undefined],
  ] as const)('tells the schema in the system message with structuredOutput %s', async (structuredOutput, format) => {
    const { server, provider } = await serve([completion('{}')], { structuredOutput });
    await provider.generate(request({ schema: closed, system: 'Be brief.' }));
    const { body } = server.requests[0] as (typeof server.requests)[0];
    expect(body.response_format).toEqual(format);
    expect(body.messages[0].content).toContain('Be brief.');
    expect(body.messages[0].content).toContain(JSON.stringify(closed));
  });

  it('limits the answer with the field that the server knows, and has the fields of `body`', async () => {
    const { server, provider } = await serve([completion('')], {
      maxTokensField: 'max_completion_tokens',
      body: { reasoning_effort: 'low', model: 'never' },
    });
    await provider.generate(request({ maxTokens: 9 }));
    expect(server.requests[0]?.body).toMatchObject({
      max_completion_tokens: 9,
      reasoning_effort: 'low',
      model: 'small',
    });
    expect(server.requests[0]?.body.max_tokens).toBeUndefined();
  });
});

describe('an answer', () => {
  it('with calls of tools gives their arguments as JSON, or as the text itself', async () => {
    const { provider } = await serve([
      completion('', {
        choices: [
          {
            message: {
              content: null,
              tool_calls: [
                { id: 'a', type: 'function', function: { name: 'find', arguments: '{"q":1}' } },
                { id: 'a', type: 'function', function: { name: 'find', arguments: '{"q":' } },
                { type: 'function', function: { name: 'find', arguments: '{"__proto__":{"x":1}}' } },
                { id: 'd', type: 'function', function: { name: 'find', arguments: { q: 2 } } },
              ],
            },
            finish_reason: 'stop',
          },
        ],
      }),
    ]);
    const answer = await provider.generate(request());
    expect(answer.finishReason).toBe('tool-calls');
    expect(answer.toolCalls.map((call) => call.arguments)).toEqual([
      { q: 1 },
      '{"q":',
      '{"__proto__":{"x":1}}',
      { q: 2 },
    ]);
    expect(new Set(answer.toolCalls.map(({ id }) => id)).size).toBe(4);
  });

  it('that refuses has the refusal as its text', async () => {
    const { provider } = await serve([
      completion('', { choices: [{ message: { content: null, refusal: 'I will not.' }, finish_reason: 'stop' }] }),
    ]);
    expect(await provider.generate(request())).toMatchObject({ text: 'I will not.', finishReason: 'content-filter' });
  });

  it('that reasons gives the reasoning back to the server with the calls of its tools', async () => {
    const call = {
      id: 'a',
      type: 'function',
      function: { name: 'find', arguments: '{}' },
      extra_content: { sig: 's' },
    };
    const { server, provider } = await serve([
      completion('', { choices: [{ message: { content: '', reasoning_content: 'Hmm.', tool_calls: [call] } }] }),
    ]);
    const answer = await provider.generate(request());
    await provider.generate(request({ messages: [{ role: 'assistant', answer }] }));
    expect(server.requests[1]?.body.messages[0]).toEqual({
      role: 'assistant',
      content: null,
      reasoning_content: 'Hmm.',
      tool_calls: [call],
    });
  });

  it.each([
    ['length', 'length'],
    ['content_filter', 'content-filter'],
    ['surprise', 'other'],
  ])('with finish_reason %s has the reason %s', async (wire, reason) => {
    const { provider } = await serve([
      completion('x', { choices: [{ message: { content: 'x' }, finish_reason: wire }] }),
    ]);
    expect((await provider.generate(request())).finishReason).toBe(reason);
  });
});

describe.each([
  ['a client that passes on the parts', allowed],
  ['a client that ignores onChunk', withoutChunks],
])('a stream, with %s', (_client, http) => {
  const run = async (answers: readonly ScriptedAnswer[]) => {
    const deltas: string[] = [];
    const { provider, server } = await serve(answers, {}, http);
    const answer = await provider.generate(request({ onText: (delta) => deltas.push(delta) }));
    return { answer, deltas, server };
  };

  it('is asked for with its usage, and gives each delta and the whole answer', async () => {
    const { answer, deltas, server } = await run([
      { pieces: [streamOf([{ role: 'assistant', content: '' }, { content: 'Hel' }, { content: 'lo' }])] },
    ]);
    expect(server.requests[0]?.body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
    expect(deltas).toEqual(['Hel', 'lo']);
    expect(answer).toEqual({
      text: 'Hello',
      toolCalls: [],
      usage: { inputTokens: 11, outputTokens: 7 },
      finishReason: 'stop',
      model: 'small-1',
    });
  });

  it.each([1, 2, 3, 7])('gives the same when it comes in pieces of %i bytes, also inside a character', async (size) => {
    const bytes = Buffer.from(streamOf([{ content: 'Grüße ' }, { content: '🙂\n' }]).replaceAll('\n\n', '\r\n\r\n'));
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    );
    const { answer, deltas } = await run([{ pieces }]);
    expect([answer.text, deltas]).toEqual(['Grüße 🙂\n', ['Grüße ', '🙂\n']]);
  });

  it('joins the parts of calls of tools', async () => {
    const part = (index: number, more: object) => ({ tool_calls: [{ index, ...more }] });
    const { answer } = await run([
      {
        pieces: [
          streamOf(
            [
              part(0, { id: 'a', type: 'function', function: { name: 'find', arguments: '' } }),
              part(0, { function: { arguments: '{"q":' } }),
              part(1, { id: 'b', function: { name: 'read', arguments: '{}' } }),
              part(0, { function: { arguments: '1}' } }),
              // A server that gives every call the index 0.
              part(0, { id: 'c', function: { name: 'find', arguments: '{"q":3}' } }),
            ],
            'tool_calls',
          ),
        ],
      },
    ]);
    expect(answer.toolCalls).toEqual([
      { id: 'a', name: 'find', arguments: { q: 1 } },
      { id: 'b', name: 'read', arguments: {} },
      { id: 'c', name: 'find', arguments: { q: 3 } },
    ]);
    expect(answer.finishReason).toBe('tool-calls');
  });

  it('that ends before the answer does is a failure that a retry may pass', async () => {
    const whole = streamOf([{ content: 'Hel' }, { content: 'lo' }]);
    const cut = whole.slice(0, whole.indexOf('"finish_reason":"stop"'));
    const failing = run([{ pieces: [cut] }]);
    await expect(failing).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: true,
      details: { reason: 'truncated' },
    });
  });

  it.each([
    ['breaks', { breaks: true }],
    ['stays open', { hangs: true }],
  ])('whose connection %s after the end mark is complete', async (_, end) => {
    if (http === withoutChunks) return;
    const { answer } = await run([{ pieces: [streamOf([{ content: 'Hel' }, { content: 'lo' }])], ...end }]);
    expect(answer).toMatchObject({ text: 'Hello', usage: { inputTokens: 11, outputTokens: 7 }, finishReason: 'stop' });
  });

  it('with nothing but its end mark is no answer', async () => {
    const failing = run([{ pieces: ['data: [DONE]\n\n'] }]);
    await expect(failing).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: true,
      details: { reason: 'malformed' },
    });
  });

  it.each([
    ['the same index', { index: 0 }],
    ['no index', {}],
  ])('keeps calls of tools apart that have no ids and %s', async (_, index) => {
    const call = (name: string, args: string) => ({ tool_calls: [{ ...index, function: { name, arguments: args } }] });
    const more = (args: string) => ({ tool_calls: [{ ...index, function: { arguments: args } }] });
    const { answer } = await run([
      { pieces: [streamOf([call('look', '{"n":'), more('1}'), call('look', '{"n":2}'), call('read', '')])] },
    ]);
    expect(answer.toolCalls.map((one) => [one.name, one.arguments])).toEqual([
      ['look', { n: 1 }],
      ['look', { n: 2 }],
      ['read', {}],
    ]);
    expect(new Set(answer.toolCalls.map(({ id }) => id)).size).toBe(3);
  });

  it('whose connection breaks is a failure that a retry may pass', async () => {
    const failing = run([{ pieces: [streamOf([{ content: 'Hel' }]).slice(0, 60)], breaks: true }]);
    await expect(failing).rejects.toMatchObject({ code: 'AGENT_FAILED', retryable: true });
  });

  it('with an error inside fails with the message of the error', async () => {
    const error = `data: ${JSON.stringify({ error: { message: `overloaded ${KEY}`, code: 529 } })}\n\n`;
    const failing = run([{ pieces: [streamOf([{ content: 'Hel' }]).split('data: [DONE]')[0] as string, error] }]);
    await expect(failing).rejects.toMatchObject({
      retryable: true,
      message: expect.stringMatching(/answered with an error: overloaded \*\*\*$/),
    });
  });

  it('that the server answers without streaming gives its text at once', async () => {
    const { deltas, answer } = await run([completion('Hello')]);
    expect([deltas, answer.text]).toEqual([['Hello'], 'Hello']);
  });
});

describe('a failure', () => {
  it.each([
    [400, false],
    [401, false],
    [404, false],
    [408, true],
    [409, true],
    [425, true],
    [429, true],
    [500, true],
    [529, true],
  ])('with the status %i has the message of the server; retryable: %s', async (status, retryable) => {
    const error = await failureOf({ status, json: { error: { message: 'Not today.' } } });
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable, details: { status } });
    expect(error.message).toMatch(new RegExp(`/v1/chat/completions answered ${status}: Not today\\.`));
  });

  it.each([
    [401, 'check the `apiKey` of the provider'],
    [404, 'check the `url` of the provider and the name of the model'],
  ])('with the status %i says what to check', async (status, remedy) => {
    expect((await failureOf({ status, json: {} })).message).toContain(remedy);
  });

  it('says how long the server asks to wait', async () => {
    const seconds = await failureOf({ status: 429, headers: { 'retry-after': '20' }, json: {} });
    const date = await failureOf({
      status: 503,
      headers: { 'retry-after': new Date(NOW + 90_000).toUTCString() },
      text: 'busy',
    });
    expect([seconds.details, date.details]).toMatchObject([{ retryAfterMs: 20_000 }, { retryAfterMs: 90_000 }]);
  });

  it('never shows the key or a header, also if the server repeats them, whole or at the place of the cut', async () => {
    const said = `${'x'.repeat(490)}${KEY} and tenant-secret-9${'y'.repeat(2000)}`;
    const error = await failureOf(
      { status: 401, json: { error: { message: `Bearer ${KEY} ${said}` } } },
      {},
      { headers: { 'x-tenant': 'tenant-secret-9' } },
    );
    const shown = `${error.message}${JSON.stringify(error.details)}${error.stack}`;
    expect(shown).not.toMatch(/very-secret|sk-|tenant-secret/);
    expect(error.message.length).toBeLessThan(700);
  });

  it.each([
    ['HTML', { text: '<html>Welcome</html>', headers: { 'content-type': 'text/html' } }, 'invalid-json', /url/],
    ['half of its JSON', { text: '{"choices":[{"mess' }, 'invalid-json', /not JSON/],
    ['JSON without choices', { json: { ok: true } }, 'malformed', /choices/],
    ['an empty body', { text: '' }, 'invalid-json', /not JSON/],
  ] as const)('for %s says what is wrong', async (_what, answer, reason, message) => {
    const error = await failureOf(answer);
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: false, details: { reason } });
    expect(error.message).toMatch(message);
  });

  it('inside an answer with the status 200 counts as one', async () => {
    const error = await failureOf({ json: { error: { message: 'No such model', code: 404 } } });
    expect(error).toMatchObject({ retryable: false, details: { status: 404 } });
  });

  it('about max_tokens names the option that helps', async () => {
    const message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
    const error = await failureOf({ status: 400, json: { error: { message } } });
    expect(error.message).toContain("set `maxTokensField: 'max_completion_tokens'`");
  });

  it('of a server that never answers is a TIMEOUT after the time of the call', async () => {
    const { provider } = await serve([{ pieces: ['data: '], hangs: true }]);
    const call = provider.generate(request({ timeoutMs: 200, onText() {} }));
    await expect(call).rejects.toMatchObject({ code: 'TIMEOUT', retryable: true });
  });

  it('of a call that is stopped is the reason of the signal', async () => {
    const controller = new AbortController();
    const { provider } = await serve([completion('')]);
    controller.abort(new Error('stopped'));
    await expect(provider.generate(request({ signal: controller.signal }))).rejects.toThrow('stopped');
  });
});
