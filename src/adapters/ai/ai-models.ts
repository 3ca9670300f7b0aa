/** Makes the providers of the AI SDK serve the model port. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { checkedLater, type OptionChecks, readOptions } from '../../engine/base/read-options.ts';
import { underDeadline } from '../../engine/base/time/under-deadline.ts';
import type { ModelAnswer, ModelPrices, ModelProvider, ModelRequest } from '../../engine/operation/model.port.ts';
import type { AiLanguageModel, AiProvider, AiProviderOptions, GenerateResult, StreamPart } from './ai-sdk-types.ts';
import { readStream, toAnswer } from './answer.ts';
import { toCallOptions } from './call-options.ts';
import { toFailure } from './failure.ts';

export interface AiModelsOptions {
  /** The price of each model. With them, the record of an execution has its cost. */
  readonly prices?: ModelPrices | undefined;
  /** Sent with every call, by the name of the provider: `{ anthropic: { thinking: { type: 'enabled', budgetTokens: 2000 } } }`. */
  readonly providerOptions?: AiProviderOptions | undefined;
}

/**
 * Makes a model provider of any provider of the AI SDK. It calls the provider's models itself: the package `ai` is not needed, and
 * nothing is tried twice.
 *
 * The provider does its own requests: the checks of the option `http` do not apply to them, unless the provider is created with
 * `fetch: toFetch(http)`.
 *
 * @param provider - such as `createAnthropic({ apiKey })`, or a function that returns the model of an id. Models of the
 *   specification's versions 2, 3 and 4 are supported (`ai` 5 to 7)
 * @param options - see {@link AiModelsOptions}
 * @throws TypeError for something that is not a provider, or a wrong option
 */
export function aiModels(provider: AiProvider, options: AiModelsOptions = {}): ModelProvider {
  checkProvider(provider);
  const { prices, providerOptions } = readOptions('aiModels', options, CHECKS);
  return Object.freeze<ModelProvider>({
    ...(prices === undefined ? {} : { prices }),
    generate: (request) =>
      underDeadline({ ...request, late: () => timeoutFailure(request) }, async (signal) => {
        let label = `the model ${request.model}`;
        try {
          const model = findModel(provider, request.model);
          label = `${label} of ${model.provider}`;
          return await callModel(model, request, providerOptions, signal);
        } catch (thrown) {
          throw toFailure(thrown, label, Date.now());
        }
      }),
  });
}

async function callModel(
  model: AiLanguageModel,
  request: ModelRequest,
  providerOptions: AiProviderOptions | undefined,
  signal: AbortSignal,
): Promise<ModelAnswer> {
  const call = toCallOptions(request, model, providerOptions, signal) as never;
  const { onText } = request;
  if (onText === undefined) return toAnswer((await model.doGenerate(call)) as GenerateResult, request);
  const { stream } = await model.doStream(call);
  return toAnswer(await readStream(stream as ReadableStream<StreamPart>, onText, signal), request);
}

const SPECIFICATIONS: ReadonlySet<unknown> = new Set(['v2', 'v3', 'v4']);

function findModel(provider: AiProvider, id: string): AiLanguageModel {
  const model = 'languageModel' in provider ? provider.languageModel(id) : provider(id);
  const version = model?.specificationVersion;
  if (SPECIFICATIONS.has(version) && typeof model.doGenerate === 'function') return model;
  const message = `the provider's model ${id} has the specification ${String(version)}; v2, v3 and v4 are supported. Install a matching version of the provider`;
  throw new OrchestratorError('AGENT_FAILED', message);
}

function timeoutFailure({ model, timeoutMs }: ModelRequest): OrchestratorError {
  const message = `the model ${model} took longer than ${timeoutMs} ms; raise its timeout, or lower maxTokens`;
  return new OrchestratorError('TIMEOUT', message, { details: { timeoutMs }, retryable: true });
}

function checkProvider(provider: AiProvider): void {
  const { languageModel } = (provider ?? {}) as { readonly languageModel?: unknown };
  if (typeof provider === 'function' || typeof languageModel === 'function') return;
  throw new TypeError('aiModels takes a provider of the AI SDK, such as createAnthropic({ apiKey })');
}

const CHECKS: OptionChecks<AiModelsOptions> = { prices: checkedLater, providerOptions: checkedLater };
