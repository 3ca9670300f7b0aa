/** The option `models`: its checks, its providers and its secrets. */

import { chatCompletions } from '../../adapters/models/chat-completions.ts';
import type { ModelServerOptions } from '../../adapters/models/model-server-options.ts';
import {
  checkedLater,
  isRecord,
  isText,
  type OptionChecks,
  oneOf,
  optional,
  readOptions,
  requiredOption,
} from '../../engine/base/read-options.ts';
import type { HttpClient } from '../../engine/host/http.port.ts';
import { headerProblem } from '../../engine/host/http-header.ts';
import type { ModelProvider } from '../../engine/operation/model.port.ts';

type Models = Readonly<Record<string, ModelProvider | ModelServerOptions>>;

const CHECKS: OptionChecks<ModelServerOptions> = {
  url: requiredOption<string>(
    "the http or https address of a model server, such as 'https://api.openai.com/v1', without a user name and a fragment",
    isAddress,
  ),
  apiKey: optional('text that is not empty; leave it out for a server without a key', isText),
  headers: optional('an object', isRecord),
  prices: checkedLater,
  structuredOutput: oneOf('json_schema', 'json_object', 'prompt'),
  maxTokensField: oneOf('max_tokens', 'max_completion_tokens'),
  body: optional('an object', isRecord),
};

/** @throws TypeError */
export function checkModel(name: string, given: ModelProvider | ModelServerOptions): void {
  const what = `\`models.${name}\``;
  if (typeof given !== 'object' || given === null || (!isProvider(given) && typeof given.url !== 'string'))
    throw misuse(
      `${what} must be { url, apiKey? } of a model server, a ModelProvider with generate, or aiModels(provider)`,
    );
  checkPrices(given.prices, what);
  if (isProvider(given)) return;
  const { url, headers } = readOptions(`createOrchestrator: ${what}`, given, CHECKS);
  if (/\/chat\/completions\/?$/.test(new URL(url).pathname))
    throw misuse(`${what}: \`url\` must end before \`/chat/completions\`, which is added to it`);
  for (const [header, value] of Object.entries(headers ?? {})) {
    const problem = typeof value === 'string' ? headerProblem(header, value) : 'must be text';
    if (problem !== undefined) throw misuse(`${what}: header \`${header}\`: ${problem}`);
  }
}

function misuse(what: string): TypeError {
  return new TypeError(`createOrchestrator: ${what}`);
}

function isProvider(given: ModelProvider | ModelServerOptions): given is ModelProvider {
  return typeof (given as Partial<ModelProvider>).generate === 'function';
}

function isAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, hash } = new URL(text);
  return /^https?:$/.test(protocol) && username === '' && password === '' && hash === '';
}

function checkPrices(prices: unknown, what: string): void {
  const isPrice = (price: unknown) => typeof price === 'number' && Number.isFinite(price) && price >= 0;
  const isEntry = (entry: { readonly input?: unknown; readonly output?: unknown } | null) =>
    isPrice(entry?.input) && isPrice(entry?.output);
  if (prices === undefined || (isRecord(prices) && Object.values(prices as object).every(isEntry))) return;
  throw misuse(`${what}: \`prices\` must be { '<model>': { input, output } }: prices of 1,000,000 tokens`);
}

/** The providers by name: those of the host, and one for each model server. */
export function createProviders(
  models: Models,
  ports: { readonly http: HttpClient; readonly now: () => number },
): Readonly<Record<string, ModelProvider>> {
  const entries = Object.entries(models).map(([name, given]) => {
    return [name, isProvider(given) ? given : chatCompletions(given, ports)] as const;
  });
  return Object.fromEntries(entries);
}

/** What must never be shown of the model servers. */
export function modelSecrets(models: Models = {}): readonly string[] {
  return Object.values(models).flatMap((given) => {
    if (isProvider(given)) return [];
    const { apiKey, headers = {} } = given;
    return [...(apiKey === undefined ? [] : [apiKey]), ...Object.values(headers)];
  });
}
