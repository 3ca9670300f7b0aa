/** The option `models`: its checks, its providers and its secrets. */

import { chatCompletions } from '../adapters/models/chat-completions.ts';
import type { ModelServerOptions } from '../adapters/models/model-server-options.ts';
import { headerProblem } from '../engine/model/http-header.ts';
import type { HttpClient } from '../engine/ports/http.ts';
import type { ModelProvider } from '../engine/ports/model.ts';
import { refuseUnknownKeys } from '../engine/base/refuse-unknown-keys.ts';

type Models = Readonly<Record<string, ModelProvider | ModelServerOptions>>;

const SERVER_KEYS: Readonly<Record<keyof ModelServerOptions, true>> = {
  url: true,
  apiKey: true,
  headers: true,
  prices: true,
  structuredOutput: true,
  maxTokensField: true,
  body: true,
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
  refuseUnknownKeys(given, Object.keys(SERVER_KEYS), `createOrchestrator: ${what}`);
  const { url, apiKey, headers, structuredOutput, maxTokensField, body } = given;
  if (!isAddress(url)) {
    const rule = "such as 'https://api.openai.com/v1', without a user name and a fragment";
    throw misuse(`${what}: \`url\` must be the http or https address of a model server, ${rule}`);
  }
  if (/\/chat\/completions\/?$/.test(new URL(url).pathname))
    throw misuse(`${what}: \`url\` must end before \`/chat/completions\`, which is added to it`);
  if (apiKey !== undefined && (typeof apiKey !== 'string' || apiKey === ''))
    throw misuse(`${what}: \`apiKey\` must be text that is not empty; leave it out for a server without a key`);
  if (headers !== undefined && !isMap(headers)) throw misuse(`${what}: \`headers\` must be an object`);
  for (const [header, value] of Object.entries(headers ?? {})) {
    const problem = typeof value === 'string' ? headerProblem(header, value) : 'must be text';
    if (problem !== undefined) throw misuse(`${what}: header \`${header}\`: ${problem}`);
  }
  const oneOf = (key: string, value: unknown, values: readonly string[]) => {
    if (value !== undefined && !values.includes(value as string))
      throw misuse(`${what}: \`${key}\` must be ${values.map((one) => `'${one}'`).join(' or ')}`);
  };
  oneOf('structuredOutput', structuredOutput, ['json_schema', 'json_object', 'prompt']);
  oneOf('maxTokensField', maxTokensField, ['max_tokens', 'max_completion_tokens']);
  if (body !== undefined && !isMap(body)) throw misuse(`${what}: \`body\` must be an object`);
}

function misuse(what: string): TypeError {
  return new TypeError(`createOrchestrator: ${what}`);
}

function isProvider(given: ModelProvider | ModelServerOptions): given is ModelProvider {
  return typeof (given as Partial<ModelProvider>).generate === 'function';
}

function isMap(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
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
  if (prices === undefined || (isMap(prices) && Object.values(prices as object).every(isEntry))) return;
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
