/** A model provider for tests: it answers from a script, and records its requests. */

import { OrchestratorError } from '../engine/base/errors.ts';
import type { Json } from '../engine/base/json/json.ts';
import { isRecord } from '../engine/base/read-options.ts';
import type {
  ModelAnswer,
  ModelFinishReason,
  ModelProvider,
  ModelRequest,
  ModelUsage,
} from '../engine/operation/model.port.ts';

/** One answer. Without `text` and `object`, its text is empty. */
export interface FakeReply {
  readonly text?: string;
  /** Becomes the text, as JSON. */
  readonly object?: Json;
  readonly toolCalls?: readonly { readonly name: string; readonly arguments?: Json; readonly id?: string }[];
  /** Default: 10 and 5. */
  readonly usage?: ModelUsage;
  /** Default: `tool-calls` with calls, otherwise `stop`. */
  readonly finishReason?: ModelFinishReason;
  /** Default: the model of the request. */
  readonly model?: string;
}

/** A text, a reply, an error that the call is rejected with, or a function of the request that gives one of these. */
export type FakeAnswer =
  | string
  | FakeReply
  | Error
  | ((request: ModelRequest) => string | FakeReply | Error | Promise<string | FakeReply | Error>);

export interface FakeModel extends ModelProvider {
  /** All requests in their order. */
  readonly requests: readonly ModelRequest[];
}

/**
 * Creates a model provider that gives one answer for each request, in order. A request after the last answer fails.
 *
 * @param answers - the answers
 * @param options - `prices` of the provider
 * @throws TypeError for an answer of another form
 *
 * @example
 * ```ts
 * import { createTestOrchestrator, fakeModel } from 'ensemble-orchestrator/testing';
 *
 * const model = fakeModel(['Bonjour']);
 * const orchestrator = createTestOrchestrator({
 *   models: { fake: model },
 *   ensembles: ['name: e\nflow:\n  - { agent: a, operation: think, config: { model: m, prompt: "Say in French: ${input.text}" } }\noutputs: { text: "${a.output.text}" }'],
 * });
 * console.log((await orchestrator.execute('e', { text: 'Hello' })).output); // { text: 'Bonjour' }
 * console.log(model.requests[0]?.messages); // [ { role: 'user', text: 'Say in French: Hello' } ]
 * ```
 */
export function fakeModel(answers: readonly FakeAnswer[], options: Pick<ModelProvider, 'prices'> = {}): FakeModel {
  if (!Array.isArray(answers))
    throw new TypeError(`fakeModel: the answers must be a list, such as fakeModel(['Hello'])`);
  for (const [i, answer] of answers.entries()) {
    const problem = typeof answer === 'function' || answer instanceof Error ? undefined : problemOf(answer);
    if (problem) throw new TypeError(`fakeModel: answer ${i + 1} ${problem}`);
  }
  const requests: ModelRequest[] = [];
  return {
    ...options,
    requests,
    async generate(request) {
      request.signal.throwIfAborted();
      requests.push(request);
      const given = answers[requests.length - 1];
      if (given === undefined) {
        const message = `fakeModel has ${answers.length} answers, and this is request ${requests.length}`;
        throw new OrchestratorError('AGENT_FAILED', message);
      }
      const answer = typeof given === 'function' ? await given(request) : given;
      if (answer instanceof Error) throw answer;
      const problem = typeof given === 'function' && problemOf(answer);
      if (problem) throw new OrchestratorError('AGENT_FAILED', `fakeModel: answer ${requests.length} ${problem}`);
      return toAnswer(typeof answer === 'string' ? { text: answer } : answer, request, requests.length);
    },
  };
}

const KEYS: readonly string[] = [
  'text',
  'object',
  'toolCalls',
  'usage',
  'finishReason',
  'model',
] satisfies readonly (keyof FakeReply)[];
const FORMS =
  'a text, an Error, a function, or an object with some of the keys text, object, toolCalls, usage, finishReason and model';
const CALL = '{ name, arguments }';

/** What is wrong with the form of an answer, and how to write it. */
function problemOf(answer: Exclude<FakeAnswer, Error | ((...args: never) => unknown)>): string | undefined {
  if (typeof answer === 'string') return undefined;
  if (!isRecord(answer)) return `must be ${FORMS}, not ${JSON.stringify(answer)}`;
  const unknown = Object.keys(answer).find((key) => !KEYS.includes(key));
  if (unknown !== undefined)
    return `has the unknown key \`${unknown}\`; it must be ${FORMS}. What the model answers as JSON is { object: ${JSON.stringify(answer)} }`;
  const { text = '', toolCalls = [], usage } = answer;
  if (typeof text !== 'string') return '`text` must be a text; JSON is `object`';
  if (!Array.isArray(toolCalls)) return `\`toolCalls\` must be a list of ${CALL}`;
  const isCall = (call: unknown) =>
    isRecord(call) &&
    Object.keys(call as object).every((key) => ['name', 'arguments', 'id'].includes(key)) &&
    typeof (call as { name?: unknown }).name === 'string';
  const wrong = toolCalls.find((call) => !isCall(call));
  if (wrong !== undefined) return `\`toolCalls\` has ${JSON.stringify(wrong)}; a call is ${CALL}`;
  const isCount = (count: unknown) => Number.isSafeInteger(count);
  if (usage !== undefined && !(isRecord(usage) && isCount(usage.inputTokens) && isCount(usage.outputTokens)))
    return '`usage` must be { inputTokens, outputTokens } with whole numbers';
  return undefined;
}

function toAnswer(reply: FakeReply, request: ModelRequest, number: number): ModelAnswer {
  const { object, toolCalls = [], usage = { inputTokens: 10, outputTokens: 5 }, model = request.model } = reply;
  const text = reply.text ?? (object === undefined ? '' : JSON.stringify(object));
  for (const part of text.match(/\s*\S+\s*/g) ?? []) request.onText?.(part);
  return {
    text,
    toolCalls: toolCalls.map(({ name, id, arguments: args = {} }, i) => ({
      id: id ?? `call_${number}_${i + 1}`,
      name,
      arguments: args,
    })),
    usage,
    finishReason: reply.finishReason ?? (toolCalls.length > 0 ? 'tool-calls' : 'stop'),
    model,
  };
}
