/** The client of the HTTP API, which is served below the page's own address. */

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
  get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T>;
  /** The whole list below a key, page by page. */
  all<T>(path: string, key: string, signal?: AbortSignal): Promise<readonly T[]>;
  /** @throws ApiProblem */
  send<T>(method: 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<T>;
  /** The body of an event stream. @returns undefined when there are no more events */
  stream(path: string, after: string | undefined, signal: AbortSignal): Promise<ReadableStream<Uint8Array> | undefined>;
  /** How long to wait between two reads at least, in ms, so that the requests that are left last until there are new ones. */
  pace(): number;
}

/** A path with its values encoded. */
export function at(parts: TemplateStringsArray, ...values: readonly string[]): string {
  return parts.reduce((path, part, i) => `${path}${encodeURIComponent(values[i - 1] ?? '')}${part}`);
}

/** @param refused - called when the server does not know the caller, or no longer */
export function createClient(token: string | undefined, refused: (problem: ApiProblem) => void): Client {
  let paceMs = 0;
  const call = async (path: string, query: Query, init: RequestInit): Promise<Response> => {
    const given = Object.entries(query).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]]));
    const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
    const headers = new Headers(init.headers);
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
    // No page of another site can send this header.
    headers.set('x-requested-with', 'dashboard');
    const response = await answered(fetch(`api/v1${path}${search}`, { ...init, headers, cache: 'no-store' }));
    paceMs = paceOf(response.headers);
    if (response.ok) return response;
    const problem = await problemOf(response);
    if (problem.status === 401) refused(problem);
    throw problem;
  };
  const get = async <T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> =>
    (await call(path, query, { signal: signal ?? null })).json();
  return {
    get,
    async all<T>(path: string, key: string, signal?: AbortSignal) {
      const found: T[] = [];
      let cursor: string | undefined;
      do {
        const page: Readonly<Record<string, unknown>> = await get(path, { limit: 250, cursor }, signal);
        found.push(...(page[key] as readonly T[]));
        cursor = page.nextCursor as string | undefined;
      } while (cursor !== undefined);
      return found;
    },
    async send(method, path, body) {
      const json: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
      const init = { method, headers: json, ...(body !== undefined && { body: JSON.stringify(body) }) };
      return (await call(path, {}, init)).json();
    },
    async stream(path, after, signal) {
      const headers = { accept: 'text/event-stream', ...(after !== undefined && { 'last-event-id': after }) };
      const response = await call(path, {}, { headers, signal });
      return response.status === 204 ? undefined : (response.body ?? undefined);
    },
    pace: () => paceMs,
  };
}

async function answered(response: Promise<Response>): Promise<Response> {
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
