/** The config of the `api` operation: its schema, and what can be said at load about values that hold no expression. */

import * as z from 'zod';
import type { Json, JsonObject } from '../../engine/json.ts';
import { headerProblem } from '../../engine/model/http-header.ts';
import type { ConfigIssue } from '../../engine/ports/operation.ts';
import type { StandardSchema } from '../../engine/ports/standard-schema.ts';

type Scalar = string | number | boolean | null;
type Parameters = Readonly<Record<string, Scalar | readonly Scalar[]>>;
type ExpectedStatus = number | string;

/** Null stands for absent everywhere, so that an expression may leave an option out. */
export interface ApiConfig {
  readonly url: string;
  /** In any case; default GET. */
  readonly method?: string | null;
  readonly params?: Parameters | null;
  readonly query?: Parameters | null;
  readonly headers?: Readonly<Record<string, string | number | null>> | null;
  readonly body?: Json;
  /** Milliseconds for the whole exchange; default 30,000. */
  readonly timeout?: number | null;
  readonly auth?: ApiAuth | null;
  /** Statuses (`404`) or classes (`2xx`) that count as success instead of 2xx. */
  readonly expect?: ExpectedStatus | readonly ExpectedStatus[] | null;
}

export type ApiAuth =
  | { readonly type: 'bearer'; readonly token: string }
  | { readonly type: 'basic'; readonly username: string; readonly password: string };

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const parameters = z.record(
  z.string(),
  z.union([scalar, z.array(scalar)], { error: 'expected a string, number, boolean, null, or an array of these' }),
);
const auth = z.discriminatedUnion(
  'type',
  [
    z.strictObject({
      type: z.literal('bearer'),
      token: z.string().min(1, { error: 'expected a token, not empty text' }),
    }),
    z.strictObject({
      type: z.literal('basic'),
      username: z.string().refine((name) => !name.includes(':'), { error: 'expected a user name without a colon' }),
      password: z.string(),
    }),
  ],
  { error: "expected { type: 'bearer', token } or { type: 'basic', username, password }" },
);
const expected = z.custom<ApiConfig['expect']>().superRefine((value, context) => {
  if (value === undefined || value === null) return;
  const list = Array.isArray(value) ? value : [value];
  const message = "expected a status from 100 to 599, a class such as '2xx', or an array of these";
  if (list.length === 0) context.addIssue({ code: 'custom', message });
  list.forEach((item, index) => {
    if (isExpectable(item)) return;
    context.addIssue({ code: 'custom', message, path: Array.isArray(value) ? [index] : [] });
  });
});

export const apiConfig: StandardSchema<unknown, ApiConfig> = z.strictObject({
  url: z.string(),
  method: z
    .string()
    .refine((method) => METHODS.includes(method.toUpperCase()), { error: `expected one of ${METHODS.join(', ')}` })
    .nullish(),
  params: parameters.nullish(),
  query: parameters.nullish(),
  headers: z
    .record(z.string(), z.union([z.string(), z.number(), z.null()], { error: 'expected text or a number' }))
    .nullish(),
  // Evaluated config is JSON already.
  body: z.custom<Json>().optional(),
  timeout: z.number().int().positive({ error: 'expected a whole number of milliseconds above 0' }).nullish(),
  auth: auth.nullish(),
  expect: expected.optional(),
});

function isExpectable(item: unknown): boolean {
  if (typeof item === 'number') return Number.isInteger(item) && item >= 100 && item <= 599;
  return typeof item === 'string' && /^[1-5]xx$/i.test(item);
}

/** Whether a status is what the config calls success. */
export function isExpected(status: number, expect: ApiConfig['expect']): boolean {
  const list = expect === undefined || expect === null ? ['2xx'] : Array.isArray(expect) ? expect : [expect];
  return list.some((item) => (typeof item === 'number' ? item === status : item[0] === String(status)[0]));
}

/** Problems of a config as written that the schema can't see; a value with an expression in it is judged when it is evaluated. */
export function checkApiConfig(config: JsonObject): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  const given = (key: string) => config[key] !== undefined && config[key] !== null;
  if (given('params') && given('query')) {
    issues.push({ path: ['query'], message: "is given beside 'params', which means the same; keep one of them" });
  }
  const problem = typeof config.url === 'string' ? urlProblem(config.url) : undefined;
  if (problem !== undefined) issues.push({ path: ['url'], message: problem });
  const method = given('method') ? config.method : 'GET';
  if (given('body') && typeof method === 'string' && /^(?:GET|HEAD)$/i.test(method)) {
    const message = `can't be sent with ${method.toUpperCase()}; use 'query', or a method such as POST`;
    issues.push({ path: ['body'], message });
  }
  issues.push(...headerIssues(config));
  return issues;
}

function urlProblem(text: string): string | undefined {
  const literal = text.split('${', 1)[0] as string;
  const whole = literal.length === text.length;
  const scheme = /^\s*([A-Za-z][A-Za-z0-9+.-]*):/.exec(literal)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== 'http' && scheme !== 'https')
    return `has the scheme '${scheme}'; expected http or https`;
  if (!whole) return /^https?:\/\/[^/?#]*@/i.test(literal) ? USER_INFO : undefined;
  if (!URL.canParse(text)) return 'is not an absolute URL; write https://host/path';
  const url = new URL(text);
  return url.username !== '' || url.password !== '' ? USER_INFO : undefined;
}

const USER_INFO = "holds a user name or password; write them as 'auth: { type: basic, username, password }'";

function headerIssues(config: JsonObject): ConfigIssue[] {
  const headers = config.headers;
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) return [];
  const issues: ConfigIssue[] = [];
  const seen = new Set<string>();
  for (const [name, value] of Object.entries(headers as JsonObject)) {
    const lower = name.toLowerCase();
    const literal = typeof value === 'string' && !value.includes('${') ? value : '';
    let problem = headerProblem(name, literal);
    if (problem === undefined && seen.has(lower)) problem = `header ${name} is given twice`;
    if (problem === undefined && lower === 'authorization' && config.auth !== undefined && config.auth !== null) {
      problem = "header Authorization is given beside 'auth', which sets it; keep one of them";
    }
    if (problem !== undefined) issues.push({ path: ['headers', name], message: problem });
    seen.add(lower);
  }
  return issues;
}
