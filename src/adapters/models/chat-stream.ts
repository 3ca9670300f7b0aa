/** Reads the server-sent events of a streamed `chat/completions` answer. */

import { isMap } from '../../engine/base/json/is-map.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import type { ModelAnswer, ModelRequest } from '../../engine/operation/model.port.ts';
import { answerFailure, type ChatCall, errorInside } from './chat-failure.ts';
import { firstOf, parseJson, textOf } from './chat-json.ts';
import { toAnswer, type WrittenCall } from './read-completion.ts';

/** How many calls of tools an answer may have. */
const MAX_TOOL_CALLS = 1000;

export interface ChatStream {
  /** Whether the end mark was read: nothing is missing, whatever becomes of the connection. */
  readonly isDone: boolean;
  /** Whether the model has said why its answer ends. Only the number of tokens may be missing. */
  readonly hasEnded: boolean;
  /** Reads the next part of the body. @throws OrchestratorError `AGENT_FAILED` */
  add(chunk: Uint8Array): void;
  /** @throws OrchestratorError `AGENT_FAILED` if the stream ended before the answer did */
  end(): ModelAnswer;
}

type Call = { -readonly [K in keyof WrittenCall]: WrittenCall[K] };

interface State {
  text: string;
  refusal: string;
  reasoning: string;
  readonly calls: Call[];
  readonly byIndex: Map<Json | undefined, Call>;
  finishReason: Json | undefined;
  usage: Json | undefined;
  model: Json | undefined;
  isDone: boolean;
  /** Whether any event had a part of the answer. */
  hasChoice: boolean;
}

export function createChatStream(call: ChatCall, request: ModelRequest): ChatStream {
  const decoder = new TextDecoder();
  const calls: Call[] = [];
  const state: State = {
    ...{ text: '', refusal: '', reasoning: '', calls, byIndex: new Map(), isDone: false, hasChoice: false },
    ...{ finishReason: undefined, usage: undefined, model: undefined },
  };
  // The parts of a line that is not complete yet. They are joined once: a long line may come in many chunks.
  let open: string[] = [];
  const readLine = (line: string) => {
    if (!line.startsWith('data:')) return;
    const data = line.slice('data:'.length).trim();
    if (data === '[DONE]') state.isDone = true;
    else if (data !== '' && !state.isDone) readEvent(data, state, call, request);
  };
  return {
    get isDone() {
      return state.isDone;
    },
    get hasEnded() {
      return state.isDone || state.finishReason !== undefined;
    },
    add(chunk) {
      const lines = decoder.decode(chunk, { stream: true }).split(/\r\n|\n|\r/);
      const last = lines.pop() as string;
      for (const line of lines) {
        open.push(line);
        readLine(open.join(''));
        open = [];
      }
      if (last !== '') open.push(last);
    },
    end() {
      const rest = open.join('') + decoder.decode();
      // The last line may lack its end, or be cut.
      if (rest === 'data: [DONE]' || parseJson(rest.slice('data:'.length)) !== undefined) readLine(rest);
      if (!state.isDone && state.finishReason === undefined)
        throw answerFailure(call, 'truncated', 'a stream that ended before the answer did', true);
      if (!state.hasChoice) throw answerFailure(call, 'malformed', 'a stream without an answer', true);
      return toAnswer(request, state);
    },
  };
}

function readEvent(data: string, state: State, call: ChatCall, { onText }: ModelRequest): void {
  const json = parseJson(data);
  if (!isMap(json)) throw answerFailure(call, 'invalid-json', 'a stream with an event that is not JSON', true);
  const error = errorInside(call, json);
  if (error) throw error;
  state.usage = json.usage ?? state.usage;
  state.model = json.model ?? state.model;
  const choice = firstOf(json.choices);
  state.hasChoice ||= choice !== undefined;
  state.finishReason = choice?.finish_reason ?? state.finishReason;
  const delta = isMap(choice?.delta) ? choice.delta : ({} as JsonObject);
  const text = textOf(delta.content);
  state.text += text;
  state.refusal += textOf(delta.refusal);
  state.reasoning += textOf(delta.reasoning_content);
  if (Array.isArray(delta.tool_calls)) for (const part of delta.tool_calls as readonly Json[]) addCall(part, state);
  if (state.calls.length > MAX_TOOL_CALLS)
    throw answerFailure(call, 'too-large', `more than ${MAX_TOOL_CALLS} calls of tools`, false);
  if (text !== '') onText?.(text);
}

function addCall(part: Json, { calls, byIndex }: State): void {
  if (!isMap(part)) return;
  const { index, extra_content: extra } = part;
  const { name, arguments: args } = isMap(part.function) ? part.function : ({} as JsonObject);
  const id = textOf(part.id);
  let call = byIndex.get(index);
  if (!call || isOtherCall(call, id, textOf(name))) {
    call = { id: '', name: '', arguments: '', extra: undefined };
    calls.push(call);
    byIndex.set(index, call);
  }
  call.id ||= id;
  call.name ||= textOf(name);
  call.arguments +=
    typeof args === 'string' || args === undefined || args === null ? textOf(args) : JSON.stringify(args);
  call.extra ??= extra;
}

/** Some servers give every call the index 0, or none, and some give none an id: then a name begins the next call. */
function isOtherCall(call: Call, id: string, name: string): boolean {
  if (id !== '') return call.id !== '' && call.id !== id;
  return name !== '' && call.name !== '' && parseJson(call.arguments || '{}') !== undefined;
}
