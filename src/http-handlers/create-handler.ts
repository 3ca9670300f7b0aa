/** `createHandler()`: everything that the service answers over HTTP, as one handler. */

import type { HttpHandler } from '../engine/ports/host.ts';
import type { Orchestrator } from '../orchestrator.ts';
import { createApiHandler } from './create-api-handler.ts';
import type { HandlerOptions } from './handler-options.ts';

/**
 * Serves all that there is of an orchestrator over HTTP.
 *
 * @throws TypeError for an option that has no meaning
 *
 * @example
 * ```ts
 * import { createHandler, createOrchestrator } from 'ensemble-orchestrator';
 *
 * const handler = createHandler(createOrchestrator(), { basePath: '/service' });
 * const result = await handler.handle(new Request('http://localhost/about'));
 * console.log(result.matched); // false
 * ```
 */
export function createHandler<T>(orchestrator: Orchestrator<T>, options: HandlerOptions = {}): HttpHandler {
  return createApiHandler(orchestrator, options);
}
