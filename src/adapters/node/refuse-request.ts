/** Answers a Node request that no handler can be asked about. */

import type { PlainAnswer } from '../../engine/ports/host.ts';

/** With the headers that every answer of a handler has. */
export function refuseRequest(status: 400 | 404, message: string): PlainAnswer {
  const code = status === 404 ? 'NOT_FOUND' : 'INVALID_REQUEST';
  return {
    status,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': crypto.randomUUID(),
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'content-security-policy': 'sandbox',
    },
    body: JSON.stringify({ error: { code, message } }),
  };
}
