/** `toDenoHandler()`: serves a handler with `Deno.serve`. */

import type { HttpHandler } from '../../../engine/host/host.port.ts';

/** Information of `Deno.serve` about a connection. A Unix socket has no host name. */
export interface DenoServeInfo {
  readonly remoteAddr: object;
}

/**
 * Returns the handler of `Deno.serve` for a handler. It passes the peer's address to the handler.
 *
 * @example
 * ```js
 * import { createHandler, createOrchestrator } from 'ensemble-orchestrator';
 * import { toDenoHandler } from 'ensemble-orchestrator/deno';
 *
 * Deno.serve(toDenoHandler(createHandler(createOrchestrator())));
 * ```
 */
export function toDenoHandler(handler: HttpHandler): (request: Request, info?: DenoServeInfo) => Promise<Response> {
  return (request, info) => {
    const hostname = (info?.remoteAddr as { hostname?: unknown } | undefined)?.hostname;
    return handler.fetch(request, typeof hostname === 'string' ? { ip: hostname } : {});
  };
}
