/** What `email` and `sms` return for one message. */

import type { JsonObject } from '../base/json/json.ts';

/** The output of one message. */
export const SENT: JsonObject = {
  type: 'object',
  properties: { messageId: { type: 'string' }, success: { const: true }, provider: { type: 'string' } },
  required: ['messageId', 'success', 'provider'],
  additionalProperties: false,
};
