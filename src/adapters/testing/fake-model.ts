/** A language model that answers what a test tells it to. */

import type { Json } from '../../engine/json.ts';
import type { ModelAnswer, ModelProvider, ModelRequest } from '../../engine/ports/model.ts';

/** A text, an object (for a request with a schema), or parts of an answer. */
export type FakeReply = string | { readonly object: Json } | Partial<ModelAnswer>;

export interface FakeModel extends ModelProvider {
  /** Requests in the order in which they came. */
  readonly calls: readonly ModelRequest[];
}

/**
 * @param replies - one for every call, one a call (the last repeats), or a function of the request; what a function throws is thrown
 */
export function fakeModel(
  replies: FakeReply | readonly FakeReply[] | ((request: ModelRequest) => FakeReply | Promise<FakeReply>),
): FakeModel {
  if (Array.isArray(replies) && replies.length === 0) throw new TypeError('fakeModel: the list of replies is empty');
  const calls: ModelRequest[] = [];
  return {
    calls,
    async generate(request) {
      request.signal?.throwIfAborted();
      calls.push(request);
      if (typeof replies === 'function') return toAnswer(await replies(request), request);
      const reply = Array.isArray(replies) ? replies[Math.min(calls.length, replies.length) - 1] : replies;
      return toAnswer(reply as FakeReply, request);
    },
  };
}

// Tokens are counted as words: a figure that a test can foresee.
function toAnswer(reply: FakeReply, request: ModelRequest): ModelAnswer {
  const given: Partial<ModelAnswer> = typeof reply === 'string' ? { text: reply } : reply;
  const text = given.text ?? (given.object === undefined ? '' : JSON.stringify(given.object));
  const usage = { inputTokens: words(`${request.system ?? ''} ${request.prompt}`), outputTokens: words(text) };
  return { text, usage, model: request.model, finishReason: 'stop', ...given };
}

function words(text: string): number {
  return text.split(/\s+/).filter((word) => word !== '').length;
}
