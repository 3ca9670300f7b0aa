/** `GET /openapi.json`: the OpenAPI document of the API. */

import { once } from '../../engine/base/once.ts';
import type { Route } from '../router.ts';

/** @param routes - those of the document. Most processes never need it, so it is made at the first request */
export function openApi(routes: () => readonly Route[]): Route['run'] {
  const load = once(async () => (await import('../openapi/document.ts')).createOpenApi(routes()));
  return async ({ parts, request }) => {
    const documentOf = await load();
    const service = { basePath: `${request.mount}${parts.basePath}`, brand: parts.orchestrator.brand };
    return { status: 200, json: documentOf(service) };
  };
}
