/** `GET /openapi.json`: the OpenAPI document of the API. */

import { once } from '../../engine/base/once.ts';
import type { HttpCall } from '../call.ts';
import type { Reply } from '../reply.ts';
import type { Route } from '../router.ts';

// Most processes never need it.
const load = once(() => import('../openapi/document.ts'));

export async function getOpenApi({ parts, request }: HttpCall, routes: readonly Route[]): Promise<Reply> {
  const { createOpenApi } = await load();
  const { brand } = parts.orchestrator;
  return { status: 200, json: createOpenApi(routes)({ basePath: `${request.mount}${parts.basePath}`, brand }) };
}
