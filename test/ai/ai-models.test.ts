/** `aiModels` with models of each version of the AI SDK's specification, and with what is not a provider. */

import { describe, expect, it } from 'vitest';
import { readStream } from '../../src/adapters/ai/answer.ts';
import { type AiProvider, aiModels } from '../../src/entries/ai.ts';
import { request } from './wire.ts';

const model = (given: object) =>
  ({
    languageModel: (modelId: string) => ({
      provider: 'fake.chat',
      modelId,
      doGenerate: async () => ({}),
      doStream: async () => ({ stream: new ReadableStream() }),
      ...given,
    }),
  }) as unknown as AiProvider;

const stream = (parts: readonly object[]) => async () => ({
  stream: new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  }),
});

describe('the versions of the specification', () => {
  const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: '{"n":1}' };
  const content = [{ type: 'text', text: 'Hi.' }, call];
  const old = { usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 }, finishReason: 'tool-calls' };
  const now = {
    usage: { inputTokens: { total: 3, noCache: 3 }, outputTokens: { total: 2 } },
    finishReason: { unified: 'tool-calls', raw: 'tool_use' },
  };
  const deltas = [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: '1' },
    { type: 'text-delta', id: '1', delta: 'Hi.' },
    { type: 'text-end', id: '1' },
    call,
  ];

  it.each([
    ['v2', old],
    ['v3', now],
    ['v4', now],
  ])('%s gives the same answer, whole and streamed', async (specificationVersion, finish) => {
    const models = aiModels(
      model({
        specificationVersion,
        doGenerate: async () => ({ content, ...finish, warnings: [] }),
        doStream: stream([...deltas, { type: 'finish', ...finish }]),
      }),
    );
    const answer = {
      text: 'Hi.',
      toolCalls: [{ id: 'c1', name: 'look', arguments: { n: 1 } }],
      usage: { inputTokens: 3, outputTokens: 2 },
      finishReason: 'tool-calls',
      model: 'm-1',
    };
    expect(await models.generate(request())).toEqual(answer);
    expect(await models.generate(request({ onText: () => {} }))).toEqual(answer);
  });

  it('another version is refused with the ones that are supported', async () => {
    const failed = aiModels(model({ specificationVersion: 'v1' })).generate(request());
    await expect(failed).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: false,
      message: expect.stringMatching(/m-1 has the specification v1; v2, v3 and v4 are supported/),
    });
  });
});

describe('what a provider reports', () => {
  const models = (given: object) => aiModels(model({ specificationVersion: 'v4', ...given }));
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };

  it('an answer that ended with an error or was interrupted fails, retryable', async () => {
    for (const unified of ['error', 'interrupted']) {
      const doGenerate = async () => ({ content: [{ type: 'text', text: 'Hi' }], usage, finishReason: { unified } });
      const finish = { type: 'finish', usage, finishReason: { unified, raw: 'x' } };
      for (const onText of [undefined, () => {}]) {
        const failed = models({ doGenerate, doStream: stream([finish]) }).generate(request(onText ? { onText } : {}));
        await expect(failed).rejects.toMatchObject({ code: 'AGENT_FAILED', retryable: true });
      }
    }
  });

  it('a stream without an end, and an endless stream, fail', async () => {
    const begun = [
      { type: 'text-start', id: '1' },
      { type: 'text-delta', id: '1', delta: 'Hi' },
    ];
    await expect(models({ doStream: stream(begun) }).generate(request({ onText: () => {} }))).rejects.toMatchObject({
      retryable: true,
    });
    const delta = 'x'.repeat(1024 * 1024);
    let cancelled = false;
    const endless = async () => ({
      stream: new ReadableStream({
        pull: (controller) => controller.enqueue({ type: 'text-delta', id: '1', delta }),
        cancel: () => {
          cancelled = true;
        },
      }),
    });
    await expect(models({ doStream: endless }).generate(request({ onText: () => {} }))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: false,
      details: { reason: 'too-large', limit: 10 * 1024 * 1024 },
    });
    expect(cancelled).toBe(true);
  });

  it('the text of the structured output wins if there is one', async () => {
    const content = [
      { type: 'text', text: 'Draft. ' },
      { type: 'text', text: '{}' },
    ];
    const finishReason = { unified: 'stop', raw: 'stop' };
    const provider = models({ doGenerate: async () => ({ content, structuredOutputText: '{}', usage, finishReason }) });
    expect((await provider.generate(request({ schema: { type: 'object' } }))).text).toBe('{}');
    expect((await provider.generate(request())).text).toBe('Draft. {}');
  });

  it('a provider that ignores its signal does not delay the deadline', async () => {
    const doGenerate = () => new Promise(() => {});
    await expect(models({ doGenerate }).generate(request({ timeoutMs: 20 }))).rejects.toMatchObject({
      code: 'TIMEOUT',
    });
  });

  it('errors inside a stream are retryable by their kind', async () => {
    const outcomes = [];
    for (const error of [
      { type: 'overloaded_error', message: 'Overloaded' },
      { type: 'invalid_request_error', message: 'Bad prompt' },
      new TypeError('terminated'),
      { message: 'Slow down', statusCode: 429 },
      { message: 'No', statusCode: 400, isRetryable: false },
    ]) {
      const doStream = stream([{ type: 'error', error }]);
      const thrown = await models({ doStream })
        .generate(request({ onText: () => {} }))
        .catch((failure) => failure);
      outcomes.push([thrown.code, thrown.retryable]);
    }
    expect(outcomes).toEqual([true, false, true, true, false].map((retryable) => ['AGENT_FAILED', retryable]));
  });
});

