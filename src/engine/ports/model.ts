/** The model port: one answer of a language model. */

import type { Json, JsonObject } from '../json.ts';

export interface ModelRequest {
  readonly model: string;
  readonly system?: string;
  readonly prompt: string;
  readonly temperature?: number;
  readonly maxTokens?: number;
  /** JSON Schema that the answer's `object` must fit. */
  readonly schema?: JsonObject;
  readonly signal?: AbortSignal;
  readonly idempotencyKey?: string;
}

export interface ModelAnswer {
  readonly text: string;
  /** Set when the request had a `schema`. */
  readonly object?: Json;
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number };
  /** The model that answered. */
  readonly model: string;
  /** `stop`, `length`, or what the provider says. */
  readonly finishReason: string;
}

export interface ModelProvider {
  /** @throws OrchestratorError AGENT_FAILED; `retryable` says whether the same request may pass later */
  generate(request: ModelRequest): Promise<ModelAnswer>;
}
