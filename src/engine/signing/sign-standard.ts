/** Signs the body of an outbound request by the convention of Standard Webhooks. */

import { toBase64 } from '../base/bytes/base64.ts';
import { hmacOfText } from './proof.ts';
import type { RequestSigner } from './sign-request.ts';
import { keyOf } from './signature-schemes.ts';

/**
 * The three headers. The signature covers the id, the time in seconds and the body.
 *
 * @param id - of the message: equal each time it is sent again
 * @throws TypeError for a secret that is not in base64
 */
export function signStandard(
  body: string,
  { secrets, now }: Pick<RequestSigner, 'secrets' | 'now'>,
  id: string,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(now / 1000));
  const proofs = secrets.map((one) => {
    const key = keyOf('standard', one);
    if (!key) throw new TypeError('a secret of Standard Webhooks must be in base64, such as `whsec_...`');
    return `v1,${toBase64(hmacOfText(`${id}.${timestamp}.${body}`, key))}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': proofs.join(' ') };
}
