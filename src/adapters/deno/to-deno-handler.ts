/** `toDenoHandler()`: a handler behind `Deno.serve`. */

import type { HttpHandler } from '../../engine/ports/host.ts';

/** What `Deno.serve` tells of a connection; a Unix socket has no host name. */
export interface DenoServeInfo {
  readonly remoteAddr: object;
}

/**
 * Serves a handler from `Deno.serve`; the peer's address goes along.
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
