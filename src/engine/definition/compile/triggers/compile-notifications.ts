/** Compiles the notifications of an ensemble, and checks what the forms can't check: addresses, secrets, subjects and mail senders. */

import { toMs } from '../../../base/time/duration.ts';
import { oneOf, quoted } from '../../../base/wording.ts';
import type { NotifiedEvent } from '../../../delivery/delivery.ts';
import {
  DEFAULT_RETRIES,
  DEFAULT_TIMEOUT_MS,
  type EmailTarget,
  emailReceiver,
  MAX_TIMEOUT_MS,
  type NotificationTarget,
  type SubjectFields,
  type WebhookTarget,
  webhookReceiver,
} from '../../../delivery/notification.ts';
import type { EmailNotification, NotificationDefinition, WebhookNotification } from '../../../ensemble/ensemble.ts';
import { type Address, readAddress } from '../../../operation/mail-fields.ts';
import { keyOf } from '../../../signing/signature-schemes.ts';
import type { Path } from '../../source/problem.ts';
import { compileSecrets } from '../config/compile-secrets.ts';
import { compileSetting, isAssumed, type LaterNames, readSetting } from '../config/setting-text.ts';
import type { FlowContext } from '../resolve-agent.ts';

/** What the compiler of notifications needs of its caller. */
export type NotificationContext = Pick<FlowContext, 'host' | 'report' | 'dropped'>;

const DEFAULT_SUBJECT = '${event}: ${ensemble.name}';

/**
 * @returns each notification at its index. Undefined for one with a problem, or whose settings are not known: an editor and `validate` know
 *   no variables
 */
export function compileNotifications(
  notifications: readonly NotificationDefinition[] = [],
  context: NotificationContext,
): readonly (NotificationTarget | undefined)[] {
  return notifications.map((notification, i) => {
    const path: Path = ['notifications', i];
    return notification.type === 'webhook'
      ? compileWebhook(notification, path, context)
      : compileEmail(notification, path, context);
  });
}

function compileWebhook(
  notification: WebhookNotification,
  path: Path,
  context: NotificationContext,
): WebhookTarget | undefined {
  const { retries = DEFAULT_RETRIES, timeout, standard = false, secret } = notification;
  const rules = { emptiness: 'which can sign nothing', ...(standard && { problem: standardProblem }) };
  const secrets = compileSecrets(secret, [...path, 'secret'], context, rules);
  if (standard && secret === undefined)
    context.report({ path, message: '`standard: true` needs a `secret`, because its headers are signed' });
  const timeoutMs = timeout === undefined ? DEFAULT_TIMEOUT_MS : toMs(timeout);
  if (timeoutMs > MAX_TIMEOUT_MS || timeoutMs < 1)
    context.report({ path: [...path, 'timeout'], message: 'must be at least 1ms and at most 30s' });
  const url = compileUrl(notification.url, [...path, 'url'], context);
  if (url === undefined || secrets.length < [secret ?? []].flat().length) return undefined;
  const events = new Set(notification.events as readonly NotifiedEvent[]);
  return { type: 'webhook', events, receiver: webhookReceiver(url), url, secrets, retries, timeoutMs, standard };
}

function standardProblem(secret: string): string | undefined {
  if (keyOf('standard', secret) !== undefined) return undefined;
  return 'must be a secret in base64, such as `whsec_...`, for `standard: true`';
}

function compileUrl(text: string, path: Path, context: NotificationContext): string | undefined {
  if (context.dropped(path)) return undefined;
  const value = readSetting(text, 'a url', path, context);
  if (value === undefined || isAssumed(value)) return undefined;
  const url = URL.canParse(String(value)) ? new URL(String(value)) : undefined;
  const report = (message: string) => {
    context.report({ path, message });
    return undefined;
  };
  if (!/^https?:\/\/[^\s/]/i.test(String(value)) || !url)
    return report(
      `must be a URL that begins with \`https://\` or \`http://\`${text.includes('${') ? ', also with the values of its variables' : ''}`,
    );
  if (url.username !== '' || url.password !== '')
    return report('must have no user name and no password; use `secret`, so that the receiver can check who calls');
  return url.href;
}

function compileEmail(
  { to, from, subject = DEFAULT_SUBJECT, events, provider: given }: EmailNotification,
  path: Path,
  context: NotificationContext,
): EmailTarget | undefined {
  const sender = compileAddress(from, [...path, 'from'], context);
  const recipients = to.map((address, n) => compileAddress(address, [...path, 'to', n], context));
  const toSubject = compileSubject(subject, [...path, 'subject'], context);
  const provider = compileProvider(given, path, context);
  if (sender === undefined || !toSubject || provider === undefined) return undefined;
  const known = recipients.filter((address) => address !== undefined);
  if (known.length < recipients.length) return undefined;
  return {
    ...{ type: 'email', events: new Set(events as readonly NotifiedEvent[]), receiver: emailReceiver(provider) },
    ...{ to: known, from: sender, subject: toSubject, provider },
    ...{ retries: DEFAULT_RETRIES, timeoutMs: MAX_TIMEOUT_MS },
  };
}

function compileAddress(text: string, path: Path, context: NotificationContext): Address | undefined {
  if (context.dropped(path)) return undefined;
  const value = readSetting(text, 'an address', path, context);
  if (value === undefined || isAssumed(value)) return undefined;
  const { value: address } = readAddress(String(value));
  if (!address) context.report({ path, message: 'must be an e-mail address such as `ops@example.com`' });
  return address;
}

const SUBJECT_NAMES: LaterNames<SubjectFields> = {
  event: ({ event }) => event,
  'ensemble.name': ({ ensemble }) => ensemble,
  timestamp: ({ timestamp }) => timestamp,
};

/** Compiles a subject, which is filled in for each event. */
function compileSubject(
  text: string,
  path: Path,
  context: NotificationContext,
): ((fields: SubjectFields) => string) | undefined {
  const subject = compileSetting(text, 'a subject', path, context, SUBJECT_NAMES);
  return subject && ((fields) => String(subject.evaluate(fields) ?? ''));
}

/** The only mail sender of the host, unless the notification names one. */
function compileProvider(given: string | undefined, path: Path, context: NotificationContext): string | undefined {
  const { host, report } = context;
  const { mailSenders = [], lenient } = host;
  if (given !== undefined && mailSenders.includes(given)) return given;
  if (lenient) return undefined;
  if (mailSenders.length === 0) {
    const message =
      "needs a mail sender: pass createOrchestrator the option `mail`, such as `mail: { smtp: smtpMail({ host }) }`, with `smtpMail` from 'ensemble-orchestrator/smtp'";
    report({ path, message, notConfigured: true });
  } else if (given !== undefined) {
    const message = `there is no mail sender ${quoted(given)} (configured: ${mailSenders.map(quoted).join(', ')})`;
    report({ path: [...path, 'provider'], message, notConfigured: true });
  } else if (mailSenders.length > 1) {
    report({ path, message: `needs a \`provider\`: write ${oneOf(mailSenders)}` });
  } else return mailSenders[0];
  return undefined;
}
