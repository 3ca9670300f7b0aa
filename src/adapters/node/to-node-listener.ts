/** `toNodeListener()`: a handler behind `http.createServer`, Express, Connect, or Fastify's raw request and response. */

import { type HttpHandler, plainDoorOf } from '../../engine/ports/host.ts';
import { fetchExchange } from './fetch-exchange.ts';
import { IncomingRequest } from './from-incoming.ts';
import type { NodeRequest, NodeResponse } from './node-types.ts';
import { readTarget, type Target } from './read-target.ts';
import { sendAnswer } from './send-answer.ts';

/** Leads nowhere: no path of a handler begins otherwise than with a slash. */
const NOWHERE: Target = Object.freeze({ path: '*', query: '' });

/** @param next - takes the requests whose path is not the handler's; without it they get the handler's 404 */
export type NodeListener = (request: NodeRequest, response: NodeResponse, next?: (error?: unknown) => void) => void;

/**
 * Serves a handler from Node's own servers. The peer's address goes along. Bodies are read as they come, and answers are sent
 * as fast as the peer takes them; a peer that goes away ends its answer, and nothing else. A path that a URL parser would change,
 * one with dot segments say, is not the handler's.
 *
 * Mount it in front of body parsers. Behind one, what the parser made of the body is taken instead.
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
  const door = plainDoorOf(handler);
  return (request, response, next) => {
    const target = readTarget(request.url ?? '/');
    if (!target && next) return next();
    const host = { ip: request.socket.remoteAddress };
    const ownPathsOnly = next !== undefined;
    const fail = (thrown: unknown) => {
      if (next && !response.headersSent) next(thrown);
      else response.destroy();
    };
    if (!door) {
      fetchExchange(handler, { request, response, host, target }, ownPathsOnly).then(
        (matched) => matched || next?.(),
        fail,
      );
      return;
    }
    const answer = door(new IncomingRequest(request, target ?? NOWHERE), host, ownPathsOnly);
    if (answer) answer.then((sent) => sendAnswer(request, response, sent)).catch(fail);
    else next?.();
  };
}
