/** `aiModels` with the provider of Workers AI, over a binding in its wire format. */

import { expect, it } from 'vitest';
import { aiModels } from '../../src/entries/ai.ts';
import { aiBinding, inferenceError, USAGE } from './ai-binding.ts';
import { providers } from './providers.ts';
import { request, SCHEMA, WEATHER } from './wire.ts';

const models = (binding: ReturnType<typeof aiBinding>) =>
  aiModels(providers.createWorkersAI({ binding: binding as never }));
const MODEL = '@cf/meta/llama-3.3-70b-instruct-fp8-fast';

it('the binding gets the messages, and its answer has text and usage', async () => {
  const binding = aiBinding({ response: 'Rain.', tool_calls: [], usage: USAGE });
  const answer = await models(binding).generate(
    request({ model: MODEL, system: 'Be brief.', maxTokens: 50, temperature: 0 }),
  );
  expect(answer).toEqual({
    text: 'Rain.',
    toolCalls: [],
    usage: { inputTokens: 12, outputTokens: 7 },
    finishReason: 'stop',
    model: MODEL,
  });
  expect(binding.calls).toMatchObject([
    {
      model: MODEL,
      inputs: {
        max_tokens: 50,
        temperature: 0,
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: expect.stringContaining('Oslo') },
        ],
      },
    },
  ]);
});

it('a stream passes each part, and one that is cut off fails, retryable', async () => {
  const parts = [
    { response: 'It ', p: 'ab' },
    { response: 'rains.', p: 'abc' },
  ];
  const end = { response: '', usage: USAGE };
  const deltas: string[] = [];
  const onText = (delta: string) => void deltas.push(delta);
  const answer = await models(aiBinding([...parts, end, '[DONE]'])).generate(request({ model: MODEL, onText }));
  expect(deltas).toEqual(['It ', 'rains.']);
  expect(answer).toMatchObject({
    text: 'It rains.',
    usage: { inputTokens: 12, outputTokens: 7 },
    finishReason: 'stop',
  });
  await expect(models(aiBinding(parts)).generate(request({ model: MODEL, onText }))).rejects.toMatchObject({
    code: 'AGENT_FAILED',
    retryable: true,
  });
});

it('a call of a tool and its result pass', async () => {
  const binding = aiBinding(
    { response: null, tool_calls: [{ name: 'get_weather', arguments: { city: 'Oslo' } }], usage: USAGE },
    { response: 'Rain.', usage: USAGE },
  );
  const { generate } = models(binding);
  const answer = await generate(request({ model: MODEL, tools: [WEATHER] }));
  const [call] = answer.toolCalls;
  if (call === undefined) throw new Error('there is no call');
  expect(call).toMatchObject({ name: 'get_weather', arguments: { city: 'Oslo' } });
  await generate(
    request({
      model: MODEL,
      tools: [WEATHER],
      messages: [
        { role: 'user', text: 'Weather?' },
        { role: 'assistant', answer },
        { role: 'tool', call, result: { rain: true }, isError: false },
      ],
    }),
  );
  // The provider shortens the ids that it makes.
  const sentId = expect.stringMatching(new RegExp(`^${call.id.split('::')[0]}`));
  expect(binding.calls[0]?.inputs.tools).toMatchObject([{ function: { name: 'get_weather' } }]);
  expect(binding.calls[1]?.inputs.messages.slice(1)).toMatchObject([
    { role: 'assistant', tool_calls: [{ id: sentId, function: { name: 'get_weather' } }] },
    { role: 'tool', tool_call_id: sentId, content: '{"rain":true}' },
  ]);
});

it('a schema is in the request; with tools, which the provider would leave out, it is in the prompt', async () => {
  const binding = aiBinding(
    { response: { mood: 'fine' }, usage: USAGE },
    { response: '{"mood":"fine"}', usage: USAGE },
  );
  const { generate } = models(binding);
  expect(JSON.parse((await generate(request({ model: MODEL, schema: SCHEMA }))).text)).toEqual({ mood: 'fine' });
  expect(JSON.stringify(binding.calls[0]?.inputs.response_format)).toContain('"mood"');
  await generate(request({ model: MODEL, schema: SCHEMA, tools: [WEATHER] }));
  const { tools, messages, response_format: format } = binding.calls[1]?.inputs ?? {};
  expect(tools).toHaveLength(1);
  expect(format).toBeUndefined();
  expect(messages[0]).toMatchObject({ role: 'system', content: expect.stringContaining('"mood"') });
});

it('missing capacity is retryable, an unknown model is not, and an unknown failure is', async () => {
  const outcomes = [];
  for (const text of [
    '3040: Capacity temporarily exceeded, please try again.',
    '5007: No such model @cf/none or task',
    'Network connection lost.',
  ]) {
    const { generate } = models(aiBinding(inferenceError(text)));
    const { code, retryable, details } = await generate(request({ model: MODEL })).catch((thrown) => thrown);
    outcomes.push({ code, retryable, status: details.status });
  }
  expect(outcomes).toEqual([
    { code: 'AGENT_FAILED', retryable: true, status: 429 },
    { code: 'AGENT_FAILED', retryable: false, status: 400 },
    { code: 'AGENT_FAILED', retryable: true, status: undefined },
  ]);
});
