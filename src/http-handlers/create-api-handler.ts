/** `createApiHandler()`: the API as a handler that any host can mount. */

import { type HttpHandler, RAW_HANDLER, type RawHandler } from '../engine/ports/host.ts';
import type { Orchestrator } from '../orchestrator/create-orchestrator.ts';
import { API_ROOT, API_ROUTES } from './api/routes.ts';
import { FetchedRequest, toResponse } from './fetch-request.ts';
import { type HandlerOptions, readHandlerOptions } from './handler-options.ts';
import { answerRequest } from './pipeline.ts';
import { createRouter } from './router.ts';
import { LINK_ROUTES } from './signal-pages/signal-link.ts';

const NO_HOST = Object.freeze({});

/**
 * The API under `/api/v1` and `/ensembles`, and under `/signals` where `signalLinks` is set. The specification names `/ensembles`
 * without `/api/v1`. `handle` takes every path below `/api/v1`, unknown ones included. It leaves all other unknown paths to the host.
 *
 * @throws TypeError for an unknown option or a wrong value
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
  const handleRaw: RawHandler = (request, host, ownPathsOnly) => {
    const match = router.match(request.path);
    if (match === undefined && ownPathsOnly) return undefined;
    return answerRequest(request, host, match, parts);
  };
  const handler: HttpHandler = {
    async fetch(request, host = NO_HOST) {
      const plain = new FetchedRequest(request);
      return toResponse(await answerRequest(plain, host, router.match(plain.path), parts), parts.setTimer);
    },
    async handle(request, host = NO_HOST) {
      const response = handleRaw(new FetchedRequest(request), host, true);
      return response ? { matched: true, response: toResponse(await response, parts.setTimer) } : { matched: false };
    },
  };
  Object.defineProperty(handler, RAW_HANDLER, { value: handleRaw });
  return handler;
}