describe('a stream of a provider', () => {
  const finish = {
    type: 'finish',
    finishReason: { unified: 'stop', raw: 'stop' },
    usage: { outputTokens: { total: 2 } },
  };
  const text = [
    { type: 'text-start', id: '1' },
    { type: 'text-delta', id: '1', delta: 'Hi.' },
    { type: 'text-end', id: '1' },
  ];

  it.each([
    ['breaks', (controller: ReadableStreamDefaultController) => controller.error(new Error('reset'))],
    ['stays open', () => undefined],
  ])('that %s after its finish is complete', async (_, end) => {
    let isCancelled = false;
    const parts = [...text, finish];
    const doStream = async () => ({
      stream: new ReadableStream(
        {
          pull(controller) {
            const part = parts.shift();
            if (part) controller.enqueue(part);
            else return end(controller) ?? new Promise(() => {});
          },
          cancel() {
            isCancelled = true;
          },
        },
        { highWaterMark: 0 },
      ),
    });
    const models = aiModels(model({ specificationVersion: 'v3', doStream }));
    const answer = await models.generate(request({ onText: () => {}, timeoutMs: 5000 }));
    expect([answer.text, isCancelled]).toEqual(['Hi.', true]);
  });

  it('with more parts than an answer may have is refused while it comes, and the event loop has turns meanwhile', async () => {
    let [turns, sent] = [0, 0];
    const endless = new ReadableStream({
      pull(controller) {
        sent += 1;
        controller.enqueue({ type: 'tool-call', toolCallId: `c${sent}`, toolName: 'look', input: '{}' });
      },
    });
    const counting = setInterval(() => {
      turns += 1;
    }, 0);
    const reading = readStream(endless as never, () => {}, new AbortController().signal, 2000);
    await expect(reading).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      details: { reason: 'too-large', limit: 2000 },
    });
    clearInterval(counting);
    expect(sent).toBeLessThan(2100);
    expect(turns).toBeGreaterThan(0);
  });
});

describe('wrong arguments', () => {
  it.each([
    [undefined, {}, 'aiModels takes a provider of the AI SDK'],
    ['openai/gpt-5', {}, 'aiModels takes a provider of the AI SDK'],
    [{}, {}, 'aiModels takes a provider of the AI SDK'],
    [() => ({}), { price: {} }, '`price` is not an option of this version; did you mean `prices`?'],
  ])('%j with %j is refused', (provider, options, text) => {
    expect(() => aiModels(provider as never, options as never)).toThrow(text);
  });
});
