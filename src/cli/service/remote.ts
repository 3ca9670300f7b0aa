/** A running server as a service, over its HTTP API. */

import { readEventStream } from '../../engine/base/bytes/read-event-stream.ts';
import { callAddress } from '../../engine/base/call-address.ts';
import { messageOf } from '../../engine/base/errors.ts';
import type { Execution as AnyExecution } from '../../engine/execution/execution.ts';
import type { Asked, CallKey, ResultOf } from '../../http-handlers/api/client-types.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';
import { pause } from '../terminal/pause.ts';
import { oneLine } from '../terminal/text.ts';
import type { Service } from './service.ts';

const RESPONSE_MS = 30_000;
/** How often a broken event stream is resumed without a new event, and the delay before each attempt. */
const RECONNECTS = 5;
const RECONNECT_MS = 1000;

type Execution = AnyExecution<unknown>;
type Event = Awaited<ReturnType<ReturnType<Service['executions']['events']>['next']>>['value'];

interface Exchange {
  readonly method?: string;
  /** Text is YAML, all else is sent as JSON. */
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
  /** @param has - a key that the JSON body must have */
  const call = async <K extends CallKey>(key: K, has: string, given: Asked<K>, headers?: Exchange['headers']) => {
    const { method, path } = callAddress(key, given);
    const response = await send(path, { method, body: given.body, headers });
    const body: unknown = await response.json().catch(() => undefined);
    if (typeof body !== 'object' || body === null || !Object.hasOwn(body, has)) throw notAnEnsembleServer(host);
    return body as ResultOf<K>;
  };

