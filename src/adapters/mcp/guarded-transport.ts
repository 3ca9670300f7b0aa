/** The transport of the client package, bounded by calls: each message belongs to a scope, and an answer without a result fails it. */

import type { Transport, TransportSendOptions } from '@modelcontextprotocol/client';
import type { ToolServerAccess } from '../../engine/operation/tool-server.port.ts';
import { type CallScope, callScope, MAX_TIMER_MS } from './call-scope.ts';
import { incompleteAnswer } from './failure.ts';
import { EXCHANGE_HEADER, type Exchange, guardedFetch, type OpenExchanges } from './guarded-fetch.ts';
import type { ClientPackage } from './load-client-package.ts';

type Message = Parameters<Transport['send']>[0];

/** Carries the key of a call's scope from the client to its transport. It is never sent. */
export const SCOPE_HEADER = 'x-call-scope';
/** The longest time of a message that nobody waits for: a cancellation, or the end of a session. */
const NOTICE_MS = 3000;
/** A server says when its stream is to be resumed, but not sooner than this. */
const MIN_RESUMPTION_MS = 100;
const RESUMPTION = {
  initialReconnectionDelay: 500,
  maxReconnectionDelay: 10_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 5,
};

export interface GuardedTransport extends Transport {
  /** The scopes of the calls that run, by their key. */
  readonly scopes: Map<string, CallScope>;
  /** Ends the session of the server, if there is one. Never throws. */
  endSession(): Promise<void>;
}

/** @param connecting - the scope of messages that are sent while the connection is made */
export function guardedTransport(
  access: ToolServerAccess,
  { StreamableHTTPClientTransport }: ClientPackage,
  connecting: CallScope,
): GuardedTransport {
  const open: OpenExchanges = { byKey: new Map(), asked: new Map() };
  const scopes = new Map<string, CallScope>();
  const inner = new StreamableHTTPClientTransport(new URL(access.url), {
    fetch: guardedFetch(access, open),
    reconnectionOptions: RESUMPTION,
    reconnectionScheduler(resume, delay) {
      const timer = setTimeout(resume, Math.min(Math.max(delay, MIN_RESUMPTION_MS), MAX_TIMER_MS));
      return () => clearTimeout(timer);
    },
  });
  /** Answers a request of the server within the call in which it came. After the end of that call, nothing is sent. */
  const answer = async (message: Message, options: TransportSendOptions): Promise<void> => {
    const id = 'id' in message ? message.id : undefined;
    const scope = id === undefined || id === null ? undefined : open.asked.get(id);
    if (!scope || scope.ended) return;
    open.asked.delete(id as string | number);
    await sendMessage(inner, open, access.name, message, options, scope);
  };
  const transport: GuardedTransport = {
    scopes,
    hasPerRequestStream: true,
    start: () => inner.start(),
    close: () => inner.close(),
    setProtocolVersion: (version) => inner.setProtocolVersion(version),
    get sessionId() {
      return inner.sessionId;
    },
    send(message, options = {}) {
      const { [SCOPE_HEADER]: key = '', ...headers } = options.headers ?? {};
      const scope = scopes.get(key) ?? (connecting.ended ? undefined : connecting);
      if (!('method' in message)) return answer(message, options);
      return sendMessage(inner, open, access.name, message, { ...options, headers }, scope);
    },
    async endSession() {
      const scope = callScope(access.name, NOTICE_MS);
      open.closing = scope;
      await scope.run(inner.terminateSession()).catch(() => {});
      scope.end();
    },
  };
  inner.onmessage = (message) => {
    const exchange = 'method' in message ? undefined : open.byKey.get(String(message.id));
    if (exchange) exchange.answered = true;
    transport.onmessage?.(message);
  };
  inner.onerror = (error) => transport.onerror?.(error);
  inner.onclose = () => transport.onclose?.();
  return transport;
}

/** @param given - undefined for a message that belongs to no call, such as a cancellation */
async function sendMessage(
  to: Transport,
  { byKey }: OpenExchanges,
  server: string,
  message: Message,
  options: TransportSendOptions,
  given: CallScope | undefined,
): Promise<void> {
  const isRequest = 'method' in message && 'id' in message;
  const key = isRequest ? String(message.id) : `notice ${crypto.randomUUID()}`;
  const scope = given ?? callScope(server, NOTICE_MS);
  const exchange: Exchange = { scope, isRequest, answered: !isRequest, streamed: false, resumptions: 0 };
  const forget = () => {
    byKey.delete(key);
    scope.signal.removeEventListener('abort', forget);
    if (!given) scope.end();
  };
  const onEnd = () => {
    forget();
    if (!exchange.answered) scope.fail(exchange.failure ?? incompleteAnswer(server));
  };
  byKey.set(key, exchange);
  scope.signal.addEventListener('abort', forget, { once: true });
  try {
    await to.send(message, {
      ...options,
      headers: { ...options.headers, [EXCHANGE_HEADER]: key },
      requestSignal: options.requestSignal ? AbortSignal.any([options.requestSignal, scope.signal]) : scope.signal,
      onresumptiontoken: (id) => {
        if (id !== exchange.lastEventId) exchange.resumptions = 0;
        exchange.lastEventId = id;
      },
      onRequestStreamEnd: onEnd,
    });
    if (!exchange.streamed) onEnd();
  } catch (error) {
    forget();
    throw error;
  }
}
