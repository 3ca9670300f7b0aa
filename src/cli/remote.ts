/** A running server as a service: its API, called over HTTP. */

import { messageOf } from '../engine/errors.ts';
import { CliError, wrongUsage } from './cli-error.ts';
import { readEventStream } from './read-event-stream.ts';
import type { Service } from './service.ts';
import { oneLine } from './text.ts';

const ANSWER_MS = 30_000;
/** How often a stream that broke off is taken up again when nothing comes, and how long after. */
const RECONNECTS = 5;
const RECONNECT_MS = 1000;

type Event = Awaited<ReturnType<ReturnType<Service['executions']['events']>['next']>>['value'];

interface Exchange {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/**
 * @param url - of the server, with the path that stands in front of `/api/v1` if there is one
 * @throws CliError for what is no URL of a server, and without a token
 */
export function connect(url: string, token: string | undefined): Service {
  const base = readUrl(url);
  const { host } = new URL(base);
  if (!token) throw wrongUsage('a running server wants a token: give it as --token, or in the variable ENSEMBLE_TOKEN');
  if (!/^[\x21-\x7e]+$/.test(token)) throw wrongUsage('the token holds characters that no token has; copy it again');

  const send = async (path: string, { method = 'GET', body, headers, signal }: Exchange = {}): Promise<Response> => {
    let response: Response;
    try {
      response = await fetch(`${base}${path}`, {
        method,
        // A token goes to the server that was named, and nowhere else.
        redirect: 'manual',
        headers: {
          authorization: `Bearer ${token}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: signal ?? AbortSignal.timeout(ANSWER_MS),
      });
    } catch (error) {
      throw new CliError(explainFailure(base, error));
    }
    if (response.ok) return response;
    throw new CliError(await explainAnswer(base, response));
  };
  const stranger = () => new CliError(`${host} answered, but not as an ensemble server does; check the address`);
  /** @param holds - a key that the answer has */
  const ask = async (path: string, holds: string, exchange?: Exchange): Promise<unknown> => {
    const response = await send(path, exchange);
    const answer: unknown = await response.json().catch(() => undefined);
    if (typeof answer !== 'object' || answer === null || !Object.hasOwn(answer, holds)) throw stranger();
    return answer;
  };

  async function* events(id: string, options: { after?: string; signal?: AbortSignal } = {}): AsyncGenerator<Event> {
    const { signal } = options;
    let { after } = options;
    for (let failures = 0; !signal?.aborted; ) {
      try {
        const headers: Record<string, string> = after === undefined ? {} : { 'last-event-id': after };
        const { body, headers: sent } = await send(`/executions/${encodeURIComponent(id)}/events`, {
          headers,
          signal: signal ?? new AbortController().signal,
        });
        if (!sent.get('content-type')?.startsWith('text/event-stream')) throw stranger();
        for await (const { id: eventId, data } of readEventStream(body as ReadableStream<Uint8Array>)) {
          failures = 0;
          after = eventId;
          const event = JSON.parse(data) as { readonly event: string };
          yield { id: eventId, event } as Event;
          if (isEnd(event.event)) return;
        }
      } catch (error) {
        if (signal?.aborted) return;
        // Before the first event it is an address, a token or an id that is wrong: waiting mends none of them.
        if (after === undefined || failures >= RECONNECTS) throw error;
      }
      failures += 1;
      if (failures > RECONNECTS) throw new CliError(`${host} ended the stream of ${id} before the execution ended`);
      await pause(RECONNECT_MS, signal);
    }
  }

  return {
    tokens: {
      create: (token) => ask('/tokens', 'token', { method: 'POST', body: token }) as never,
      list: async () => ((await ask('/tokens', 'tokens')) as { readonly tokens: never }).tokens,
      revoke: (id) => ask(`/tokens/${encodeURIComponent(id)}`, 'revoked', { method: 'DELETE' }) as never,
    },
    executions: {
      get: (id) => ask(`/executions/${encodeURIComponent(id)}`, 'status') as never,
      list: (filter = {}) => {
        const given = Object.entries(filter).filter(([, value]) => value !== undefined);
        const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
        return ask(`/executions?${query}`, 'executions') as never;
      },
      agents: (id, page = {}) => {
        const query = new URLSearchParams(Object.entries(page).map(([name, value]) => [name, String(value)]));
        return ask(`/executions/${encodeURIComponent(id)}/agents?${query}`, 'agents') as never;
      },
      definition: ({ ensemble }) => ask(`/ensembles/${encodeURIComponent(ensemble)}`, 'definition') as never,
      events,
      cancel: (id) => ask(`/executions/${encodeURIComponent(id)}/cancel`, 'status', { method: 'POST' }) as never,
      signal: (id, name, payload = null, { idempotencyKey } = {}) =>
        ask(`/executions/${encodeURIComponent(id)}/signals/${encodeURIComponent(name)}`, 'status', {
          method: 'POST',
          body: payload,
          ...(idempotencyKey !== undefined && { headers: { 'idempotency-key': idempotencyKey } }),
        }) as never,
      retry: (id) => ask(`/executions/${encodeURIComponent(id)}/retry`, 'status', { method: 'POST' }) as never,
    },
    close: async () => {},
  };
}

function isEnd(event: string): boolean {
  return event.startsWith('execution.') && event !== 'execution.started';
}

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw wrongUsage(
      `--url must be the address of a server, such as http://127.0.0.1:3000, not ${JSON.stringify(text)}`,
    );
  }
  if (url.username || url.password) throw wrongUsage('--url takes no user and password; give a token as --token');
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}/api/v1`;
}

function explainFailure(base: string, error: unknown): string {
  const { host } = new URL(base);
  if ((error as { readonly name?: unknown }).name === 'TimeoutError') return `${host} did not answer within 30 s`;
  const cause = (error as { readonly cause?: { readonly code?: unknown } }).cause;
  switch (cause?.code) {
    case 'ECONNREFUSED':
      return `nothing listens at ${host}; is the server running, and is the port right?`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `there is no host ${new URL(base).hostname}; check --url`;
    case 'ECONNRESET':
    case 'UND_ERR_SOCKET':
      return `${host} broke the connection off before it answered`;
    default:
      return `${host} can't be reached: ${oneLine(messageOf(cause ?? error))}`;
  }
}

async function explainAnswer(base: string, response: Response): Promise<string> {
  const { host } = new URL(base);
  const body = (await response.json().catch(() => undefined)) as
    | { readonly error?: Record<string, unknown> }
    | undefined;
  const { code, message } = body?.error ?? {};
  if (typeof code === 'string' && typeof message === 'string') return oneLine(`${code}: ${message}`);
  return `${host} answered ${response.status}, and not as an ensemble server does; check the address`;
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
