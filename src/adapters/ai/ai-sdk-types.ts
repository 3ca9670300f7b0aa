/** The parts of the AI SDK's language model specification, versions 2 to 4, that the adapter reads and writes. */

import type { Json, JsonObject } from '../../engine/base/json/json.ts';

/** A language model of the AI SDK (`LanguageModelV2`, `LanguageModelV3` or `LanguageModelV4`). */
export interface AiLanguageModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  // `never` accepts the options of every version of the specification.
  doGenerate(options: never): PromiseLike<object>;
  doStream(options: never): PromiseLike<{ readonly stream: ReadableStream<object> }>;
}

/** A provider of the AI SDK, such as `createAnthropic({ apiKey })`, or a function that returns the model of an id. */
export type AiProvider =
  | { languageModel(modelId: string): AiLanguageModel }
  // biome-ignore lint/suspicious/noExplicitAny: providers list the ids that they know, and any other id is text
  | ((modelId: any) => AiLanguageModel);

/** Options or answers of one provider, by its name, such as `{ anthropic: { ... } }`. */
export type AiProviderOptions = Readonly<Record<string, JsonObject>>;

/** A part of a message that is sent. */
export type PromptPart = Readonly<Record<string, unknown>> & { readonly type: string };

export interface CallOptions {
  readonly prompt: readonly { readonly role: string; readonly content: string | readonly PromptPart[] }[];
  readonly maxOutputTokens?: number | undefined;
  readonly temperature?: number | undefined;
  readonly responseFormat?: { readonly type: 'json'; readonly schema: JsonObject } | undefined;
  readonly tools?: readonly object[] | undefined;
  readonly toolChoice?: { readonly type: 'auto' } | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly providerOptions?: AiProviderOptions | undefined;
  readonly abortSignal: AbortSignal;
}

/** A part of an answer. What a part has depends on its type. */
export interface ContentPart {
  readonly type: string;
  readonly text?: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
  /** Of a tool call: JSON as text. */
  readonly input?: string;
  /** Of a result of a tool that the provider ran. */
  readonly result?: Json;
  readonly isError?: boolean;
  readonly providerExecuted?: boolean;
  readonly kind?: string;
  readonly providerMetadata?: AiProviderOptions;
}

type TokenCount = number | { readonly total?: number | undefined } | undefined;

/** The end of an answer. Version 2 has plain numbers and text, the later ones have objects. */
export interface Finish {
  readonly usage?: { readonly inputTokens?: TokenCount; readonly outputTokens?: TokenCount };
  readonly finishReason?: string | { readonly unified?: string; readonly raw?: string | undefined };
}

export interface GenerateResult extends Finish {
  readonly content: readonly ContentPart[];
  /** Version 4: the text of the structured output, if the other text is not part of it. */
  readonly structuredOutputText?: string;
  readonly response?: { readonly modelId?: string };
}

/** A part of a stream. What a part has depends on its type. */
export interface StreamPart extends ContentPart, Finish {
  readonly id?: string;
  readonly delta?: string;
  readonly modelId?: string;
  readonly error?: unknown;
}
