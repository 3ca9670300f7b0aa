/** Reads an answer of the `chat/completions` API. */

import { isMap } from '../../engine/base/json/is-map.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import type { ModelAnswer, ModelFinishReason, ModelRequest, ModelToolCall } from '../../engine/operation/model.port.ts';
import { answerFailure, type ChatCall, errorInside } from './chat-failure.ts';
import { firstOf, parseJson, textOf } from './chat-json.ts';

/** A call of a tool as the server wrote it. */
export interface WrittenCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  /** What some servers want back with the call. */
  readonly extra?: Json | undefined;
}

/** What a message of the model consists of. */
export interface WrittenAnswer {
  readonly text: string;
  readonly refusal: string;
  readonly calls: readonly WrittenCall[];
  /** The text of its reasoning, which some servers want back with the calls of tools. */
  readonly reasoning: string;
  readonly finishReason: Json | undefined;
  readonly usage: Json | undefined;
  readonly model: Json | undefined;
}

/** @param json - the body of an answer that is not a stream @throws OrchestratorError `AGENT_FAILED` */
export function readCompletion(call: ChatCall, request: ModelRequest, json: Json): ModelAnswer {
  const error = errorInside(call, json);
  if (error) throw error;
  const choice = firstOf(isMap(json) ? json.choices : undefined);
  const message = choice?.message;
  if (!isMap(json) || !isMap(message)) {
    throw answerFailure(call, 'malformed', 'JSON without `choices[0].message`; check the `url` of the provider');
  }
  const calls = Array.isArray(message.tool_calls) ? (message.tool_calls as readonly Json[]) : [];
  return toAnswer(request, {
    text: textOf(message.content),
    refusal: textOf(message.refusal),
    reasoning: textOf(message.reasoning_content),
    calls: calls.map(readCall),
    finishReason: choice?.finish_reason,
    usage: json.usage,
    model: json.model,
  });
}

function readCall(given: Json): WrittenCall {
  const { id, function: called, extra_content: extra } = isMap(given) ? given : ({} as JsonObject);
  const { name, arguments: args } = isMap(called) ? called : ({} as JsonObject);
  // Some servers send the arguments as a value.
  const text = typeof args === 'string' ? args : JSON.stringify(args ?? {});
  return { id: textOf(id), name: textOf(name), arguments: text, extra };
}

/** Builds the answer of the port. */
export function toAnswer(request: ModelRequest, written: WrittenAnswer): ModelAnswer {
  const { text, refusal, calls, reasoning, finishReason, usage, model } = written;
  const ids = new Set<string>();
  const toolCalls = calls.map((call, i): ModelToolCall => {
    const id = call.id !== '' && !ids.has(call.id) ? call.id : `call_${request.messages.length}_${i}`;
    ids.add(id);
    return { id, name: call.name, arguments: parseJson(call.arguments || '{}') ?? call.arguments };
  });
  const refused = text === '' && refusal !== '';
  const { prompt_tokens: inputTokens, completion_tokens: outputTokens } = isMap(usage) ? usage : ({} as JsonObject);
  const state = stateOf(reasoning, calls);
  return {
    text: refused ? refusal : text,
    toolCalls,
    usage: { inputTokens: countOf(inputTokens), outputTokens: countOf(outputTokens) },
    finishReason: refused ? 'content-filter' : toFinishReason(finishReason, toolCalls.length > 0),
    model: textOf(model) || request.model,
    ...(state && { state }),
  };
}

/** What the server needs back: only with calls of tools, because the answer is in no later request otherwise. */
function stateOf(reasoning: string, calls: readonly WrittenCall[]): JsonObject | undefined {
  const extra = calls.map((call) => call.extra ?? null);
  const state = {
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(extra.some((one) => one !== null) && { calls: extra }),
  };
  return calls.length > 0 && Object.keys(state).length > 0 ? state : undefined;
}

const FINISH_REASONS: ReadonlyMap<unknown, ModelFinishReason> = new Map<unknown, ModelFinishReason>([
  ['stop', 'stop'],
  ['length', 'length'],
  ['tool_calls', 'tool-calls'],
  ['function_call', 'tool-calls'],
  ['content_filter', 'content-filter'],
]);

function toFinishReason(given: Json | undefined, callsTools: boolean): ModelFinishReason {
  const reason = FINISH_REASONS.get(given) ?? 'other';
  return callsTools && (reason === 'stop' || reason === 'other') ? 'tool-calls' : reason;
}

function countOf(given: Json | undefined): number {
  return typeof given === 'number' && Number.isSafeInteger(given) && given > 0 ? given : 0;
}
