/** `GET /openapi.json`: the OpenAPI document of the API. */

import { once } from '../../engine/base/once.ts';
import { type CallRoute, call } from './define-call.ts';

/** @param routes - those of the document. Most processes never need it, so it is made at the first request */
export function openApiCalls(routes: () => readonly CallRoute[]) {
  const load = once(async () => (await import('../openapi/document.ts')).createOpenApi(routes()));
  return [
    call('GET /openapi.json', {
      id: 'openApi',
      summary: 'This document',
      scope: 'public',
      replies: { 200: undefined },
      async run({ orchestrator: { brand }, http: { dependencies, request } }): Promise<object> {
        const documentOf = await load();
        return documentOf({ basePath: `${request.mount}${dependencies.basePath}`, brand });
      },
    }),
  ] as const;
}
