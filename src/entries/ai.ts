/**
 * The public names for the providers of the AI SDK.
 *
 * @module ensemble-orchestrator/ai
 */

export { type AiModelsOptions, aiModels } from '../adapters/ai/ai-models.ts';
export type { AiLanguageModel, AiProvider, AiProviderOptions } from '../adapters/ai/ai-sdk-types.ts';
export { toFetch } from '../adapters/ai/to-fetch.ts';
export type { HttpClient, HttpRequest, HttpResponse } from '../engine/host/http.port.ts';
export type { ModelAnswer, ModelPrices, ModelProvider, ModelRequest } from '../engine/operation/model.port.ts';
