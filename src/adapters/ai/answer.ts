/** Turns the answer of an AI SDK model, whole or streamed, into the answer of the model port. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { copyJson, type Json } from '../../engine/base/json/json.ts';
import { nestsTooDeep } from '../../engine/base/json/json-text.ts';
import { nextTurn } from '../../engine/base/time/next-turn.ts';
import type { ModelAnswer, ModelFinishReason, ModelRequest, ModelToolCall } from '../../engine/operation/model.port.ts';
import type { ContentPart, Finish, GenerateResult, PromptPart, StreamPart } from './ai-sdk-types.ts';
import { type StoredParts, toToolInput } from './call-options.ts';

/** The longest answer that is read, in characters of text and arguments. */
const MAX_ANSWER_LENGTH = 10 * 1024 * 1024;

/** How many whole parts an answer may have, such as calls of tools and blocks of text. */
const MAX_PARTS = 10_000;
/** The event loop has a turn after this number of parts, which may come all at once. */
const PARTS_IN_TURN = 256;

/**
 * @throws OrchestratorError `AGENT_FAILED`, retryable, if the provider reports that the answer is not complete
 */
export function toAnswer(result: GenerateResult, request: ModelRequest): ModelAnswer {
  const { unified } = finishReason(result);
  if (unified === 'error' || unified === 'interrupted') throw incomplete();
  const { content, structuredOutputText, usage, response } = result;
  const texts = content.filter(({ type }) => type === 'text').map(({ text = '' }) => text);
  const calls = content.filter(({ type, providerExecuted }) => type === 'tool-call' && !providerExecuted);
  const state = toState(content);
  return {
    text: request.schema === undefined ? texts.join('') : (structuredOutputText ?? texts.join('')),
    toolCalls: calls.map(toToolCall),
    usage: { inputTokens: tokens(usage?.inputTokens), outputTokens: tokens(usage?.outputTokens) },
    finishReason: FINISH_REASONS.has(unified) ? (unified as ModelFinishReason) : 'other',
    model: response?.modelId || request.model,
    ...(state === undefined ? {} : { state }),
  };
}

/**
 * Reads a stream to its end.
 *
 * @param onText - called with each part of the text
 * @throws what the stream reports, or `AGENT_FAILED`, retryable, if it ends before the answer does
 */
