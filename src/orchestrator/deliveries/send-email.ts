/** Sends one attempt of a delivery by e-mail (the specification's e-mail notifications). */

import { isOrchestratorError, messageOf } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import type { MaskText } from '../../engine/interpreter/attempt/mask-secrets.ts';
import type { StoredDelivery } from '../../engine/delivery/delivery.ts';
import { MAX_LINE } from '../../engine/operation/mail-fields.ts';
import type { EmailTarget } from '../../engine/delivery/notification.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { HttpClient } from '../../engine/host/http.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { MailMessage, MailSender } from '../../engine/operation/mail.port.ts';
import { identity } from '../../operations/email/message.ts';
import { callSender } from '../../operations/email/send.ts';
import { toEventPage } from './event-page.ts';
import type { AttemptOutcome } from './send-webhook.ts';

export interface EmailSenders {
  readonly senders: Readonly<Record<string, MailSender>>;
  readonly http: HttpClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly mask: MaskText;
}

const MAX_ERROR = 500;

export async function sendEmail(
  { senders, http, clock, logger, mask }: EmailSenders,
  delivery: StoredDelivery,
  target: EmailTarget,
): Promise<AttemptOutcome> {
  const { provider, timeoutMs } = target;
  const sender = senders[provider];
  if (!sender) return { result: 'failed', error: `there is no mail sender \`${provider}\` in this process` };
  const call = { provider, sender, http, clock, logger, timeoutMs, settings: {}, idempotencyKey: delivery.id };
  try {
    await callSender(call, toMessage(delivery, target, mask));
    return { result: 'succeeded' };
  } catch (thrown) {
    const isFinal = isOrchestratorError(thrown) && !thrown.retryable;
    return { result: isFinal ? 'failed' : 'broken', error: mask(messageOf(thrown)).slice(0, MAX_ERROR) };
  }
}

function toMessage(
  { id, event, ensemble, body }: StoredDelivery,
  { to, from, subject }: EmailTarget,
  mask: MaskText,
): MailMessage {
  const { timestamp, data } = JSON.parse(body) as { readonly timestamp: string; readonly data: JsonObject };
  const line = mask(subject({ event, ensemble, timestamp })).replace(/\s+/g, ' ').trim();
  return {
    ...{ from, to, cc: [], bcc: [], attachments: [], tags: [], metadata: {} },
    // So that no out-of-office note answers it (RFC 3834).
    headers: { 'Auto-Submitted': 'auto-generated' },
    subject: line.slice(0, MAX_LINE),
    text: `${JSON.stringify(data, undefined, 2)}\n`,
    html: toEventPage({ event, ensemble, timestamp, data }),
    ...identity(id, { from }),
  };
}
