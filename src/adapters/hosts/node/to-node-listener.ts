/** `toNodeListener()`: serves a handler with `http.createServer`, Express, Connect, or Fastify's raw request and response. */

import { type HttpHandler, rawHandlerOf } from '../../../engine/host/host.port.ts';
import { fetchExchange } from './fetch-exchange.ts';
import { IncomingRequest } from './from-incoming.ts';
import type { NodeRequest, NodeResponse } from './node-types.ts';
import { readTarget, type Target } from './read-target.ts';
import { sendAnswer } from './send-answer.ts';

/** Matches no route: every path of a handler begins with a slash. */
const NOWHERE: Target = Object.freeze({ path: '*', query: '' });

/** @param next - receives the requests whose path is not the handler's. Without it, the handler answers them with 404 */
export type NodeListener = (request: NodeRequest, response: NodeResponse, next?: (error?: unknown) => void) => void;

/**
 * Serves a handler with Node's servers, and passes the peer's address to the handler. Bodies are read as they arrive, and answers are
 * sent at the speed of the peer. A peer that disconnects ends its answer, and nothing else. A path that a URL parser would change, for
 * example one with dot segments, is not the handler's.
 *
 * Mount it before body parsers. After a body parser, the handler receives the parser's result instead of the body.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import { createHandler, createOrchestrator } from 'ensemble-orchestrator';
 * import { toNodeListener } from 'ensemble-orchestrator/node';
 *
 * const server = createServer(toNodeListener(createHandler(createOrchestrator())));
 * ```
 */
export function toNodeListener(handler: HttpHandler): NodeListener {
  const raw = rawHandlerOf(handler);
  return (request, response, next) => {
    const target = readTarget(request.url ?? '/');
    if (!target && next) return next();
    const host = { ip: request.socket.remoteAddress };
    const ownPathsOnly = next !== undefined;
    const fail = (thrown: unknown) => {
      if (next && !response.headersSent) next(thrown);
      else response.destroy();
    };
    if (!raw) {
      fetchExchange(handler, { request, response, host, target }, ownPathsOnly).then(
        (matched) => matched || next?.(),
        fail,
      );
      return;
    }
    const answer = raw(new IncomingRequest(request, target ?? NOWHERE), host, ownPathsOnly);
    if (answer) answer.then((sent) => (sent ? sendAnswer(request, response, sent) : next?.())).catch(fail);
    else next?.();
  };
}
