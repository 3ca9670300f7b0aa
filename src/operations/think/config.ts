/** The config of the `think` operation: its schema, and the checks at load. */

import * as z from 'zod/mini';
import { isMap } from '../../engine/base/json/is-map.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { once } from '../../engine/base/once.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import type { WrittenDuration } from '../../engine/base/time/duration.ts';
import { durationSchema } from '../../engine/base/time/duration-schema.ts';
import { oneOf, quoted } from '../../engine/base/wording.ts';
import { schemaIssues } from '../../engine/json-schema/check-by-schema.ts';
import type { ModelProvider } from '../../engine/operation/model.port.ts';
import type { ConfigIssue } from '../../engine/operation/operation.port.ts';
import type { StandardSchema } from '../../engine/operation/standard-schema.port.ts';
import { checkTools, type ToolEntry, toolsSchema } from './tools-config.ts';

/** Null means absent in every field, so that an expression can leave an option out. */
export interface ThinkConfig {
  /** The name of an entry of the option `models`. It may be left out if there is one entry. */
  readonly provider?: string | null | undefined;
  readonly model: string;
  readonly prompt?: string | null | undefined;
  readonly system?: string | null | undefined;
  readonly temperature?: number | null | undefined;
  /** The largest answer, in tokens. */
  readonly maxTokens?: number | null | undefined;
  /** A JSON Schema. The text of the answer is read as JSON that fits it. */
  readonly schema?: JsonObject | null | undefined;
  /** What the model may call. */
  readonly tools?: readonly ToolEntry[] | null | undefined;
  /** The largest number of calls of the model in one conversation. Default 10. */
  readonly maxSteps?: number | null | undefined;
  /** Passes on the text as the model writes it. Default false. */
  readonly stream?: boolean | null | undefined;
  /** The longest time of one call of the model. Default `5m`. */
  readonly timeout?: WrittenDuration | null | undefined;
}

const MAX_TOKENS = 10_000_000;
const MAX_STEPS = 100;

const text = () => z.string('must be text').check(z.minLength(1, 'must not be empty'));

export const thinkConfig = once((): StandardSchema<unknown, ThinkConfig> => {
  const optional = z.nullish(text());
  const count = (max: number) => {
    const message = `must be a whole number from 1 to ${max}`;
    return z.nullish(z.int(message).check(z.gte(1, message), z.lte(max, message)));
  };
  return z.strictObject(
    {
      provider: optional,
      model: text(),
      prompt: optional,
      system: optional,
      temperature: z.nullish(z.number('must be a number').check(z.gte(0, 'must be at least 0'))),
      maxTokens: count(MAX_TOKENS),
      schema: z.nullish(z.record(z.string(), z.custom<Json>(), 'must be a JSON Schema')),
      tools: toolsSchema(),
      maxSteps: count(MAX_STEPS),
      stream: z.nullish(z.boolean('must be true or false')),
      timeout: z.nullish(durationSchema()),
    },
    {
      error: (issue) =>
        issue.code === 'unrecognized_keys' ? `has keys that do not belong there: ${issue.keys.join(', ')}` : undefined,
    },
  );
});

export type Providers = ReadonlyMap<string, ModelProvider>;

/** The name of the provider that a config means; undefined if it names none and there are several, or none. */
export function providerName({ provider }: JsonObject | ThinkConfig, providers: Providers): string | undefined {
  if (typeof provider === 'string') return provider;
  return providers.size === 1 ? [...providers.keys()][0] : undefined;
}

/** Problems of a config as written that the schema can't find. */
export function checkThinkConfig(
  config: JsonObject,
  providers: Providers,
  servers: readonly string[],
  fromComponents?: ReadonlySet<string>,
): ConfigIssue[] {
  const { schema } = config;
  // The metadata of a stored prompt may name the provider.
  const mayNameProvider = fromComponents?.has('prompt') === true && providers.size > 0;
  const issues = mayNameProvider && config.provider === undefined ? [] : providerIssues(config, providers);
  if (isMap(schema) && !JSON.stringify(schema).includes('${')) issues.push(...schemaIssues(schema, ['schema']));
  issues.push(...checkTools(config, servers));
  return issues;
}

function providerIssues(config: JsonObject, providers: Providers): ConfigIssue[] {
  const names = [...providers.keys()];
  const known = names.length === 0 ? 'no provider is configured' : `configured: ${names.map(quoted).join(', ')}`;
  const { provider } = config;
  if (provider === undefined || provider === null) {
    if (names.length === 1) return [];
    if (names.length === 0) {
      const message = 'needs a model provider: set the option `models` of createOrchestrator';
      return [{ path: [], message, notConfigured: true }];
    }
    return [{ path: [], message: `needs a \`provider\`: several are configured; write ${oneOf(names)}` }];
  }
  if (typeof provider !== 'string' || providers.has(provider)) return [];
  if (provider.includes('${')) {
    const message = 'must be a plain name: the provider is chosen when the definition is loaded';
    return [{ path: ['provider'], message }];
  }
  const suggestion = suggestName(provider, names);
  const message = `there is no model provider ${quoted(provider)} (${known}); set the option ${quoted(`models.${provider}`)} of createOrchestrator`;
  return [{ path: ['provider'], message, notConfigured: true, ...(suggestion !== undefined && { suggestion }) }];
}

/** @returns why a prompt can't be used; undefined when it can */
export function promptProblem(prompt: string): string | undefined {
  if (!/^\s*prompt:\/\//.test(prompt)) return undefined;
  return 'refers to a component by the value of an expression; write the reference itself, such as `prompt://greet@${env.STAGE}`';
}
