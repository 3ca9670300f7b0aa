/** Reads how many executions called each other over HTTP before a request: `api` agents and signed deliveries send it. */

import type { PlainRequest } from '../engine/ports/host.ts';

/** @returns undefined without the header, or with a wrong one */
export function readHops(request: PlainRequest): number | undefined {
  const hops = request.header('x-ensemble-hops');
  return hops !== undefined && /^\d{1,4}$/.test(hops) ? Number(hops) : undefined;
}
