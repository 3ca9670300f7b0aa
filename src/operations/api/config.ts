/** The config of the `api` operation. */

import * as z from 'zod/mini';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { once } from '../../engine/base/once.ts';
import type { WrittenDuration } from '../../engine/base/time/duration.ts';
import { durationSchema } from '../../engine/base/time/duration-schema.ts';
import type { StandardSchema } from '../../engine/operation/standard-schema.port.ts';

type Scalar = string | number | boolean | null;
type Parameters = Readonly<Record<string, Scalar | readonly Scalar[]>>;
type ExpectedStatus = number | string;

/** Null means absent in every field, so that an expression can leave an option out. */
export interface ApiConfig {
  readonly url: string;
  /** In upper or lower case. Default GET. */
  readonly method?: string | null | undefined;
  readonly params?: Parameters | null | undefined;
  readonly query?: Parameters | null | undefined;
  readonly headers?: Readonly<Record<string, string | number | null>> | null | undefined;
  /** At most one of `body`, `form`, `multipart` and `binary`. */
  readonly body?: Json | undefined;
  readonly form?: Parameters | null | undefined;
  readonly multipart?: Multipart | null | undefined;
  readonly binary?: FileContent | null | undefined;
  /** The longest time of the whole exchange. Default `30s`. */
  readonly timeout?: WrittenDuration | null | undefined;
  readonly auth?: ApiAuth | null | undefined;
  /** Statuses (`404`) or classes (`2xx`) that count as success. Default `2xx`. */
  readonly expect?: ExpectedStatus | readonly ExpectedStatus[] | null | undefined;
  readonly paginate?: Paginate | null | undefined;
  /** The JSON Schema of the `body` of the output. A body that does not fit fails the agent; a missing property gets its `default`. */
  readonly response?: JsonObject | null | undefined;
}

/** The bytes of a file, as the output of an `api` or `storage` agent has them. */
export interface FileContent {
  readonly content: string;
  readonly contentType?: string | null | undefined;
  /** Of `content`. Default `utf8`: the content is text. */
  readonly encoding?: 'base64' | 'utf8' | null | undefined;
  readonly filename?: string | null | undefined;
  /** Not read. The output of `storage` has it. */
  readonly size?: number | undefined;
}

type Part = Scalar | FileContent;
export type Multipart = Readonly<Record<string, Part | readonly Part[]>>;

interface Pages {
  /** The path of the list in the body, such as `data.items`. Default: the body is the list. */
  readonly items?: string | null | undefined;
  /** Default 10, at most 100. */
  readonly maxPages?: number | null | undefined;
}

/** How the next page is found: by the `Link` header, by a cursor in the body, or by a number that grows. */
export type Paginate = Pages &
  (
    | { readonly by: 'link' }
    | { readonly by: 'cursor'; readonly cursor: string; readonly param: string }
    | { readonly by: 'page' | 'offset'; readonly param: string }
  );

export type ApiAuth =
  | { readonly type: 'bearer'; readonly token: string }
  | { readonly type: 'basic'; readonly username: string; readonly password: string };

/** The largest `maxPages`. */
const MAX_PAGES = 100;
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

const FILE_KEYS = ['content', 'contentType', 'encoding', 'filename', 'size'];
const FILE = 'a file: { content, contentType, encoding: base64 or utf8, filename }';

function isFile(value: unknown): value is FileContent {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { content, contentType, encoding, filename } = value as Readonly<Record<string, unknown>>;
  const isText = (text: unknown) => text === undefined || text === null || typeof text === 'string';
  return (
    typeof content === 'string' &&
    isText(contentType) &&
    isText(filename) &&
    [undefined, null, 'base64', 'utf8'].includes(encoding as string) &&
    Object.keys(value).every((key) => FILE_KEYS.includes(key))
  );
}

// Checked by code: an expression may be at any place inside, and a map of alternatives would have a message for each.
function checkedByCode<T>(isValid: (value: unknown) => boolean, message: string) {
  return z.unknown().check(({ value, issues }) => {
    if (!isValid(value)) issues.push({ code: 'custom', message, input: value });
  }) as z.ZodMiniType<T>;
}

function partSchema() {
  const isPart = (value: unknown) => value === null || typeof value !== 'object' || isFile(value);
  const isParts = (value: unknown) => (Array.isArray(value) ? value.every(isPart) : isPart(value));
  return checkedByCode<Part | readonly Part[]>(
    isParts,
    `expected text, a number, a boolean, null, ${FILE}, or an array of these`,
  );
}

function paginateSchema() {
  const name = (message: string) => text().check(z.minLength(1, message));
  const path = () => name("expected a path such as 'data.items'");
  const param = () => name('expected the name of a query parameter');
  const message = `must be a whole number from 1 to ${MAX_PAGES}`;
  const maxPages = z.number(message).check(z.int(message), z.gte(1, message), z.lte(MAX_PAGES, message));
  const pages = { items: z.nullish(path()), maxPages: z.nullish(maxPages) };
  return z.discriminatedUnion(
    'by',
    [
      strict({ by: z.literal('link'), ...pages }),
      strict({ by: z.literal('cursor'), cursor: path(), param: param(), ...pages }),
      strict({ by: z.literal('page'), param: param(), ...pages }),
      strict({ by: z.literal('offset'), param: param(), ...pages }),
    ],
    "expected { by: 'link' }, { by: 'cursor', cursor, param }, { by: 'page', param } or { by: 'offset', param }",
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
      form: parameters(),
      multipart: z.nullish(mapOf(partSchema())),
      binary: z.optional(
        checkedByCode<ApiConfig['binary']>((value) => value == null || isFile(value), `expected ${FILE}`),
      ),
      timeout: z.nullish(durationSchema()),
      auth: z.nullish(authSchema()),
      expect: z.optional(expectedSchema()),
      paginate: z.nullish(paginateSchema()),
      response: z.nullish(z.record(z.string(), z.custom<Json>(), 'must be a JSON Schema')),
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
