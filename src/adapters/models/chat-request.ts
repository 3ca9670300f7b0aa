/** Turns a request of the model port into the body of a `chat/completions` request. */

import { isMap } from '../../engine/base/json/is-map.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import type { ModelMessage, ModelRequest, ModelToolCall } from '../../engine/operation/model.port.ts';
import type { ModelServerOptions } from './model-server-options.ts';

type Options = Pick<ModelServerOptions, 'structuredOutput' | 'maxTokensField' | 'body'>;

/** @param host - the host of the server */
export function toChatBody(request: ModelRequest, options: Options, host: string): JsonObject {
  const { model, temperature, maxTokens, schema, tools = [] } = request;
  const format = schema && formatOf(schema, options.structuredOutput);
  const maxTokensField = options.maxTokensField ?? (host === 'api.openai.com' ? 'max_completion_tokens' : 'max_tokens');
  const system = [request.system, schema && format?.type !== 'json_schema' ? schemaText(schema) : undefined]
    .filter((text) => text !== undefined)
    .join('\n\n');
  return {
    ...options.body,
    model,
    messages: [...(system === '' ? [] : [{ role: 'system', content: system }]), ...request.messages.map(toChatMessage)],
    ...(temperature !== undefined && { temperature }),
    ...(maxTokens !== undefined && { [maxTokensField]: maxTokens }),
    ...(format && { response_format: format }),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, inputSchema }) => ({
        type: 'function',
        function: { name, ...(description !== undefined && { description }), parameters: inputSchema },
      })),
    }),
    ...(request.onText && { stream: true, stream_options: { include_usage: true } }),
  };
}

/** Servers take only schemas of objects. The schema of another value is part of the system message. */
function formatOf(
  schema: JsonObject,
  mode: ModelServerOptions['structuredOutput'] = 'json_schema',
): JsonObject | undefined {
  if (mode === 'prompt' || schema.type !== 'object') return undefined;
  if (mode === 'json_object') return { type: mode };
  return { type: mode, json_schema: { name: 'answer', schema, strict: isStrict(schema) } };
}

const STRICT_KEYWORDS = ['type', 'properties', 'required', 'additionalProperties', 'items', 'anyOf', '$defs', '$ref'];
const STRICT_FREE = ['title', 'description', 'enum', 'const'];

/** Whether a schema keeps the rules under which a server may guarantee it: all properties required, no others, few keywords. */
function isStrict(schema: Json | undefined): boolean {
  if (!isMap(schema)) return false;
  if (!Object.keys(schema).every((key) => STRICT_KEYWORDS.includes(key) || STRICT_FREE.includes(key))) return false;
  const { type, properties, required, additionalProperties, items, anyOf, $defs } = schema;
  const names = isMap(properties) ? Object.keys(properties) : [];
  if (type === 'object' || properties !== undefined) {
    const listed: readonly Json[] = Array.isArray(required) ? required : [];
    if (additionalProperties !== false || !names.every((name) => listed.includes(name))) return false;
  }
  const inner = [
    ...(isMap(properties) ? Object.values(properties) : []),
    ...(isMap($defs) ? Object.values($defs) : []),
    ...(Array.isArray(anyOf) ? (anyOf as readonly Json[]) : []),
    ...(items === undefined ? [] : [items]),
  ];
  return inner.every(isStrict);
}

function schemaText(schema: JsonObject): string {
  return `Answer with JSON that fits this JSON Schema, and with nothing else:\n${JSON.stringify(schema)}`;
}

function toChatMessage(message: ModelMessage): JsonObject {
  if (message.role === 'user') return { role: 'user', content: message.text };
  if (message.role === 'tool') {
    const { call, result, isError } = message;
    const text = typeof result === 'string' ? result : JSON.stringify(result);
    return { role: 'tool', tool_call_id: call.id, content: isError ? `Error: ${text}` : text };
  }
  const { text, toolCalls, state } = message.answer;
  const { calls, ...more } = isMap(state) ? state : {};
  return {
    role: 'assistant',
    content: text === '' && toolCalls.length > 0 ? null : text,
    ...more,
    ...(toolCalls.length > 0 && { tool_calls: toolCalls.map((call, i) => toChatCall(call, calls, i)) }),
  };
}

function toChatCall({ id, name, arguments: args }: ModelToolCall, extra: Json | undefined, index: number): JsonObject {
  const more = Array.isArray(extra) ? (extra as readonly Json[])[index] : undefined;
  return {
    id,
    type: 'function',
    // Some servers refuse a conversation whose arguments are not an object.
    function: { name, arguments: JSON.stringify(isMap(args) ? args : {}) },
    ...(more !== null && more !== undefined && { extra_content: more }),
  };
}
