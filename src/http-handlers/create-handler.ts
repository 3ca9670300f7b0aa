/** `createHandler()`: everything that the service offers over HTTP, as one handler. */

import type { HttpHandler } from '../engine/ports/host.ts';
import type { Orchestrator } from '../orchestrator/create-orchestrator.ts';
import { createApiHandler } from './create-api-handler.ts';
import type { HandlerOptions } from './handler-options.ts';

/**
 * Serves everything of an orchestrator over HTTP.
 *
 * @throws TypeError for an unknown option or a wrong value
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
