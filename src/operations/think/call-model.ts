/** One call of a model in a conversation, as a stored part of the attempt. */

import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import { toMs } from '../../engine/base/time/duration.ts';
import { underDeadline } from '../../engine/base/time/under-deadline.ts';
import type { TokenUsage } from '../../engine/execution/execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type {
  ModelAnswer,
  ModelMessage,
  ModelPrices,
  ModelProvider,
  ModelRequest,
  ModelUsage,
} from '../../engine/operation/model.port.ts';
import type { OperationContext } from '../../engine/operation/operation.port.ts';
import type { ThinkConfig } from './config.ts';
import type { Tool } from './toolbox.ts';

/** What all calls of one attempt share. */
export interface ModelCalls {
  readonly context: OperationContext<ThinkConfig>;
  readonly provider: ModelProvider;
  readonly providerName: string;
  readonly tools: readonly Tool[];
  readonly clock: Clock;
}

/** What is stored of a call. */
export interface StoredAnswer extends ModelAnswer {
  readonly usage: TokenUsage;
  /** The attempt that made the call: see {@link attemptOf}. */
  readonly attempt: string;
}

/** Names the attempt. A retried execution has the stored parts of another one, and begins with attempt 1 again. */
export function attemptOf({ execution }: OperationContext<ThinkConfig>): string {
  return `${execution.id} ${execution.attempt}`;
}

const DEFAULT_TIMEOUT_MS = 300_000;

/** @param number - the number of the part @throws as the port `ModelProvider`; INVALID_OUTPUT for an answer that is too large */
export async function callModel(
  calls: ModelCalls,
  number: number,
  messages: readonly ModelMessage[],
): Promise<StoredAnswer> {
  const { context, provider, providerName } = calls;
  const { model } = context.config;
  const stored = await context.step({ kind: 'model', number, name: model, provider: providerName }, async () => {
    const answer = await ask(calls, number, messages);
    const cost = costOf(answer, model, provider.prices);
    const usage = { ...answer.usage, ...(cost !== undefined && { cost }) };
    return { ...answer, usage, attempt: attemptOf(context) };
  });
  return stored as unknown as StoredAnswer;
}

async function ask(calls: ModelCalls, number: number, messages: readonly ModelMessage[]): Promise<ModelAnswer> {
  const { context, provider, providerName, tools, clock } = calls;
  const { config, signal, idempotencyKey, logger } = context;
  const { model, system, temperature, maxTokens, schema, timeout } = config;
  const timeoutMs = timeout ? toMs(timeout) : DEFAULT_TIMEOUT_MS;
  const late = () =>
    new OrchestratorError('TIMEOUT', `model \`${model}\` took longer than ${timeoutMs} ms`, {
      retryable: true,
      details: { timeoutMs },
    });
  try {
    const request: Omit<ModelRequest, 'signal'> = {
      model,
      messages: [...messages],
      ...(system && { system }),
      ...(typeof temperature === 'number' && { temperature }),
      ...(maxTokens && { maxTokens }),
      ...(schema && { schema }),
      ...(tools.length > 0 && { tools: tools.map((tool) => tool.model) }),
      timeoutMs,
      idempotencyKey: `${idempotencyKey}-model-${number}`,
      ...(config.stream && { onText: (delta: string) => context.emitText(delta) }),
    };
    const answer = await underDeadline({ timeoutMs, setTimer: clock.setTimer, signal, late }, (within) =>
      provider.generate({ ...request, signal: within }),
    );
    return checkedAnswer(answer, providerName);
  } catch (thrown) {
    if (signal.aborted || isOrchestratorError(thrown)) throw thrown;
    // The message of another provider may contain addresses and keys. Only the log receives it.
    logger.error({ err: thrown, provider: providerName, model }, 'a model provider failed');
    const message = `model provider \`${providerName}\` failed; the log has its error`;
    throw new OrchestratorError('AGENT_FAILED', message, { cause: thrown, retryable: true });
  }
}

/** Takes what the port names from the answer of a provider that the host may have written. */
function checkedAnswer(answer: ModelAnswer, provider: string): ModelAnswer {
  const { text, toolCalls, usage, finishReason, model, state } = answer ?? {};
  const isCall = (call: unknown) =>
    typeof (call as JsonObject | null)?.id === 'string' && typeof (call as JsonObject).name === 'string';
  const hasTexts = [text, finishReason, model].every((one) => typeof one === 'string');
  if (hasTexts && Array.isArray(toolCalls) && toolCalls.every(isCall) && isUsage(usage)) {
    const { inputTokens, outputTokens } = usage;
    return {
      ...{ text, toolCalls, finishReason, model },
      usage: { inputTokens, outputTokens },
      ...(state !== undefined && { state }),
    };
  }
  const message = `model provider \`${provider}\` gave no answer of the form { text, toolCalls, usage, finishReason, model }`;
  throw new OrchestratorError('AGENT_FAILED', message, { details: { reason: 'malformed' } });
}

function isUsage(usage: ModelUsage | undefined): usage is ModelUsage {
  const isCount = (count: unknown) => Number.isFinite(count) && (count as number) >= 0;
  return isCount(usage?.inputTokens) && isCount(usage?.outputTokens);
}

/** The price of a call: that of the model as the definition names it, or as the provider does. */
function costOf({ usage, model }: ModelAnswer, asked: string, prices: ModelPrices = {}): number | undefined {
  const name = [asked, model].find((one) => Object.hasOwn(prices, one));
  const price = name === undefined ? undefined : prices[name];
  return price && (usage.inputTokens * price.input + usage.outputTokens * price.output) / 1_000_000;
}
