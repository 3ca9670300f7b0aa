/** `toBunHandler()`: a handler behind `Bun.serve`. */

import type { HttpHandler } from '../../engine/ports/host.ts';

/** What of Bun's server is asked. */
export interface BunServer {
  requestIP(request: Request): { readonly address: string } | null;
}

/**
 * Serves a handler as the `fetch` of `Bun.serve`; the peer's address goes along.
 *
 * @example
 * ```js
 * import { createHandler, createOrchestrator } from 'ensemble-orchestrator';
 * import { toBunHandler } from 'ensemble-orchestrator/bun';
 *
 * Bun.serve({ fetch: toBunHandler(createHandler(createOrchestrator())) });
 * ```
 */
export function toBunHandler(handler: HttpHandler): (request: Request, server?: BunServer) => Promise<Response> {
  return (request, server) => {
    const address = server?.requestIP(request)?.address;
    return handler.fetch(request, address === undefined ? {} : { ip: address });
  };
}
