/** The `think` operation: asks a language model, which may call tools. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { isMap } from '../../engine/base/json/is-map.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import type { TokenUsage } from '../../engine/execution/execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import { checkBySchema } from '../../engine/json-schema/check-by-schema.ts';
import { partSchema } from '../../engine/json-schema/check-json-schema.ts';
import type { ModelFinishReason, ModelProvider } from '../../engine/operation/model.port.ts';
import type { Operation, OperationContext } from '../../engine/operation/operation.port.ts';
import { addUsage } from '../../engine/operation/token-usage.ts';
import type { ToolServers } from '../../engine/operation/tool-server.port.ts';
import { attemptOf } from './call-model.ts';
import { checkThinkConfig, promptProblem, providerName, type ThinkConfig, thinkConfig } from './config.ts';
import { converse, type Talk, type Walk } from './conversation.ts';
import { openToolbox } from './toolbox.ts';
import { agentCalls, serversOf } from './tools-config.ts';

/** The output of a `think` agent. */
export interface ThinkOutput {
  readonly text: string;
  /** With `schema`: the value of the text, with the defaults of the schema. */
  readonly object?: Json;
  /** Over all calls of the model. `cost` if the provider has prices. */
  readonly usage: TokenUsage;
  /** The model that answered, as the provider names it. */
  readonly model: string;
  readonly provider: string;
  readonly finishReason: ModelFinishReason;
}

/** @param dependencies - `models`: the providers by name. Only own keys count */
export function thinkOperation(dependencies: {
  readonly models: Readonly<Record<string, ModelProvider>>;
  readonly servers: ToolServers;
  readonly clock: Clock;
}): Operation<ThinkConfig> {
  const { servers, clock } = dependencies;
  const providers = new Map(Object.entries(dependencies.models));
  return {
    name: 'think',
    get config() {
      return thinkConfig();
    },
    check: (config, fromComponents) => checkThinkConfig(config, providers, servers.names, fromComponents),
    calls: agentCalls,
    output: thinkOutput,
    texts: { prompt: 'template', system: 'template' },
    readsOnlyInput: () => true,
    needs(config) {
      const name = providerName(config, providers);
      return [...(name === undefined ? [] : [`model:${name}`]), ...serversOf(config).map((server) => `mcp:${server}`)];
    },
    async run(context): Promise<ThinkOutput> {
      const name = providerName(context.config, providers);
      const provider = name === undefined ? undefined : providers.get(name);
      if (name === undefined || !provider) {
        const what = name === undefined ? 'the model provider of this agent' : `model provider \`${name}\``;
        throw new OrchestratorError('NOT_CONFIGURED', `${what} is not configured in this process`);
      }
      const prompt = promptOf(context);
      const { schema } = context.config;
      const check = schema ? checkBySchema(schema, ['schema'], 'the answer') : undefined;
      const { tools, parts: toolParts } = await openToolbox(context, servers);
      return think(
        { context, provider, providerName: name, prompt, check, servers, tools, clock },
        { answers: [], toolParts },
      );
    },
  };
}

function promptOf({ config: { prompt } }: OperationContext<ThinkConfig>): string {
  if (typeof prompt !== 'string') {
    const message = 'the agent has no prompt: set `config.prompt`, or let a router with a `prompt` come before it';
    throw new OrchestratorError('INVALID_INPUT', message);
  }
  const problem = promptProblem(prompt);
  if (problem !== undefined) throw new OrchestratorError('INVALID_INPUT', `\`config.prompt\` ${problem}`);
  return prompt;
}

/** Holds conversations until one gives a result: at most one new one in each attempt. */
async function think(talk: Talk, walk: Walk): Promise<ThinkOutput> {
  for (;;) {
    const ending = await converse(talk, walk);
    if ('failed' in ending) {
      // The stored answers of an earlier attempt, or of the execution that this one retries, led here again.
      if (ending.attempt !== attemptOf(talk.context)) continue;
      throw ending.failed;
    }
    const { answer, object } = ending;
    const { text, model, finishReason } = answer;
    const usage = walk.answers.reduce<TokenUsage | undefined>((sum, { usage: used }) => addUsage(sum, used), undefined);
    return {
      text,
      ...(object !== undefined && { object }),
      usage: usage as TokenUsage,
      ...{ model, provider: talk.providerName, finishReason },
    };
  }
}

const usage = {
  type: 'object',
  properties: { inputTokens: { type: 'integer' }, outputTokens: { type: 'integer' }, cost: { type: 'number' } },
  required: ['inputTokens', 'outputTokens'],
  additionalProperties: false,
};

const TEXT_ONLY = outputOf({});

function thinkOutput(config: JsonObject): JsonObject {
  return config.schema === undefined || config.schema === null ? TEXT_ONLY : outputOf(config);
}

function outputOf({ schema }: JsonObject): JsonObject {
  // A schema in text, or one from an expression, is not known.
  const object = isMap(schema) ? partSchema(schema) : {};
  return {
    type: 'object',
    properties: {
      text: { type: 'string' },
      ...(schema !== undefined && schema !== null && { object }),
      usage,
      model: { type: 'string' },
      provider: { type: 'string' },
      finishReason: { enum: ['stop', 'length', 'content-filter', 'tool-calls', 'other'] },
    },
    required: ['text', 'usage', 'model', 'provider', 'finishReason', ...(schema ? ['object'] : [])],
    additionalProperties: false,
  } as JsonObject;
}
