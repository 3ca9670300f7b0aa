/** Turns a request of the model port into the call of an AI SDK model. */

import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import type { ModelAnswer, ModelMessage, ModelRequest, ModelTool } from '../../engine/operation/model.port.ts';
import type { AiLanguageModel, AiProviderOptions, CallOptions, PromptPart } from './ai-sdk-types.ts';

/**
 * @param model - the model that is called
 * @param signal - ends the call
 */
export function toCallOptions(
  request: ModelRequest,
  model: AiLanguageModel,
  providerOptions: AiProviderOptions | undefined,
  signal: AbortSignal,
): CallOptions {
  const { schema, tools = [] } = request;
  const format = schemaFormat(model, tools.length > 0);
  const system = [request.system, schema && format.inPrompt ? schemaInstruction(schema) : undefined];
  const systemText = system.filter((text) => text !== undefined && text !== '').join('\n\n');
  return {
    prompt: [
      ...(systemText === '' ? [] : [{ role: 'system', content: systemText }]),
      ...request.messages.map(toPromptMessage),
    ],
    maxOutputTokens: request.maxTokens,
    temperature: request.temperature,
    responseFormat: schema && format.inRequest ? { type: 'json', schema } : undefined,
    tools: tools.length > 0 ? tools.map(toFunctionTool) : undefined,
    toolChoice: tools.length > 0 ? { type: 'auto' } : undefined,
    headers: { 'Idempotency-Key': request.idempotencyKey },
    providerOptions,
    abortSignal: signal,
  };
}

// Two providers lose a part of a request with a schema. `@ai-sdk/openai-compatible` leaves the schema out, unless the host says that
// the server supports it; OpenAI's form of JSON without a schema also needs the word JSON in the prompt. `workers-ai-provider` leaves
// the tools out.
function schemaFormat(model: AiLanguageModel, hasTools: boolean): { inRequest: boolean; inPrompt: boolean } {
  const { supportsStructuredOutputs } = model as { readonly supportsStructuredOutputs?: unknown };
  const losesTools = hasTools && model.provider.startsWith('workersai');
  return { inRequest: !losesTools, inPrompt: losesTools || supportsStructuredOutputs === false };
}

function schemaInstruction(schema: JsonObject): string {
  return `Answer with JSON only, without any other text. The JSON must fit this JSON Schema:\n${JSON.stringify(schema)}`;
}

function toFunctionTool({ name, description, inputSchema }: ModelTool): object {
  return { type: 'function', name, description, inputSchema };
}

function toPromptMessage(message: ModelMessage): CallOptions['prompt'][number] {
  if (message.role === 'user') return { role: 'user', content: [{ type: 'text', text: message.text }] };
  if (message.role === 'assistant') return { role: 'assistant', content: assistantParts(message.answer) };
  const { call, result, isError } = message;
  const type = `${isError ? 'error-' : ''}${typeof result === 'string' ? 'text' : 'json'}`;
  const output = { type, value: result };
  return {
    role: 'tool',
    content: [{ type: 'tool-result', toolCallId: call.id, toolName: call.name, output }],
  };
}

function assistantParts({ text, toolCalls, state }: ModelAnswer): readonly PromptPart[] {
  if (isStoredParts(state)) return state.parts;
  return [
    ...(text === '' ? [] : [{ type: 'text', text }]),
    ...toolCalls.map(({ id, name, arguments: input }) => ({
      type: 'tool-call',
      toolCallId: id,
      toolName: name,
      input: toToolInput(input),
    })),
  ];
}

/** The state of an answer: its parts as the next request has them. */
export interface StoredParts extends JsonObject {
  readonly parts: readonly (PromptPart & JsonObject)[];
}

// The state of another provider is not read: the answer is sent by its text and its calls.
function isStoredParts(state: Json | undefined): state is StoredParts {
  const parts = (state as { readonly parts?: unknown } | null | undefined)?.parts;
  return Array.isArray(parts) && parts.every((part) => typeof part?.type === 'string');
}

/** Providers accept only an object as the arguments of a call. What the model wrote instead is in the result of the call. */
export function toToolInput(input: Json): JsonObject {
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? (input as JsonObject) : {};
}