export async function readStream(
  stream: ReadableStream<StreamPart>,
  onText: (delta: string) => void,
  signal: AbortSignal,
  maxParts = MAX_PARTS,
): Promise<GenerateResult> {
  const reader = stream.getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  signal.addEventListener('abort', cancel, { once: true });
  const content: ContentPart[] = [];
  const open = new Map<string, { type: string; text: string; providerMetadata?: ContentPart['providerMetadata'] }>();
  let modelId: string | undefined;
  let finish: StreamPart | undefined;
  let length = 0;
  try {
    // What comes after the finish is not part of the answer, and may never come.
    for (let count = 1; finish === undefined; count++) {
      if (count % PARTS_IN_TURN === 0) await new Promise<void>(nextTurn);
      const { done, value: part } = await reader.read();
      if (done) break;
      if (content.length > maxParts) throw tooManyParts(maxParts);
      length += (part.delta ?? part.input ?? '').length;
      if (length > MAX_ANSWER_LENGTH) throw tooLongAnswer();
      if (part.type === 'error') throw part.error;
      if (part.type === 'response-metadata') modelId = part.modelId ?? modelId;
      else if (part.type === 'finish') finish = part;
      else if (WHOLE_PARTS.has(part.type)) content.push(part);
      else if (part.id !== undefined) {
        addToBlock(part, part.id);
        if (part.type === 'text-delta' && part.delta) onText(part.delta);
      }
    }
    if (signal.aborted) throw signal.reason;
    if (finish !== undefined) cancel();
  } catch (thrown) {
    cancel();
    throw thrown;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
  if (finish === undefined || isCutOff(finish)) throw incomplete();
  return { ...finish, content, response: modelId === undefined ? {} : { modelId } };

  // Blocks of text and of reasoning come as a start, deltas and an end, which share an id. The metadata of the last one counts: a
  // signature is known only at the end.
  function addToBlock(part: StreamPart, id: string): void {
    const type = part.type.startsWith('text-') ? 'text' : part.type.startsWith('reasoning-') ? 'reasoning' : undefined;
    if (type === undefined) return;
    const key = `${type} ${id}`;
    let block = open.get(key);
    if (block === undefined) {
      block = { type, text: '' };
      open.set(key, block);
      content.push(block);
    }
    block.text += part.delta ?? '';
    if (part.providerMetadata !== undefined) block.providerMetadata = part.providerMetadata;
    if (part.type.endsWith('-end')) open.delete(key);
  }
}

const WHOLE_PARTS: ReadonlySet<string> = new Set(['tool-call', 'tool-result', 'custom']);
const FINISH_REASONS: ReadonlySet<string> = new Set(['stop', 'length', 'tool-calls', 'content-filter']);

function finishReason({ finishReason }: Finish): { unified: string; raw: string | undefined } {
  if (typeof finishReason === 'string') return { unified: finishReason, raw: finishReason };
  return { unified: finishReason?.unified ?? 'other', raw: finishReason?.raw };
}

// What providers report when the server ended the stream before it said why the answer ends: version 4 has a reason of its own.
function isCutOff(finish: Finish): boolean {
  const { unified, raw } = finishReason(finish);
  return unified === 'interrupted' || unified === 'unknown' || (unified === 'other' && raw === undefined);
}

function toToolCall({ toolCallId = '', toolName = '', input = '' }: ContentPart): ModelToolCall {
  return { id: toolCallId, name: toolName, arguments: parseArguments(input) };
}

// A call of a tool without parameters may have no arguments at all.
function parseArguments(input: string): Json {
  if (input.trim() === '') return {};
  if (nestsTooDeep(input)) return input;
  try {
    return copyJson(JSON.parse(input));
  } catch {
    return input;
  }
}

function tokens(count: NonNullable<Finish['usage']>['inputTokens']): number {
  const total = typeof count === 'object' ? count.total : count;
  return typeof total === 'number' && Number.isFinite(total) ? total : 0;
}

// Only an answer with more than text and calls needs a state: signed reasoning, ids of a provider's items.
function toState(content: readonly ContentPart[]): StoredParts | undefined {
  const isPlain = (part: ContentPart) =>
    part.providerMetadata === undefined &&
    !part.providerExecuted &&
    (part.type === 'text' || part.type === 'tool-call');
  const kept = content.filter(({ type }) => type === 'text' || type === 'reasoning' || WHOLE_PARTS.has(type));
  return kept.every(isPlain) ? undefined : (copyJson({ parts: kept.map(toPromptPart) }) as StoredParts);
}

function toPromptPart(part: ContentPart): PromptPart {
  const { type, text, toolCallId, toolName, providerExecuted, kind, providerMetadata: providerOptions } = part;
  if (type === 'tool-call') {
    const input = toToolInput(parseArguments(part.input ?? ''));
    return { type, toolCallId, toolName, input, providerExecuted, providerOptions };
  }
  if (type === 'tool-result') {
    const output = { type: part.isError ? 'error-json' : 'json', value: part.result ?? null };
    return { type, toolCallId, toolName, output, providerOptions };
  }
  return type === 'custom' ? { type, kind, providerOptions } : { type, text, providerOptions };
}

function incomplete(): OrchestratorError {
  return new OrchestratorError('AGENT_FAILED', 'the answer of the model broke off before its end; try again', {
    details: { reason: 'malformed' },
    retryable: true,
  });
}

function tooManyParts(limit: number): OrchestratorError {
  const message = `the answer of the model has more than ${limit} parts, such as calls of tools`;
  return new OrchestratorError('AGENT_FAILED', message, { details: { reason: 'too-large', limit } });
}

function tooLongAnswer(): OrchestratorError {
  const message = `the answer of the model is longer than ${MAX_ANSWER_LENGTH} characters; lower maxTokens`;
  return new OrchestratorError('AGENT_FAILED', message, {
    details: { reason: 'too-large', limit: MAX_ANSWER_LENGTH },
  });
}
