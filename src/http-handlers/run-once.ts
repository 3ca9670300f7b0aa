/** A request with an `Idempotency-Key`: its twins get the answer of the first, on every route that has an effect. */

import { toBase64 } from '../engine/base/bytes/base64.ts';
import { hashText } from '../engine/base/bytes/hash.ts';
import { OrchestratorError } from '../engine/base/errors.ts';
import { isIdempotencyKey, MAX_KEY_LENGTH } from '../engine/execution/start-once.ts';
import type { PlainRequest } from '../engine/host/host.port.ts';
import type { HttpCall } from './call.ts';
import type { Reply } from './reply/reply.ts';
import { readBytes } from './request/read-json.ts';
import type { Route } from './router.ts';

/** @throws INVALID_REQUEST for a key of a wrong form */
export function readIdempotencyKey(request: PlainRequest): string | undefined {
  const key = request.header('idempotency-key');
  if (key === undefined || isIdempotencyKey(key)) return key;
  const message = `the header \`Idempotency-Key\` must have 1 to ${MAX_KEY_LENGTH} characters`;
  throw new OrchestratorError('INVALID_REQUEST', message);
}

/** @throws what reading the body and `RequestKeys.once` throw */
export async function runOnce(call: HttpCall, route: Route, key: string): Promise<Reply> {
  const { request, principal, dependencies } = call;
  if (!dependencies.once) {
    const message =
      'no `Idempotency-Key` is kept here: a request that is sent twice has two effects; leave the header out';
    throw new OrchestratorError('INVALID_REQUEST', message);
  }
  const bytes = request.hasBody ? await readBytes(call) : undefined;
  const caller = principal?.tokenId ?? 'http';
  const asked = hashText(`${request.method} ${request.path}\n${bytes ? toBase64(bytes) : ''}`);
  const secret = `${request.header('authorization') ?? ''}\n${key}`;
  const again = bytes ? { ...call, request: withBody(request, bytes) } : call;
  return dependencies.once({ caller, key, asked, secret }, async () => route.run(again));
}

/** The request, whose body was read already. */
function withBody(request: PlainRequest, bytes: Uint8Array): PlainRequest {
  return {
    method: request.method,
    path: request.path,
    query: request.query,
    mount: request.mount,
    header: (name) => request.header(name),
    withoutBody: () => request.withoutBody(),
    hasBody: true,
    body: (take) => (take(bytes.byteLength) ? bytes : undefined),
  };
}
