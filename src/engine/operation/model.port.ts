/** The model port: one call of a language model. */

import type { Json, JsonObject } from '../base/json/json.ts';

/** A call of a tool that a model asks for. */
export interface ModelToolCall {
  /** Unique in its answer. */
  readonly id: string;
  /** The name of the tool, as the request gave it. */
  readonly name: string;
  /** What the model wrote: JSON, or the text itself if it is not JSON. */
  readonly arguments: Json;
}

/** A tool that a model may call. */
export interface ModelTool {
  /** Up to 64 of `A-Za-z0-9_-`. */
  readonly name: string;
  readonly description?: string;
  /** A JSON Schema of type `object`. */
  readonly inputSchema: JsonObject;
}

/** One message of a conversation. */
export type ModelMessage =
  | { readonly role: 'user'; readonly text: string }
  | { readonly role: 'assistant'; readonly answer: ModelAnswer }
  | { readonly role: 'tool'; readonly call: ModelToolCall; readonly result: Json; readonly isError: boolean };

export interface ModelRequest {
  readonly model: string;
  readonly system?: string;
  readonly messages: readonly ModelMessage[];
  readonly temperature?: number;
  /** The largest answer, in tokens. */
  readonly maxTokens?: number;
  /** A JSON Schema that the text of the answer, read as JSON, has to fit. A provider asks its model for that as well as it can. */
  readonly schema?: JsonObject;
  readonly tools?: readonly ModelTool[];
  /** The longest time of the call, in ms. */
  readonly timeoutMs: number;
  /** Equal each time the same call is made again. */
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
  /** With it, the provider streams, and passes each part of the text as it comes. The answer has the whole text all the same. */
  readonly onText?: (delta: string) => void;
}

/** Numbers of tokens. */
export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export type ModelFinishReason = 'stop' | 'length' | 'tool-calls' | 'content-filter' | 'other';

/** The answer of a model. JSON: it is stored. */
export interface ModelAnswer {
  /** Empty if the model only calls tools. */
  readonly text: string;
  readonly toolCalls: readonly ModelToolCall[];
  readonly usage: ModelUsage;
  readonly finishReason: ModelFinishReason;
  /** The model that answered, as the provider names it. */
  readonly model: string;
  /** What the provider needs back with this answer in the next request. No other code reads it. */
  readonly state?: Json;
}

/** Prices by model, for 1,000,000 tokens, in a currency of the host's choice. */
export type ModelPrices = Readonly<Record<string, { readonly input: number; readonly output: number }>>;

/** The models of one provider. */
export interface ModelProvider {
  readonly prices?: ModelPrices;
  /**
   * Makes one call, and never repeats it.
   *
   * If `signal` aborts, it rejects with the signal's reason. Otherwise it rejects with an `OrchestratorError`: `AGENT_FAILED` with
   * `retryable` and, from a `Retry-After`, `details.retryAfterMs`; `TIMEOUT`; or an error of the HTTP port.
   */
  generate(request: ModelRequest): Promise<ModelAnswer>;
}
