/** `createWebhookHandler()`: the inbound webhooks as a handler that any host can mount. */

import type { HttpHandler } from '../engine/host/host.port.ts';
import type { Orchestrator } from '../orchestrator/create-orchestrator.ts';
import { type HandlerOptions, readHandlerOptions } from './handler-options.ts';
import { toHandler } from './to-handler.ts';
import { findWebhook } from './webhooks/find-webhook.ts';

/**
 * The paths of the triggers with `type: webhook`, below the `basePath`. `handle` leaves every other path to the host.
 *
 * Its answers are those of the specification: `{ received, executionId, status, output, metrics }` after the execution has ended, 202
 * `{ received, queued, executionId }` for an asynchronous trigger, and `{ error: string }` for what is refused or has failed.
 *
 * @throws TypeError for an unknown option or a wrong value
 *
 * @example
 * ```ts
 * import { createOrchestrator, createWebhookHandler } from 'ensemble-orchestrator';
 *
 * const ensemble = `
 * name: hello
 * trigger: [{ type: webhook, path: /webhooks/hello, public: true }]
 * flow: []
 * outputs: { text: 'Hello \${input.who}' }
 * `;
 * const handler = createWebhookHandler(createOrchestrator({ ensembles: [ensemble] }));
 * const request = new Request('http://localhost/webhooks/hello', {
 *   method: 'POST',
 *   headers: { 'content-type': 'application/json' },
 *   body: '{ "who": "Ada" }',
 * });
 * const response = await handler.fetch(request);
 * const { status, output } = await response.json();
 * console.log(status, output); // completed { text: 'Hello Ada' }
 * ```
 */
export function createWebhookHandler<T>(orchestrator: Orchestrator<T>, options: HandlerOptions = {}): HttpHandler {
  const dependencies = readHandlerOptions(orchestrator as unknown as Orchestrator, options);
  return toHandler(
    dependencies,
    (request) => findWebhook(request, dependencies),
    () => 'no-webhook',
  );
}
