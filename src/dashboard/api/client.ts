/** The client of the HTTP API, which is served below the page's own address. */

import { type CallGiven, callAddress } from '../../engine/base/call-address.ts';
import { readPages } from '../../engine/base/read-pages.ts';
import type { Asked, CallKey, ResultOf } from '../../http-handlers/api/client-types.ts';

/** Why a call was refused, or did not arrive. */
export class ApiProblem extends Error {
  /** 0 if there was no answer. */
  readonly status: number;
  readonly code: string;
  /** The fields that the code has besides its message. */
  readonly details: Readonly<Record<string, unknown>>;
  readonly requestId: string | undefined;

  constructor(status: number, error: Readonly<Record<string, unknown>>, requestId?: string) {
    const { code, message, ...details } = error;
    super(String(message));
    this.status = status;
    this.code = String(code);
    this.details = details;
    this.requestId = requestId;
  }
}

export type Query = Readonly<Record<string, string | number | undefined>>;

export interface Client {
  /** @param key - such as `GET /executions/:id` @throws ApiProblem */
  call<K extends CallKey>(key: K, asked: Asked<K>, signal?: AbortSignal): Promise<ResultOf<K>>;
  /** A whole list, page by page. @param list - its key in the answer */
  all<K extends CallKey, L extends keyof ResultOf<K>>(
    key: K,
    list: L,
    asked: Asked<K>,
    signal?: AbortSignal,
  ): Promise<ResultOf<K>[L]>;
  /** The events of an execution. @returns undefined when there are no more events */
  stream(id: string, after: string | undefined, signal: AbortSignal): Promise<ReadableStream<Uint8Array> | undefined>;
  /** How long to wait between two reads at least, in ms, so that the requests that are left last until there are new ones. */
  pace(): number;
}

/** @param refused - called when the server does not know the caller, or no longer */
export function createClient(token: string | undefined, refused: (problem: ApiProblem) => void): Client {
  let paceMs = 0;
  const call = async (key: string, given: CallGiven, init: RequestInit): Promise<Response> => {
    const { method, path } = callAddress(key, given);
    const headers = new Headers(init.headers);
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
    // No page of another site can send this header.
    headers.set('x-requested-with', 'dashboard');
    const response = await answerOrProblem(fetch(`api/v1${path}`, { ...init, method, headers, cache: 'no-store' }));
    paceMs = paceOf(response.headers);
    if (response.ok) return response;
    const problem = await problemOf(response);
    if (problem.status === 401) refused(problem);
    throw problem;
  };
  const answer = async (key: string, asked: CallGiven & { readonly body?: unknown }, signal?: AbortSignal) => {
    const { body } = asked;
    const json: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    const init = { headers: json, signal: signal ?? null, ...(body !== undefined && { body: JSON.stringify(body) }) };
    return (await call(key, asked, init)).json();
  };
  return {
    call: answer,
    async all(key, list, asked, signal) {
      const read = (page: object) => answer(key, { ...asked, query: { ...asked.query, ...page } }, signal);
      return (await readPages(list as string, read)).items as never;
    },
    async stream(id, after, signal) {
      const headers = { accept: 'text/event-stream', ...(after !== undefined && { 'last-event-id': after }) };
      const response = await call('GET /executions/:id/events', { id }, { headers, signal });
      return response.status === 204 ? undefined : (response.body ?? undefined);
    },
    pace: () => paceMs,
  };
}

async function answerOrProblem(response: Promise<Response>): Promise<Response> {
  try {
    return await response;
  } catch (thrown) {
    if (thrown instanceof DOMException && thrown.name === 'AbortError') throw thrown;
    throw new ApiProblem(0, { code: 'NO_ANSWER', message: 'The server does not answer. Check the connection.' });
  }
}

async function problemOf(response: Response): Promise<ApiProblem> {
  const requestId = response.headers.get('x-request-id') ?? undefined;
  const text = await response.text();
  try {
    const { error } = JSON.parse(text);
    if (typeof error?.code === 'string') return new ApiProblem(response.status, error, requestId);
  } catch {
    // Not an answer of the API.
  }
  const message = `The server answered with status ${response.status}, and not as the API does.`;
  return new ApiProblem(response.status, { code: 'UNKNOWN_ANSWER', message }, requestId);
}

function paceOf(headers: Headers): number {
  const [left, reset] = ['x-ratelimit-remaining', 'x-ratelimit-reset'].map((name) => headers.get(name));
  if (!left || !reset) return 0;
  const untilReset = Number(reset) * 1000 - Date.now();
  return Number.isFinite(untilReset) ? Math.max(0, untilReset / Math.max(1, Number(left))) : 0;
}
