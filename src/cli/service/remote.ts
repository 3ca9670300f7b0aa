/** A running server as a service, over its HTTP API. */

import { readEventStream } from '../../engine/base/read-event-stream.ts';
import { messageOf } from '../../engine/base/errors.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';
import type { Service } from './service.ts';
import { pause } from '../terminal/pause.ts';
import { oneLine } from '../terminal/text.ts';

const RESPONSE_MS = 30_000;
/** How often a broken event stream is resumed without a new event, and the delay before each attempt. */
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
 * @param url - of the server, with the path before `/api/v1` if there is one
 * @throws CliError when the URL is not the address of a server, and without a token
 */
export function connect(url: string, token: string | undefined): Service {
  const base = readUrl(url);
  const { host } = new URL(base);
  if (!token)
    throw wrongUsage('a running server needs a token: pass it with --token, or in the variable ENSEMBLE_TOKEN');
  if (!/^[\x21-\x7e]+$/.test(token)) throw wrongUsage('the token has characters that no token contains; copy it again');

  const send = createSend(base, token);
  /** @param key - a key that the JSON body must have */
  const request = async (path: string, key: string, exchange?: Exchange): Promise<unknown> => {
    const response = await send(path, exchange);
    const body: unknown = await response.json().catch(() => undefined);
    if (typeof body !== 'object' || body === null || !Object.hasOwn(body, key)) throw notAnEnsembleServer(host);
    return body;
  };

  return {
    tokens: {
      create: (token) => request('/tokens', 'token', { method: 'POST', body: token }) as never,
      list: async () => ((await request('/tokens', 'tokens')) as { readonly tokens: never }).tokens,
      revoke: (id) => request(`/tokens/${encodeURIComponent(id)}`, 'revoked', { method: 'DELETE' }) as never,
    },
    deliveries: {
      list: (filter = {}) => request(`/deliveries?${toQuery(filter)}`, 'deliveries') as never,
      get: (id) => request(`/deliveries/${encodeURIComponent(id)}`, 'attempts') as never,
      redeliver: (id) => {
        const path = `/deliveries/${encodeURIComponent(id)}/redeliver`;
        return request(path, 'attempts', { method: 'POST' }) as never;
      },
      replay: (filter) => request('/replays', 'redelivered', { method: 'POST', body: filter }) as never,
      receivers: async () => ((await request('/receivers', 'receivers')) as { readonly receivers: never }).receivers,
      resume: (receiver) => {
        const path = `/receivers/${encodeURIComponent(receiver)}/resume`;
        return request(path, 'deliveries', { method: 'POST' }) as never;
      },
    },
    components: {
      register: (component) => request('/components', 'name', { method: 'POST', body: component }) as never,
      update: (name, body) => request(component(name), 'name', { method: 'PUT', body }) as never,
      get: (name) => request(component(name), 'name') as never,
      list: (page = {}) => request(`/components?${toQuery(page)}`, 'components') as never,
      versions: async (name) =>
        ((await request(`${component(name)}/versions`, 'versions')) as { readonly versions: never }).versions,
      version: (name, ref, key) => {
        const query = key === undefined ? '' : `?${toQuery({ key })}`;
        return request(`${component(name)}/versions/${encodeURIComponent(ref)}${query}`, 'content') as never;
      },
      // The server takes the name of the token as the actor.
      createVersion: (name, { actor: _actor, ...body }) =>
        request(`${component(name)}/versions`, 'version', { method: 'POST', body }) as never,
      deployments: async (name) =>
        ((await request(`${component(name)}/deployments`, 'deployments')) as { readonly deployments: never })
          .deployments,
      deploy: (name, { actor: _actor, to, ...body }) =>
        request(deployment(name, to), 'environment', { method: 'PUT', body }) as never,
      undeploy: (name, environment) =>
        request(deployment(name, environment), 'undeployed', { method: 'DELETE' }) as never,
      rollback: (name, { actor: _actor, to, ...body }) =>
        request(`${deployment(name, to)}/rollback`, 'environment', { method: 'POST', body }) as never,
    },
    executions: {
      get: (id) => request(`/executions/${encodeURIComponent(id)}`, 'status') as never,
      list: (filter = {}) => {
        const given = Object.entries(filter).filter(([, value]) => value !== undefined);
        const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
        return request(`/executions?${query}`, 'executions') as never;
      },
      agents: (id, page) => request(`/executions/${encodeURIComponent(id)}/agents?${toQuery(page)}`, 'agents') as never,
      steps: (id, page) => request(`/executions/${encodeURIComponent(id)}/steps?${toQuery(page)}`, 'steps') as never,
      running: (id) => request(`/executions/${encodeURIComponent(id)}/running`, 'steps') as never,
      definition: (id) => request(`/executions/${encodeURIComponent(id)}/definition`, 'definition') as never,
      events: (id, options) => followEvents(send, host, id, options),
      cancel: (id) => request(`/executions/${encodeURIComponent(id)}/cancel`, 'status', { method: 'POST' }) as never,
      signal: (id, name, payload = null, { idempotencyKey } = {}) =>
        request(`/executions/${encodeURIComponent(id)}/signals/${encodeURIComponent(name)}`, 'status', {
          method: 'POST',
          body: payload,
          ...(idempotencyKey !== undefined && { headers: { 'idempotency-key': idempotencyKey } }),
        }) as never,
      retry: (id, body) =>
        request(`/executions/${encodeURIComponent(id)}/retry`, 'status', { method: 'POST', body }) as never,
      async history() {
        const reason = 'a server gives no histories, because nothing in a history is masked';
        throw wrongUsage(`${reason}; name its store with --dir or --storage`);
      },
    },
    close: async () => {},
  };
}

