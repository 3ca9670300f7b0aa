/** The `fetch` of the client package: every request passes the guarded HTTP client, with the headers that authorize and sign it. */

import { eventReader } from '../../engine/base/bytes/read-event-stream.ts';
import { isOrchestratorError, type OrchestratorError } from '../../engine/base/errors.ts';
import { querySecrets } from '../../engine/host/peer-text.ts';
import { isRetryableStatus, parseRetryAfter } from '../../engine/host/retry-after.ts';
import type { ToolServerAccess } from '../../engine/operation/tool-server.port.ts';
import type { CallScope } from './call-scope.ts';
import { incompleteAnswer } from './failure.ts';
import { streamResponse } from './stream-response.ts';

/** A message that was sent to the server, and its answer. */
export interface Exchange {
  readonly scope: CallScope;
  /** Its failure ends the call. */
  readonly isRequest: boolean;
  answered: boolean;
  /** The answer is a stream of events, which may be resumed. */
  streamed: boolean;
  lastEventId?: string | undefined;
  /** Since its last event. */
  resumptions: number;
  /** Why its stream broke. */
  failure?: OrchestratorError;
}

/** The exchanges that are open on a connection. */
export interface OpenExchanges {
  readonly byKey: Map<string, Exchange>;
  /** The calls in which the server asked something that is not answered, by the id of its request. */
  readonly asked: Map<string | number, CallScope>;
  /** The scope of requests that belong to no exchange: the end of the session. */
  closing?: CallScope | undefined;
}

/** Carries the key of an exchange from the transport to its `fetch`. It is never sent. */
export const EXCHANGE_HEADER = 'x-exchange';

const MAX_RESUMPTIONS = 5;

export function guardedFetch(access: ToolServerAccess, open: OpenExchanges) {
  return async (_url: string | URL, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    const lastEventId = headers.get('last-event-id');
    const exchange =
      lastEventId === null
        ? open.byKey.get(headers.get(EXCHANGE_HEADER) ?? '')
        : [...open.byKey.values()].find((one) => one.lastEventId === lastEventId);
    headers.delete(EXCHANGE_HEADER);
    const scope = exchange?.scope ?? (init.method === 'DELETE' ? open.closing : undefined);
    // The stream for messages that belong to no call is not opened. Neither is the stream of a call that has ended.
    if (scope === undefined) return new Response(null, { status: 405 });
    try {
      if (exchange && lastEventId !== null && ++exchange.resumptions > MAX_RESUMPTIONS) {
        throw exchange.failure ?? incompleteAnswer(access.name);
      }
      const response = await sendAuthorized(access, scope, exchange, { ...init, headers });
      const isGone = lastEventId !== null && response.status >= 400 && !isRetryableStatus(response.status);
      if (isGone) scope.fail(exchange?.failure ?? incompleteAnswer(access.name));
      return watchMessages(response, (message) => noteRequest(message, scope, open), lastEventId);
    } catch (error) {
      // The client package no longer waits: its question for the form of the server took too long.
      const isTooLate = init.signal?.aborted && !scope.ended;
      if (exchange?.isRequest && !isTooLate) noteBroken(exchange, access.name, error, lastEventId === null);
      throw error;
    }
  };
}

/** Notes who asked, if a message of the server is a request. @throws as `CallScope.countRequest` */
function noteRequest(message: unknown, scope: CallScope, { asked }: OpenExchanges): void {
  const { method, id } = (message ?? {}) as { readonly method?: unknown; readonly id?: unknown };
  if (method === undefined || (typeof id !== 'string' && typeof id !== 'number')) return;
  scope.countRequest();
  asked.set(id, scope);
  scope.signal.addEventListener('abort', () => asked.delete(id), { once: true });
}

type Sent = Omit<RequestInit, 'headers'> & { readonly headers: Headers };

async function sendAuthorized(
  access: ToolServerAccess,
  scope: CallScope,
  exchange: Exchange | undefined,
  init: Sent,
): Promise<Response> {
  const send = (authorization: Readonly<Record<string, string>>) => {
    const body = typeof init.body === 'string' ? init.body : undefined;
    const signature = access.sign(body ?? '');
    const session = init.headers.get('mcp-session-id') ?? '';
    scope.secrets = [
      ...Object.values(authorization),
      ...Object.values(signature),
      session,
      ...querySecrets(access.url),
    ];
    const request = {
      method: init.method ?? 'POST',
      url: access.url,
      headers: { ...Object.fromEntries(init.headers), ...authorization, ...signature },
      body,
      timeoutMs: scope.timeoutMs,
      maxResponseBytes: Math.max(scope.bytesLeft, 1),
      signal: init.signal ?? scope.signal,
    };
    const onBytes = (count: number) => {
      scope.bytesLeft -= count;
    };
    return streamResponse(
      access.http,
      request,
      onBytes,
      (error) => exchange && noteBroken(exchange, access.name, error, false),
    );
  };
  const authorization = await access.authorize(false, scope.signal);
  let response = await send(authorization);
  if (response.status === 401 && !scope.renewed) {
    scope.renewed = true;
    const renewed = await access.authorize(true, scope.signal, authorization);
    if (JSON.stringify(renewed) !== JSON.stringify(authorization)) {
      await response.body?.cancel();
      response = await send(renewed);
    }
  }
  if (!response.ok) scope.retryAfterMs = parseRetryAfter(response.headers.get('retry-after') ?? undefined, Date.now());
  else if (exchange && response.headers.get('content-type')?.startsWith('text/event-stream')) exchange.streamed = true;
  return response;
}

/** Notes why an exchange broke. What can't be resumed ends the call. */
function noteBroken(exchange: Exchange, server: string, error: unknown, isFinal: boolean): void {
  const failure = isOrchestratorError(error) ? error : incompleteAnswer(server);
  exchange.failure = failure;
  if (isFinal || !failure.retryable || exchange.resumptions > MAX_RESUMPTIONS) exchange.scope.fail(failure);
}

/**
 * @param see - gets each message, as the server sent it. What it throws breaks the answer
 * @param resumedAfter - the id of the event after which a stream is resumed. The client package would forget it if the stream broke
 *   before its first event
 */
function watchMessages(response: Response, see: (message: unknown) => void, resumedAfter?: string | null): Response {
  const type = response.headers.get('content-type') ?? '';
  if (!response.ok || response.body === null) return response;
  const watch = type.startsWith('text/event-stream') ? eventWatch(see, resumedAfter ?? undefined) : jsonWatch(see);
  const { status, headers } = response;
  return new Response(response.body.pipeThrough(new TransformStream(watch)), { status, headers });
}

function eventWatch(see: (message: unknown) => void, resumedAfter?: string): Transformer<Uint8Array, Uint8Array> {
  const read = eventReader();
  return {
    start(controller) {
      if (resumedAfter !== undefined) controller.enqueue(new TextEncoder().encode(`id: ${resumedAfter}\ndata: \n\n`));
    },
    transform(bytes, controller) {
      for (const { data } of read(bytes)) see(parseMessage(data));
      controller.enqueue(bytes);
    },
  };
}

/** One message, or a list of them. The client package takes an answer when it is complete. */
function jsonWatch(see: (message: unknown) => void): Transformer<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  let text = '';
  return {
    transform(bytes, controller) {
      text += decoder.decode(bytes, { stream: true });
      controller.enqueue(bytes);
    },
    flush() {
      const value = parseMessage(text);
      for (const message of Array.isArray(value) ? value : [value]) see(message);
    },
  };
}

function parseMessage(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The client package reports what is not JSON.
    return undefined;
  }
}
