/** `think` agents over providers of the AI SDK: what is stored of an answer is enough for the next request, also after a crash. */

import { afterEach, beforeEach, expect, it } from 'vitest';
import { aiModels } from '../../src/entries/ai.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { chunks, json, type ModelServer, modelServer } from './model-server.ts';
import { providers } from './providers.ts';
import { chunk, completion, message, SCHEMA, usageChunk } from './wire.ts';

let server: ModelServer;
beforeEach(async () => {
  server = await modelServer();
});
afterEach(() => server.close());

const ENSEMBLE = `
name: forecast
agents:
  - { name: weather, operation: code, config: { script: weather } }
flow:
  - agent: ask
    operation: think
    config:
      model: claude-sonnet-4-5
      prompt: Does it rain in \${input.city}?
      tools:
        - agent: weather
          description: The weather of a city
          parameters: { type: object, properties: { city: { type: string } }, required: [city] }
outputs: { text: "\${ask.output.text}" }
`;

const THOUGHT = { type: 'thinking', thinking: 'I need the weather.', signature: 'c2lnbmF0dXJl' };
const TOOL_USE = { type: 'tool_use', id: 'toolu_01', name: 'weather', input: { city: 'Oslo' } };

it('a tool loop that a crash cut off goes on with the signed thinking of the stored answer', async () => {
  const ran: unknown[] = [];
  const anthropic = aiModels(providers.createAnthropic({ apiKey: 'sk-ant-1', baseURL: server.url }), {
    prices: { 'claude-sonnet-4-5': { input: 3, output: 15 } },
  });
  const first = createTestOrchestrator({
    ensembles: [ENSEMBLE],
    models: { anthropic },
    scripts: {
      weather: ({ input }) => {
        ran.push(input);
        return { rain: true };
      },
    },
  });
  let second = Promise.resolve(first);
  server.next(
    json(message([THOUGHT, TOOL_USE], { stop_reason: 'tool_use' })),
    // The process dies while it waits for the second answer.
    () => {
      second = first.crash();
      arrived();
    },
    json(message([{ type: 'text', text: 'Yes.' }])),
  );
  let arrived = () => {};
  const atSecondCall = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const { id } = await first.start('forecast', { city: 'Oslo' });
  await atSecondCall;
  const execution = await (await second).result(id);

  expect(execution).toMatchObject({ status: 'completed', output: { text: 'Yes.' } });
  expect(ran).toEqual([{ city: 'Oslo' }]);
  const [call, cutOff, again] = server.received;
  expect(server.received).toHaveLength(3);
  expect(again?.body).toEqual(cutOff?.body);
  expect(again?.headers['idempotency-key']).toBe(cutOff?.headers['idempotency-key']);
  expect(again?.headers['idempotency-key']).not.toBe(call?.headers['idempotency-key']);
  expect(again?.body.messages.slice(1)).toMatchObject([
    { role: 'assistant', content: [THOUGHT, TOOL_USE] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_01', content: '{"rain":true}' }] },
  ]);
  const { usage } = execution.metrics;
  expect(usage).toMatchObject({ inputTokens: 24, outputTokens: 14 });
  expect(usage?.cost).toBeCloseTo((24 * 3 + 14 * 15) / 1_000_000, 12);
});

it('a stream with a schema passes its text on, after the wait that a rate limit asked for', async () => {
  const flow = [
    {
      agent: 'ask',
      operation: 'think',
      config: { model: 'gpt-4o', prompt: 'How is it?', stream: true, schema: SCHEMA },
      retry: { maxAttempts: 2 },
    },
  ];
  const orchestrator = createTestOrchestrator({
    ensembles: [{ name: 'mood', flow, outputs: { object: '${ask.output.object}' } }],
    models: { openai: aiModels((id) => providers.createOpenAI({ apiKey: 'sk-1', baseURL: server.url }).chat(id)) },
  });
  const texts: unknown[] = [];
  orchestrator.on('agent.delta', ({ data }) => texts.push(data.text));
  server.next(
    json({ error: { message: 'slow down', type: 'requests' } }, 429, { 'retry-after': '20' }),
    chunks([chunk({ content: '{"mood":' }), chunk({ content: '"fine"}' }), chunk({}, 'stop'), usageChunk]),
  );
  const run = await orchestrator.execute('mood');
  expect(run).toMatchObject({ status: 'completed', output: { object: { mood: 'fine' } } });
  expect(run.duration).toBeGreaterThanOrEqual(20_000);
  expect(texts.join('')).toBe('{"mood":"fine"}');
  expect(server.received).toHaveLength(2);
});

it('an answer that does not fit is repaired once, through a server that does not know schemas', async () => {
  const flow = [{ agent: 'ask', operation: 'think', config: { model: 'm', prompt: 'How is it?', schema: SCHEMA } }];
  const local = providers.createOpenAICompatible({ name: 'local', baseURL: server.url });
  const orchestrator = createTestOrchestrator({
    ensembles: [{ name: 'mood', flow, outputs: { object: '${ask.output.object}' } }],
    models: { local: aiModels(local) },
  });
  server.next(json(completion({ content: 'It is fine.' })), json(completion({ content: '{"mood":"fine"}' })));
  expect((await orchestrator.execute('mood')).output).toEqual({ object: { mood: 'fine' } });
  expect(server.received[1]?.body.messages.slice(1)).toMatchObject([
    { role: 'user' },
    { role: 'assistant', content: 'It is fine.' },
    { role: 'user', content: expect.stringContaining('not JSON') },
  ]);
});
