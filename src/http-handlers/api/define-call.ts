/** A call of the API as one record. Its route, its entry in the OpenAPI document and the types of the clients are read from it. */

import * as z from 'zod/mini';
import type { Principal } from '../../engine/access/token.ts';
import { once } from '../../engine/base/once.ts';
import { readShape } from '../../engine/base/read-shape.ts';
import type { Orchestrator } from '../../orchestrator/create-orchestrator.ts';
import type { HttpCall, RouteAccess } from '../call.ts';
import type { SHAPES } from '../openapi/shapes.ts';
import { etagOf, readIfMatch } from '../reply/etag.ts';
import { API_ROOT, locationOf } from '../reply/location.ts';
import type { Reply } from '../reply/reply.ts';
import { withDefinition } from '../request/read-definition.ts';
import { asUnknown, readThing, type Thing } from '../request/read-id.ts';
import { PATCH_TYPES, readJson } from '../request/read-json.ts';
import { type QueryReader, readQuery } from '../request/read-query.ts';
import type { Route } from '../router.ts';

/** The names of the parameters in a path. */
export type ParamsOf<Key extends string> = Key extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamsOf<`/${Rest}`>
  : Key extends `${string}:${infer Name}`
    ? Name
    : never;

export type Queries = Readonly<Record<string, QueryReader<unknown>>>;
export type QueryOf<Q extends Queries> = { readonly [K in keyof Q]?: Exclude<ReturnType<Q[K]['read']>, undefined> };

/** The form that checks the body, any JSON, an object, a JSON Merge Patch, or a definition; `own`: `run` reads it. */
export type BodyForm = (() => z.ZodMiniType) | 'json' | 'object' | 'patch' | 'definition' | 'own' | undefined;
export type BodyOf<F extends BodyForm> = F extends () => z.ZodMiniType
  ? z.output<ReturnType<F>>
  : F extends 'definition'
    ? string | object
    : unknown;

/** What `run` gets. */
export type Given<Key extends string, Q extends Queries, F extends BodyForm> = Readonly<
  Record<ParamsOf<Key>, string>
> & {
  readonly query: QueryOf<Q>;
  readonly body: BodyOf<F>;
  /** `{ ifMatch }`, for the options of a change. */
  readonly condition: { readonly ifMatch?: string };
  readonly orchestrator: Orchestrator;
  readonly principal: Principal | undefined;
  readonly http: HttpCall;
};

/** The status of a success with the name of its shape. `204` and streams have none. */
export type Replies = Readonly<Record<number, string | undefined>>;

export interface Spec<Key extends string, Q extends Queries, F extends BodyForm, R, S extends Replies = Replies>
  extends RouteAccess {
  readonly id: string;
  readonly summary: string;
  /** What `:id` or `:name` of the path names. Such a name is checked, and `run` may answer NOT_FOUND for it. */
  readonly of?: Thing;
  /** `run` says itself what is not found. */
  readonly findsItself?: true;
  readonly query?: Q;
  readonly body?: F;
  /** The body has this form, but `run` checks it. */
  readonly bodyShown?: () => z.ZodMiniType;
  /** Fields of the body that have a shape of the document. */
  readonly bodyShapes?: Readonly<Record<string, keyof typeof SHAPES>>;
  readonly readsIfMatch?: true;
  readonly readsKey?: true;
  /** Headers of the request, besides `If-Match` and `Idempotency-Key`. */
  readonly sends?: readonly string[];
  /** The shapes are those of `openapi/shapes.ts`. A test compares them with what `run` gives. */
  readonly replies: S;
  etag?(result: R): string;
  /** The path of what was created or started. */
  location?(result: R): string;
  /** Headers that `answer` sets. */
  readonly headers?: readonly ('ETag' | 'Location')[];
  run(given: Given<Key, Q, F>): R | Promise<R>;
}

export interface Call<
  Key extends string = string,
  Q extends Queries = Queries,
  F extends BodyForm = BodyForm,
  R = unknown,
  S extends Replies = Replies,
> {
  /** Such as `GET /executions/:id`; below `/api/v1`, except for a path that begins with `//`. */
  readonly key: Key;
  readonly spec: Spec<Key, Q, F, R, S>;
}

export function call<
  const Key extends string,
  R,
  Q extends Queries = Record<never, never>,
  const F extends BodyForm = undefined,
  const S extends Replies = Replies,
>(key: Key, spec: Spec<Key, Q, F, R, S>): Call<Key, Q, F, R, S> {
  return { key, spec };
}

/** A reply that `run` has made itself: a refusal, a stream, or one with headers of its own. */
export class Answer<T = unknown> {
  readonly reply: Reply;
  declare readonly json: T;
  constructor(reply: Reply) {
    this.reply = reply;
  }
}

export interface CallRoute extends Route {
  readonly spec: Spec<string, Queries, BodyForm, unknown>;
}

export function routeOf({ key, spec }: Call): CallRoute {
  const [method = '', path = ''] = key.split(' ');
  const { scope, takesTicket, takesApiKey, maxBytes, query, readsIfMatch, readsKey } = spec;
  return {
    ...{ method: method as Route['method'], path: path.startsWith('//') ? path.slice(1) : `${API_ROOT}${path}` },
    ...{ scope, takesTicket, takesApiKey, maxBytes, readsIfMatch, readsKey, spec },
    ...(query && { readsQuery: true }),
    run: runOf(spec, bodyReaderOf(spec.body, method)),
  };
}

type ReadBody = ((http: HttpCall) => Promise<unknown>) | undefined;
const NONE = Object.freeze({});

/** What the record says is looked up once, not at each request. */
function runOf(spec: CallRoute['spec'], readBody: ReadBody): Route['run'] {
  const { of, query, body, readsIfMatch, findsItself, location, etag } = spec;
  const status = Number(Object.keys(spec.replies)[0]);
  return async (http) => {
    const { dependencies, params, principal, request } = http;
    const given: Given<string, Queries, BodyForm> & { body: unknown } = {
      query: query ? readQuery(request.query, query) : NONE,
      condition: readsIfMatch ? readIfMatch(request) : NONE,
      ...{ orchestrator: dependencies.orchestrator, principal, http, body: undefined },
    };
    let result: unknown;
    try {
      if (of !== undefined) readThing(params, of);
      Object.assign(given, params);
      if (readBody) given.body = await readBody(http);
      result = await (body === 'definition'
        ? withDefinition(http, async (read) => spec.run({ ...given, body: read }))
        : spec.run(given));
    } catch (thrown) {
      throw of === undefined || findsItself ? thrown : asUnknown(thrown, of);
    }
    if (result instanceof Answer) return result.reply;
    if (!location && !etag) return { status, json: result };
    const headers = { ...(location && locationOf(http, location(result))), ...(etag && etagOf(etag(result))) };
    return { status, json: result, headers };
  };
}

/** A change without a body takes none but `{}`. */
function bodyReaderOf(body: BodyForm, method: string): ReadBody {
  if (typeof body === 'function')
    return async (http) => readShape(body() as never, await readJson(http), 'the body is not valid');
  if (body === 'json' || body === 'object') return (http) => readJson(http, null);
  if (body === 'patch') return (http) => readJson(http, null, PATCH_TYPES);
  if (body === undefined && method !== 'GET') return refuseContent;
  return undefined;
}

const emptyBody = once(() => z.strictObject({}));

/** @throws INVALID_REQUEST for a body other than `{}` */
async function refuseContent(call: HttpCall): Promise<void> {
  readShape(emptyBody(), await readJson(call), 'the body is not valid');
}
