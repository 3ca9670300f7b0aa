/** The checks of an `email` config when a definition is loaded. */

import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { oneOf, quoted } from '../../engine/base/wording.ts';
import type { MailSender } from '../../engine/operation/mail.port.ts';
import { lineProblem, mailHeaderProblem, readAddress } from '../../engine/operation/mail-fields.ts';
import type { ConfigIssue } from '../../engine/operation/operation.port.ts';
import { OWN_KEYS, settingsOf } from './config.ts';

export interface Senders {
  readonly byName: ReadonlyMap<string, MailSender>;
  /** The names of the host's own senders. A config without `provider` means one of them. */
  readonly own: readonly string[];
}

/** The name of the sender that a config means; undefined if it names none and the host has several, or none. */
export function senderName({ provider }: { readonly provider?: unknown }, senders: Senders): string | undefined {
  if (typeof provider === 'string') return provider;
  return senders.own.length === 1 ? senders.own[0] : undefined;
}

/** Problems of a config as written that the schema can't find. A value with an expression is checked after its evaluation. */
export function checkEmailConfig(config: JsonObject, senders: Senders): ConfigIssue[] {
  return [...senderIssues(config, senders), ...shapeIssues(config), ...fieldIssues(config)];
}

/** What to pass for the providers of the specification. */
const KNOWN_SENDERS: Readonly<Record<string, string>> = {
  smtp: "`mail: { smtp: smtpMail({ host, port, auth }) }`, with `smtpMail` from 'ensemble-orchestrator/smtp'",
  platform: "`mail: { platform: platformMail(env.EMAIL) }`, with `platformMail` from 'ensemble-orchestrator/workers'",
};

function senderIssues(config: JsonObject, senders: Senders): ConfigIssue[] {
  const names = senders.own;
  const { provider } = config;
  const name = senderName(config, senders);
  if (name === undefined) {
    if (names.length > 0) return [{ path: [], message: `needs a \`provider\`: write ${oneOf(names)}` }];
    const message = `needs a mail sender: pass createOrchestrator the option ${KNOWN_SENDERS.smtp}`;
    return [{ path: [], message, notConfigured: true }];
  }
  if (name.includes('${'))
    return [
      { path: ['provider'], message: 'must be a plain name: the sender is chosen when the definition is loaded' },
    ];
  const sender = senders.byName.get(name);
  if (sender) return settingIssues(config, name, sender);
  const known = Object.hasOwn(KNOWN_SENDERS, name) ? KNOWN_SENDERS[name] : undefined;
  const suggestion =
    known === undefined ? suggestName(name, [...senders.byName.keys(), ...Object.keys(KNOWN_SENDERS)]) : undefined;
  const remedy = known ?? `${quoted(`mail.${name}`)}`;
  const configured = names.length === 0 ? '' : ` (configured: ${names.map(quoted).join(', ')})`;
  const message = `there is no mail sender ${quoted(name)}${configured}; pass createOrchestrator the option ${remedy}`;
  const path = provider === undefined ? [] : ['provider'];
  return [{ path, message, notConfigured: true, ...(suggestion !== undefined && { suggestion }) }];
}

const TEMPLATE = 'must be a reference such as `template://welcome@production`, and takes the place of `html`';

function settingIssues(config: JsonObject, name: string, sender: MailSender): ConfigIssue[] {
  const taken = sender.settings ?? [];
  const issues = Object.keys(config).flatMap((key): ConfigIssue[] => {
    if (OWN_KEYS.includes(key) || taken.includes(key)) return [];
    if (key === 'template') return [{ path: [key], message: TEMPLATE }];
    const suggestion = key === 'text' ? 'body' : suggestName(key, [...OWN_KEYS, ...taken]);
    const settings = taken.length === 0 ? 'no settings' : `the settings ${oneOf(taken, 'and')}`;
    const message = `is not a key of \`email\`, and mail sender ${quoted(name)} takes ${settings}`;
    return [{ path: [key], message, ...(suggestion !== undefined && { suggestion }) }];
  });
  return issues.length > 0 ? issues : [...(sender.check?.(settingsOf(config)) ?? [])];
}

function shapeIssues(config: JsonObject): ConfigIssue[] {
  const given = (key: string) => config[key] !== undefined && config[key] !== null;
  const issues: ConfigIssue[] = [];
  const add = (path: string[], message: string) => issues.push({ path, message });
  if (!given('body') && !given('html')) add([], 'needs a text: write `body`, `html` or both');
  if (given('batch')) {
    for (const key of ['to', 'cc', 'bcc'])
      if (given(key))
        add([key], 'is set in addition to `batch`, in which each recipient gets a mail of its own; leave it out');
  } else if (!given('to')) add([], 'needs recipients: write `to`, or `batch` for a mail to each of many');
  if (given('rateLimit') && !given('batch')) add(['rateLimit'], 'is for a `batch`; a single mail has none');
  return issues;
}

const isWritten = (value: Json | undefined): value is string => typeof value === 'string' && !value.includes('${');
const isPlain = (value: Json | undefined): value is string => isWritten(value) && !value.includes('{{');

/** The only header that is a template. */
export const TEMPLATE_HEADER = 'List-Unsubscribe';

// A value that is not a template would be sent with its braces.
const NO_TEMPLATE = 'is not a template; write ${...} in place of {{ }}';
const isMistaken = (value: Json | undefined) => typeof value === 'string' && value.includes('{{');

function fieldIssues(config: JsonObject): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  const add = (path: (string | number)[], message: string | undefined) => {
    if (message !== undefined) issues.push({ path, message });
  };
  for (const key of ['from', 'to', 'cc', 'bcc', 'replyTo']) {
    const value = config[key];
    const list = Array.isArray(value) ? value : [value];
    list.forEach((one, i) => {
      const problem = isMistaken(one) ? NO_TEMPLATE : isWritten(one) ? readAddress(one).problem : undefined;
      add(Array.isArray(value) ? [key, i] : [key], problem);
    });
  }
  const { subject, fromName, attachments, headers } = config;
  if (isPlain(subject)) add(['subject'], lineProblem(subject));
  if (isMistaken(fromName)) add(['fromName'], NO_TEMPLATE);
  else if (isWritten(fromName)) add(['fromName'], lineProblem(fromName));
  if (Array.isArray(attachments)) {
    attachments.forEach((file: Json, i) => {
      if (isMistaken((file as JsonObject | null)?.filename)) add(['attachments', i, 'filename'], NO_TEMPLATE);
    });
  }
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) return issues;
  const seen = new Set<string>();
  for (const [name, value] of Object.entries(headers as JsonObject)) {
    const twice = seen.has(name.toLowerCase()) ? `header ${quoted(name)} is given twice` : undefined;
    const problem = mailHeaderProblem(name, isPlain(value) ? value : '') ?? twice;
    add(['headers', name], problem ?? (isMistaken(value) && name !== TEMPLATE_HEADER ? NO_TEMPLATE : undefined));
    seen.add(name.toLowerCase());
  }
  return issues;
}
