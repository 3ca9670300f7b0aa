/** The version of a resource in headers: `ETag` in responses, `If-Match` in requests (RFC 9110). */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { PlainRequest } from '../../engine/host/host.port.ts';

export function etagOf(version: string): { readonly etag: string } {
  return { etag: `"${version}"` };
}

/** The version that a change expects. @returns an empty object without the header, and for `*`. @throws INVALID_REQUEST */
export function readIfMatch(request: PlainRequest): { readonly ifMatch?: string } {
  const header = request.header('if-match')?.trim();
  if (header === undefined || header === '*') return {};
  const [, version] = /^"([\w.-]{1,128})"$/.exec(header) ?? [];
  if (version !== undefined) return { ifMatch: version };
  throw new OrchestratorError('INVALID_REQUEST', 'the header `If-Match` must be one `ETag` of this resource, or `*`');
}