function component(name: string): string {
  return `/components/${encodeURIComponent(name)}`;
}

function deployment(name: string, environment: string): string {
  return `${component(name)}/deployments/${encodeURIComponent(environment)}`;
}

function toQuery(page: object = {}): URLSearchParams {
  return new URLSearchParams(Object.entries(page).map(([name, value]) => [name, String(value)]));
}

type Send = (path: string, exchange?: Exchange) => Promise<Response>;

/** @throws CliError, by the returned function, when the server can't be reached or refuses the request */
function createSend(base: string, token: string): Send {
  return async (path, { method = 'GET', body, headers, signal } = {}) => {
    let response: Response;
    try {
      response = await fetch(`${base}${path}`, {
        method,
        // The token is sent only to the named server.
        redirect: 'manual',
        headers: {
          authorization: `Bearer ${token}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: signal ?? AbortSignal.timeout(RESPONSE_MS),
      });
    } catch (error) {
      throw new CliError(explainFailure(base, error));
    }
    if (response.ok) return response;
    throw new CliError(await explainResponse(base, response));
  };
}

/** Resumes a broken stream after its last event, until the event of the execution's end. */
async function* followEvents(
  send: Send,
  host: string,
  id: string,
  options: { after?: string; signal?: AbortSignal } = {},
): AsyncGenerator<Event> {
  const { signal } = options;
  let { after } = options;
  for (let failures = 0; !signal?.aborted; ) {
    try {
      const headers: Record<string, string> = after === undefined ? {} : { 'last-event-id': after };
      const { body, headers: sent } = await send(`/executions/${encodeURIComponent(id)}/events`, {
        headers,
        signal: signal ?? new AbortController().signal,
      });
      if (!sent.get('content-type')?.startsWith('text/event-stream')) throw notAnEnsembleServer(host);
      for await (const { id: eventId, data } of readEventStream(body as ReadableStream<Uint8Array>)) {
        failures = 0;
        after = eventId;
        const event = JSON.parse(data) as { readonly event: string };
        yield { id: eventId, event } as Event;
        if (isEnd(event.event)) return;
      }
    } catch (error) {
      if (signal?.aborted) return;
      // Before the first event, the address, the token or the id is wrong. A retry would not help.
      if (after === undefined || failures >= RECONNECTS) throw error;
    }
    failures += 1;
    if (failures > RECONNECTS) throw new CliError(`${host} ended the event stream of ${id} before the execution ended`);
    await pause(RECONNECT_MS, signal);
  }
}

function notAnEnsembleServer(host: string): CliError {
  return new CliError(`${host} responded, but it is not an ensemble server; check the address`);
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
  if (url.username || url.password) throw wrongUsage('--url takes no user and password; pass a token with --token');
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}/api/v1`;
}

function explainFailure(base: string, error: unknown): string {
  const { host } = new URL(base);
  if ((error as { readonly name?: unknown }).name === 'TimeoutError') return `${host} did not respond within 30 s`;
  const cause = (error as { readonly cause?: { readonly code?: unknown } }).cause;
  switch (cause?.code) {
    case 'ECONNREFUSED':
      return `no server listens at ${host}; check that it is running, and check the port`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `there is no host ${new URL(base).hostname}; check --url`;
    case 'ECONNRESET':
    case 'UND_ERR_SOCKET':
      return `${host} closed the connection before it responded`;
    default:
      return `${host} can't be reached: ${oneLine(messageOf(cause ?? error))}`;
  }
}

async function explainResponse(base: string, response: Response): Promise<string> {
  const { host } = new URL(base);
  const body = (await response.json().catch(() => undefined)) as
    | { readonly error?: Record<string, unknown> }
    | undefined;
  const { code, message } = body?.error ?? {};
  if (typeof code === 'string' && typeof message === 'string') return oneLine(message);
  return `${host} responded with ${response.status}, but it is not an ensemble server; check the address`;
}
