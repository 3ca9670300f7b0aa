/** The types of the API for its clients: a call is named by its key, and an unknown key or a missing parameter does not compile. */

import type { Call, ParamsOf, QueryOf } from './define-call.ts';
import type { ApiCalls } from './routes.ts';

/** Such as `POST /receivers/:id/resume`. */
export type CallKey = keyof ApiCalls;

/** What a client passes: the parameters of the path, the query and the body. */
export type Asked<Key extends CallKey> = Readonly<Record<ParamsOf<Key>, string>> & {
  readonly query?: ApiCalls[Key] extends Call<Key, infer Q, infer _F, infer _R>
    ? { readonly [K in keyof QueryOf<Q>]: QueryOf<Q>[K] | string | number | Date | undefined }
    : never;
  readonly body?: unknown;
};

/** What a client gets. */
export type ResultOf<Key extends CallKey> =
  ApiCalls[Key] extends Call<Key, infer _Q, infer _F, infer R> ? (R extends { readonly json: infer T } ? T : R) : never;
