/** The paths of the API, as its responses name them. */

import type { HttpCall } from '../call.ts';

/** Every path below this one belongs to the API. */
export const API_ROOT = '/api/v1';

/** The header of a response that names a resource. @param path - below the root, such as `/executions/exec_1` */
export function locationOf({ dependencies, request }: HttpCall, path: string): { readonly location: string } {
  return { location: `${request.mount}${dependencies.basePath}${API_ROOT}${path}` };
}
