/** `createApiHandler()`: the API as a handler that any host can mount. */

import { type HttpHandler, PLAIN_DOOR, type PlainDoor } from '../engine/ports/host.ts';
import type { Orchestrator } from '../orchestrator.ts';
import { API_ROOT, API_ROUTES } from './api/routes.ts';
import { FetchedRequest, toResponse } from './fetch-door.ts';
import { type HandlerOptions, readHandlerOptions } from './handler-options.ts';
import { answerRequest } from './pipeline.ts';
import { createRouter } from './router.ts';
import { LINK_ROUTES } from './signal-link.ts';

const NO_HOST = Object.freeze({});

/**
 * The API under `/api/v1`, `/ensembles`, which the seed names bare, and `/signals` where `signalLinks` is set. `handle` takes every path below `/api/v1`,
 * unknown ones included, and leaves the others to the host.
 *
 * @throws TypeError for an option that has no meaning
 *
 * @example
 * ```ts
 * import { createApiHandler, createOrchestrator } from 'ensemble-orchestrator';
 *
 * const handler = createApiHandler(createOrchestrator());
 * const response = await handler.fetch(new Request('http://localhost/api/v1/health'));
 * console.log(response.status, await response.text()); // 200 {"status":"ok"}
 * ```
 */
export function createApiHandler<T>(orchestrator: Orchestrator<T>, options: HandlerOptions = {}): HttpHandler {
  const parts = readHandlerOptions(orchestrator as unknown as Orchestrator, options);
  const routes = orchestrator.signalLinks ? [...API_ROUTES, ...LINK_ROUTES] : API_ROUTES;
  const router = createRouter(routes, parts.basePath, API_ROOT);
  const door: PlainDoor = (request, host, ownPathsOnly) => {
    const match = router.match(request.path);
    if (match === undefined && ownPathsOnly) return undefined;
    return answerRequest(request, host, match, parts);
  };
  const handler: HttpHandler = {
    async fetch(request, host = NO_HOST) {
      const plain = new FetchedRequest(request);
      return toResponse(await answerRequest(plain, host, router.match(plain.path), parts));
    },
    async handle(request, host = NO_HOST) {
      const answer = door(new FetchedRequest(request), host, true);
      return answer ? { matched: true, response: toResponse(await answer) } : { matched: false };
    },
  };
  Object.defineProperty(handler, PLAIN_DOOR, { value: door });
  return handler;
}