  return {
    tokens: {
      create: (body) => call('POST /tokens', 'token', { body }),
      list: async () => (await call('GET /tokens', 'tokens', {})).tokens,
      revoke: (id) => call('DELETE /tokens/:id', 'revoked', { id }),
    },
    deliveries: {
      list: (query) => call('GET /deliveries', 'deliveries', { query }),
      get: (id) => call('GET /deliveries/:id', 'attempts', { id }),
      redeliver: (id) => call('POST /deliveries/:id/redeliver', 'attempts', { id }),
      replay: (body) => call('POST /replays', 'redelivered', { body }),
      receivers: async () => (await call('GET /receivers', 'receivers', {})).receivers,
      resume: (id) => call('POST /receivers/:id/resume', 'deliveries', { id }),
    },
    components: {
      register: (body) => call('POST /components', 'name', { body }),
      update: (name, body) => call('PUT /components/:name', 'name', { name, body }),
      get: (name) => call('GET /components/:name', 'name', { name }),
      list: (query) => call('GET /components', 'components', { query }),
      versions: async (name) => (await call('GET /components/:name/versions', 'versions', { name })).versions,
      version: (name, version, key) =>
        call('GET /components/:name/versions/:version', 'content', { name, version, query: { key } }),
      // The server takes the name of the token as the actor.
      createVersion: (name, { actor: _actor, ...body }) =>
        call('POST /components/:name/versions', 'version', { name, body }),
      deployments: async (name) =>
        (await call('GET /components/:name/deployments', 'deployments', { name })).deployments,
      deploy: (name, { actor: _actor, to: environment, ...body }) =>
        call('PUT /components/:name/deployments/:environment', 'environment', { name, environment, body }),
      undeploy: (name, environment) =>
        call('DELETE /components/:name/deployments/:environment', 'undeployed', { name, environment }),
      rollback: (name, { actor: _actor, to: environment, ...body }) =>
        call('POST /components/:name/deployments/:environment/rollback', 'environment', { name, environment, body }),
    },
    executions: {
      get: (id) => call('GET /executions/:id', 'status', { id }),
      list: (query) => call('GET /executions', 'executions', { query }),
      agents: (id, query) => call('GET /executions/:id/agents', 'agents', { id, query }),
      steps: (id, query) => call('GET /executions/:id/steps', 'steps', { id, query }),
      running: (id) => call('GET /executions/:id/running', 'steps', { id }),
      definition: (id) => call('GET /executions/:id/definition', 'definition', { id }),
      events: (id, options) => followEvents(send, host, id, options),
      move: (body) => call('POST /moves', 'matched', { body }),
      // The server takes the token as who asks.
      cancel: (id, options) =>
        call('POST /executions/:id/cancel', 'status', { id, body: { reason: options?.reason } }) as Promise<Execution>,
      pauseAll: (of, options) => call('POST /pause', 'changed', { body: { ...of, reason: options?.reason } }),
      resumeAll: (of, options) => call('POST /resume', 'changed', { body: { ...of, reason: options?.reason } }),
      pause: (id, options) =>
        call('POST /executions/:id/pause', 'status', { id, body: { reason: options?.reason } }) as Promise<Execution>,
      resume: (id, options) =>
        call('POST /executions/:id/resume', 'status', { id, body: { reason: options?.reason } }) as Promise<Execution>,
      complete: (id, key, output, options) =>
        call('POST /executions/:id/complete', 'status', {
          id,
          body: { key, output, reason: options?.reason },
        }) as Promise<Execution>,
      signal: (id, signal, body = null, { idempotencyKey } = {}) =>
        call(
          'POST /executions/:id/signals/:signal',
          'status',
          { id, signal, body },
          idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
        ) as Promise<Execution>,
      retry: (id, body) => call('POST /executions/:id/retry', 'status', { id, body }) as Promise<Execution>,
      history: (id) => call('GET /executions/:id/history', 'steps', { id }),
    },
    ensembles: {
      get: (name) => call('GET /ensembles/:name', 'name', { name }),
      async find(name) {
        try {
          return await call('GET /ensembles/:name', 'name', { name });
        } catch (error) {
          if (error instanceof RefusedError && error.code === 'NOT_FOUND') return undefined;
          throw error;
        }
      },
      list: (query) => call('GET /ensembles', 'ensembles', { query }),
      // The server takes the name of the token as the actor.
      create: (body, { label, message, commit } = {}) =>
        call('POST /ensembles', 'name', { body, query: { label, message, commit } }),
      update: (name, body, { label, message, commit } = {}) =>
        call('PUT /ensembles/:name', 'name', { name, body, query: { label, message, commit } }),
      versions: async (name) => (await call('GET /ensembles/:name/versions', 'versions', { name })).versions,
      version: (name, version) => call('GET /ensembles/:name/versions/:version', 'definition', { name, version }),
      traffic: (name, given) => {
        if (given === undefined) return call('GET /ensembles/:name/traffic', 'version', { name });
        const { actor: _actor, ...body } = given;
        return call('PUT /ensembles/:name/traffic', 'version', { name, body });
      },
      rollback: (name, { actor: _actor, ...body }) => call('POST /ensembles/:name/rollback', 'name', { name, body }),
    },
    audit: { list: (query) => call('GET /audit', 'entries', { query }) },
    close: async () => {},
  };
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
          ...(body !== undefined && {
            'content-type': typeof body === 'string' ? 'application/yaml' : 'application/json',
          }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        signal: signal ?? AbortSignal.timeout(RESPONSE_MS),
      });
    } catch (error) {
      throw new CliError(explainFailure(base, error));
    }
    if (response.ok) return response;
    throw await refusalOf(base, response);
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

/** The server has answered with an error of the API. */
class RefusedError extends CliError {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

async function refusalOf(base: string, response: Response): Promise<CliError> {
  const { host } = new URL(base);
  const body = (await response.json().catch(() => undefined)) as
    | { readonly error?: Record<string, unknown> }
    | undefined;
  const { code, message } = body?.error ?? {};
  if (typeof code === 'string' && typeof message === 'string')
    return new RefusedError(code, message.split('\n').map(oneLine).join('\n'));
  return new CliError(`${host} responded with ${response.status}, but it is not an ensemble server; check the address`);
}
