/** The options of a model server that the built-in provider speaks to. */

import type { JsonObject } from '../../engine/base/json/json.ts';
import type { ModelPrices } from '../../engine/operation/model.port.ts';

/** A model server: an entry of the option `models`. */
export interface ModelServerOptions {
  /** The address of the API, such as `https://api.openai.com/v1`. `/chat/completions` is added to its path. */
  readonly url: string;
  /** Sent as `Authorization: Bearer ...`. */
  readonly apiKey?: string | undefined;
  /** Sent with each request. Their values count as secrets. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** With prices, the usage of a model has a `cost`. */
  readonly prices?: ModelPrices | undefined;
  /**
   * How the server is asked for an answer that fits a JSON Schema. With `json_object` and `prompt`, the schema is part of the system
   * message. Default `json_schema`.
   */
  readonly structuredOutput?: 'json_schema' | 'json_object' | 'prompt' | undefined;
  /** The field that limits an answer. Default `max_completion_tokens` for api.openai.com, and `max_tokens` for other servers. */
  readonly maxTokensField?: 'max_tokens' | 'max_completion_tokens' | undefined;
  /** More fields of each request, such as `{ reasoning_effort: 'low' }`. */
  readonly body?: JsonObject | undefined;
}
