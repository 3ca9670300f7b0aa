/** `toBunHandler()`: serves a handler with `Bun.serve`. */

import type { HttpHandler } from '../../../engine/host/host.port.ts';

/** The part of Bun's server that is used. */
export interface BunServer {
  requestIP(request: Request): { readonly address: string } | null;
}

/**
 * Returns the `fetch` of `Bun.serve` for a handler. It passes the peer's address to the handler.
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
