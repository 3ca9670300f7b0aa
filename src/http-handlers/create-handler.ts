/** `createHandler()`: everything that the service offers over HTTP, as one handler. */

import type { HttpHandler } from '../engine/ports/host.ts';
import type { Orchestrator } from '../orchestrator/create-orchestrator.ts';
import { createApiRouter } from './create-api-handler.ts';
import { type HandlerOptions, readHandlerOptions } from './handler-options.ts';
import { toHandler } from './to-handler.ts';
import { findWebhook, isWebhookPath } from './webhooks/find-webhook.ts';

/**
 * Serves everything of an orchestrator over HTTP: the API, as `createApiHandler`, and the inbound webhooks, as
 * `createWebhookHandler`.
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
  const parts = readHandlerOptions(orchestrator as unknown as Orchestrator, options);
  const router = createApiRouter(parts);
  return toHandler(
    parts,
    (request) => router.match(request.path) ?? findWebhook(request, parts),
    (request) => (isWebhookPath(request, parts) ? 'no-webhook' : 'nothing'),
  );
}
