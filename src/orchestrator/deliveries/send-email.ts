/** Sends one attempt of a delivery by e-mail (the specification's e-mail notifications). */

import { isOrchestratorError, messageOf } from '../../engine/base/errors.ts';
import { escapeHtml } from '../../engine/base/escape-html.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import type { NotifiedEvent, StoredDelivery } from '../../engine/delivery/delivery.ts';
import type { EmailTarget } from '../../engine/delivery/notification.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { HttpClient } from '../../engine/host/http.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { MaskText } from '../../engine/interpreter/attempt/mask-secrets.ts';
import type { MailMessage, MailSender } from '../../engine/operation/mail.port.ts';
import { MAX_LINE } from '../../engine/operation/mail-fields.ts';
import { identity } from '../../operations/email/message.ts';
import { callSender } from '../../operations/email/send.ts';
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

interface ShownEvent {
  readonly event: NotifiedEvent;
  readonly ensemble: string;
  readonly timestamp: string;
  readonly data: JsonObject;
}

const GREEN = '#15803d';
const RED = '#b91c1c';
const BLUE = '#1d4ed8';
const COLOURS: Partial<Record<NotifiedEvent, string>> = {
  'execution.completed': GREEN,
  'execution.failed': RED,
  'execution.timeout': RED,
};

/** More than this is cut: mail programs cut long mails themselves. The text part has all of it. */
const MAX_DATA = 20_000;

// Mail programs know tables and styles of elements, and little else.
function toEventPage({ event, ensemble, timestamp, data }: ShownEvent): string {
  const colour = COLOURS[event] ?? BLUE;
  const font = 'font-family:Arial,Helvetica,sans-serif';
  const rows = Object.entries({ ensemble, ...factsOf(data), time: timestamp }).map(
    ([name, value]) =>
      `<tr><td style="padding:4px 16px 4px 0;color:#475569;vertical-align:top">${escapeHtml(name)}</td><td style="padding:4px 0;word-break:break-word">${escapeHtml(value)}</td></tr>`,
  );
  const json = JSON.stringify(data, undefined, 2);
  const shown = json.length > MAX_DATA ? `${json.slice(0, MAX_DATA)}\n...` : json;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(event)}</title></head>
<body style="margin:0;padding:24px;background:#f1f5f9;color:#0f172a;${font};font-size:15px">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="max-width:640px;margin:0 auto;background:#ffffff;border:1px solid #e2e8f0">
<tr><td style="padding:16px 24px;background:${colour};color:#ffffff;font-size:18px;font-weight:bold;${font}">${escapeHtml(event)}</td></tr>
<tr><td style="padding:16px 24px;${font}"><table role="presentation" cellpadding="0" cellspacing="0" style="font-size:15px">${rows.join('')}</table></td></tr>
<tr><td style="padding:0 24px 24px"><pre style="margin:0;padding:12px;background:#f8fafc;border:1px solid #e2e8f0;font-size:13px;white-space:pre-wrap;word-break:break-word">${escapeHtml(shown)}</pre></td></tr>
</table>
</body></html>
`;
}

/** What a reader looks for first. */
function factsOf({ executionId, id, agent, status, duration, error }: JsonObject): Readonly<Record<string, string>> {
  const message = (error as { readonly message?: unknown } | undefined)?.message;
  return {
    execution: String(executionId ?? id ?? ''),
    ...(typeof agent === 'string' && { agent }),
    ...(typeof status === 'string' && { status }),
    ...(typeof message === 'string' && { error: message }),
    ...(typeof duration === 'number' && { duration: `${duration} ms` }),
  };
}
