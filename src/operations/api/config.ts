/** The config of the `api` operation: its schema, and the checks at load of values without expressions. */

import * as z from 'zod/mini';
import type { Duration } from '../../engine/base/duration.ts';
import { durationSchema } from '../../engine/base/duration-schema.ts';
import type { Json, JsonObject } from '../../engine/base/json.ts';
import { once } from '../../engine/base/once.ts';
import { headerProblem } from '../../engine/model/http-header.ts';
import type { ConfigIssue } from '../../engine/ports/operation.ts';
import type { StandardSchema } from '../../engine/ports/standard-schema.ts';

type Scalar = string | number | boolean | null;
type Parameters = Readonly<Record<string, Scalar | readonly Scalar[]>>;
type ExpectedStatus = number | string;

/** Null means absent in every field, so that an expression can leave an option out. */
export interface ApiConfig {
  readonly url: string;
  /** In upper or lower case. Default GET. */
  readonly method?: string | null;
  readonly params?: Parameters | null;
  readonly query?: Parameters | null;
  readonly headers?: Readonly<Record<string, string | number | null>> | null;
  readonly body?: Json;
  /** The longest time of the whole exchange. Default `30s`. */
  readonly timeout?: Duration | null;
  readonly auth?: ApiAuth | null;
  /** Statuses (`404`) or classes (`2xx`) that count as success. Default `2xx`. */
  readonly expect?: ExpectedStatus | readonly ExpectedStatus[] | null;
}

export type ApiAuth =
  | { readonly type: 'bearer'; readonly token: string }
  | { readonly type: 'basic'; readonly username: string; readonly password: string };

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];

// An evaluated value is refused with the message of its schema.
const text = once(() => z.string('must be a string'));
const mapOf = <S extends z.ZodMiniType>(value: S) => z.record(z.string(), value, 'must be a map of keys');
const parameters = once(() => {
  const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
  const message = 'expected a string, number, boolean, null, or an array of these';
  return z.nullish(mapOf(z.union([scalar, z.array(scalar)], message)));
});
const strict = <S extends z.core.$ZodLooseShape>(shape: S) =>
  z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys' ? `has keys that do not belong there: ${issue.keys.join(', ')}` : undefined,
  });

function authSchema() {
  return z.discriminatedUnion(
    'type',
    [
      strict({ type: z.literal('bearer'), token: text().check(z.minLength(1, 'expected a token, not empty text')) }),
      strict({
        type: z.literal('basic'),
        username: text().check(z.refine((name) => !name.includes(':'), 'expected a user name without a colon')),
        password: text(),
      }),
    ],
    "expected { type: 'bearer', token } or { type: 'basic', username, password }",
  );
}

function expectedSchema() {
  return z.unknown().check(({ value, issues }) => {
    if (value === undefined || value === null) return;
    const list = Array.isArray(value) ? value : [value];
    const message = "expected a status from 100 to 599, a class such as '2xx', or an array of these";
    if (list.length === 0) issues.push({ code: 'custom', message, input: value });
    list.forEach((item, index) => {
      if (isExpectable(item)) return;
      issues.push({ code: 'custom', message, input: value, path: Array.isArray(value) ? [index] : [] });
    });
  }) as z.ZodMiniType<ApiConfig['expect']>;
}

function methodSchema() {
  const isMethod = (method: string) => METHODS.includes(method.toUpperCase());
  return text().check(z.refine(isMethod, `expected one of ${METHODS.join(', ')}`));
}

export const apiConfig = once(
  (): StandardSchema<unknown, ApiConfig> =>
    strict({
      url: text(),
      method: z.nullish(methodSchema()),
      params: parameters(),
      query: parameters(),
      headers: z.nullish(mapOf(z.union([z.string(), z.number(), z.null()], 'expected text or a number'))),
      // The evaluated config is JSON already.
      body: z.optional(z.custom<Json>()),
      timeout: z.nullish(durationSchema()),
      auth: z.nullish(authSchema()),
      expect: z.optional(expectedSchema()),
    }),
);

function isExpectable(item: unknown): boolean {
  if (typeof item === 'number') return Number.isInteger(item) && item >= 100 && item <= 599;
  return typeof item === 'string' && /^[1-5]xx$/i.test(item);
}

/** Whether a status counts as success. */
export function isExpected(status: number, expect: ApiConfig['expect']): boolean {
  const list = expect === undefined || expect === null ? ['2xx'] : Array.isArray(expect) ? expect : [expect];
  return list.some((item) => (typeof item === 'number' ? item === status : item[0] === String(status)[0]));
}

/** Problems of a config as written that the schema can't find. A value with an expression is checked after its evaluation. */
export function checkApiConfig(config: JsonObject): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  const given = (key: string) => config[key] !== undefined && config[key] !== null;
  if (given('params') && given('query')) {
    issues.push({ path: ['query'], message: "is set in addition to 'params', which means the same; keep one of them" });
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
      problem = "header Authorization is set in addition to 'auth', which sets it too; keep one of them";
    }
    if (problem !== undefined) issues.push({ path: ['headers', name], message: problem });
    seen.add(lower);
  }
  return issues;
}
