/** `createApiHandler()`: the API as a handler that any host can mount. */

import type { HttpHandler } from '../engine/host/host.port.ts';
import type { Orchestrator } from '../orchestrator/create-orchestrator.ts';
import { findBrowserPath } from './access/browser-paths.ts';
import { API_ROUTES } from './api/routes.ts';
import type { HandlerDependencies } from './call.ts';
import { type HandlerOptions, readHandlerOptions } from './handler-options.ts';
import { API_ROOT } from './reply/location.ts';
import { createRouter, type Route, type Router } from './router.ts';
import { LINK_ROUTES } from './signal-pages/signal-link.ts';
import { toHandler } from './to-handler.ts';

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
  const dependencies = readHandlerOptions(orchestrator as unknown as Orchestrator, options);
  const router = createApiRouter(dependencies);
  return toHandler(
    dependencies,
    ({ path }) => router.match(path),
    (request) => findBrowserPath(request, dependencies, false) ?? 'nothing',
  );
}

/** The routes of the API, of the links that send signals where they are set up, and others. */
export function createApiRouter({ orchestrator, basePath }: HandlerDependencies, more: readonly Route[] = []): Router {
  const links = orchestrator.signalLinks ? LINK_ROUTES : [];
  return createRouter([...API_ROUTES, ...links, ...more], basePath, API_ROOT);
}
