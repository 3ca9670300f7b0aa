/** Answers of model servers in the real wire format, and requests of the model port. */

import type { Json } from '../../src/engine/base/json/json.ts';
import type { ModelRequest } from '../../src/engine/operation/model.port.ts';

export function request(given: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: 'm-1',
    messages: [{ role: 'user', text: 'What is the weather in Oslo?' }],
    timeoutMs: 60_000,
    idempotencyKey: 'key-1',
    signal: new AbortController().signal,
    ...given,
  };
}

export const WEATHER = {
  name: 'get_weather',
  description: 'The weather of a city',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

export const SCHEMA = {
  type: 'object',
  properties: { mood: { type: 'string' } },
  required: ['mood'],
  additionalProperties: false,
};

/** An answer of Anthropic's Messages API. */
export const message = (content: readonly unknown[], given: Readonly<Record<string, Json>> = {}) => ({
  id: 'msg_01',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5-20250929',
  content,
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 12, output_tokens: 7 },
  ...given,
});

const messageStart = {
  type: 'message_start',
  message: {
    ...message([], { stop_reason: null }),
    usage: { input_tokens: 12, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 1 },
  },
};

/** The events of one block of Anthropic's Messages API. */
export const block = (index: number, start: unknown, deltas: readonly unknown[]) => [
  { type: 'content_block_start', index, content_block: start },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
];

/** A whole stream of Anthropic's Messages API. */
export const messageEvents = (blocks: readonly Readonly<Record<string, unknown>>[], stopReason: string) => [
  messageStart,
  { type: 'ping' },
  ...blocks,
  { type: 'message_delta', delta: { stop_reason: stopReason, stop_sequence: null }, usage: { output_tokens: 7 } },
  { type: 'message_stop' },
];

export const textDelta = (text: string) => ({ type: 'text_delta', text });

/** An answer of OpenAI's chat completions. */
export const completion = (choice: Readonly<Record<string, unknown>>, finishReason: string | null = 'stop') => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_750_000_000,
  model: 'gpt-4o-2024-08-06',
  choices: [{ index: 0, message: { role: 'assistant', ...choice }, finish_reason: finishReason }],
  usage: { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 },
});

/** One chunk of a stream of OpenAI's chat completions. */
export const chunk = (delta: Readonly<Record<string, unknown>>, finishReason: string | null = null) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_750_000_000,
  model: 'gpt-4o-2024-08-06',
  choices: [{ index: 0, delta, finish_reason: finishReason }],
});

/** The last chunk of a stream of OpenAI's chat completions, with `include_usage`. */
export const usageChunk = {
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_750_000_000,
  model: 'gpt-4o-2024-08-06',
  choices: [],
  usage: { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 },
};

/** An answer of OpenAI's Responses API. */
export const response = (output: readonly unknown[], given: Readonly<Record<string, Json>> = {}) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1_750_000_000,
  status: 'completed',
  model: 'gpt-5-2025-08-07',
  output,
  error: null,
  incomplete_details: null,
  usage: {
    input_tokens: 12,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 7,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 19,
  },
  ...given,
});

export const outputText = (id: string, text: string) => ({
  type: 'message',
  id,
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [] }],
});

export const functionCall = (id: string, callId: string, args: string) => ({
  type: 'function_call',
  id,
  status: 'completed',
  call_id: callId,
  name: 'get_weather',
  arguments: args,
});
