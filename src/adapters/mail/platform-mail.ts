/** A mail sender over the `send_email` binding of Cloudflare Workers. */

import { messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import { optional, readOptions } from '../../engine/base/read-options.ts';
import { underDeadline } from '../../engine/base/time/under-deadline.ts';
import type { MailAddress, MailMessage, MailSender, SendOptions } from '../../engine/operation/mail.port.ts';
import { mailHeaders } from './mail-headers.ts';

/** An address as the binding takes it. */
type PlatformAddress = string | { readonly email: string; readonly name: string };

/** A mail as the binding takes it. */
interface PlatformMessage {
  readonly from: PlatformAddress;
  readonly to: readonly PlatformAddress[];
  readonly cc?: readonly PlatformAddress[];
  readonly bcc?: readonly PlatformAddress[];
  readonly replyTo?: PlatformAddress;
  readonly subject: string;
  readonly text?: string;
  readonly html?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly attachments?: readonly {
    readonly filename: string;
    readonly type: string;
    readonly content: ArrayBuffer;
    readonly disposition: 'attachment';
  }[];
}

/** The part of a `send_email` binding that the sender uses. */
export interface PlatformMailBinding {
  // A method, so that bindings with their own types of messages fit.
  send(message: never): Promise<unknown>;
}

export interface PlatformMailOptions {
  /**
   * Who may receive mail: addresses such as `ada@example.com`, and domains such as `example.com`, without their subdomains. Default:
   * everybody to whom the binding sends.
   */
  readonly allow?: readonly string[] | undefined;
}

const NO_BINDING =
  'platformMail has no binding: add `send_email = [{ name = "EMAIL" }]` to the Wrangler configuration, and pass `env.EMAIL`';
/** What the platform says of itself or of the caller. Every other code is about the mail. */
const RETRYABLE = ['E_RATE_LIMIT_EXCEEDED', 'E_DAILY_LIMIT_EXCEEDED', 'E_INTERNAL_SERVER_ERROR', 'E_DELIVERY_FAILED'];
const CALLER = ['E_SENDER_NOT_VERIFIED', 'E_SENDER_DOMAIN_NOT_AVAILABLE'];
const MAX_TEXT = 300;

/**
 * Sends mail with the hosting platform: the `send_email` binding of Cloudflare Workers.
 *
 * @param binding - such as `env.EMAIL`. Without it, definitions that need the sender are refused with `NOT_CONFIGURED`
 * @param options - see {@link PlatformMailOptions}
 * @throws TypeError for an invalid binding or option
 * @example
 * ```ts
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { platformMail } from 'ensemble-orchestrator/workers';
 *
 * interface Env {
 *   readonly EMAIL: { send(message: unknown): Promise<{ messageId: string }> };
 * }
 *
 * export const open = (env: Env) =>
 *   createOrchestrator({ mail: { platform: platformMail(env.EMAIL, { allow: ['example.com'] }) } });
 * ```
 */
export function platformMail(binding: PlatformMailBinding | undefined, options: PlatformMailOptions = {}): MailSender {
  if (binding !== undefined && typeof binding?.send !== 'function')
    throw new TypeError('platformMail: the binding has no `send`; pass a `send_email` binding, such as env.EMAIL');
  readOptions('platformMail', options, { allow: optional(ALLOW_RULE, Array.isArray) });
  const allowed = options.allow?.map(allowedEntry);
  return Object.freeze({
    check: () => (binding ? [] : [{ path: ['provider'], message: NO_BINDING, notConfigured: true }]),
    async send(message: MailMessage, { timeoutMs, signal }: SendOptions) {
      signal.throwIfAborted();
      if (!binding) throw new OrchestratorError('NOT_CONFIGURED', NO_BINDING);
      const denied = [...message.to, ...message.cc, ...message.bcc].find(({ address }) => !isAllowed(address, allowed));
      if (denied) {
        const why = `platformMail may not send to ${denied.address}: neither the address nor its domain is in \`allow\``;
        throw new OrchestratorError('INVALID_INPUT', why, { details: { rejected: [denied.address] } });
      }
      const sent = toPlatformMessage(message);
      // The binding can't be stopped: after the deadline, nobody waits for it.
      const answer = await underDeadline({ timeoutMs, signal, late: () => tooLate(timeoutMs) }, async () => {
        try {
          return await binding.send(sent as never);
        } catch (thrown) {
          throw toFailure(thrown);
        }
      });
      const { messageId } = Object(answer) as { readonly messageId?: unknown };
      // The binding of older accounts answers nothing.
      return { messageId: typeof messageId === 'string' ? messageId : message.messageId };
    },
  });
}

const ALLOW_RULE = "a list of addresses and domains, such as 'ada@example.com' and 'example.com'";

/** @throws TypeError */
function allowedEntry(entry: unknown): string {
  const text = typeof entry === 'string' ? canonical(entry.replace(/^@/, '')) : undefined;
  if (text === undefined) throw new TypeError(`platformMail: \`allow\` must be ${ALLOW_RULE}`);
  return text;
}

function isAllowed(address: string, allowed: readonly string[] | undefined): boolean {
  if (!allowed) return true;
  const own = canonical(address);
  return own !== undefined && (allowed.includes(own) || allowed.includes(own.slice(own.lastIndexOf('@') + 1)));
}

/** An address or a domain in lower case, with the domain in ASCII. Undefined if it is neither. */
function canonical(text: string): string | undefined {
  const [, local = '', domain = ''] = /^(?:([^\s<>]+)@)?([^\s<>@/:?#\\]+)$/.exec(text) ?? [];
  if (!URL.canParse(`http://${domain}`)) return undefined;
  const { hostname } = new URL(`http://${domain}`);
  return `${local === '' ? '' : `${local.toLowerCase()}@`}${hostname}`;
}

function toPlatformMessage(message: MailMessage): PlatformMessage {
  const { from, to, cc, bcc, replyTo, subject, text, html, attachments } = message;
  const headers = mailHeaders(message);
  return {
    ...{ from: toPlatformAddress(from), to: to.map(toPlatformAddress), subject },
    ...(cc.length > 0 && { cc: cc.map(toPlatformAddress) }),
    ...(bcc.length > 0 && { bcc: bcc.map(toPlatformAddress) }),
    ...(replyTo && { replyTo: toPlatformAddress(replyTo) }),
    ...(text !== undefined && { text }),
    ...(html !== undefined && { html }),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(attachments.length > 0 && {
      attachments: attachments.map(({ filename, content, contentType }) => ({
        ...{ filename, type: contentType, content: new Uint8Array(content).buffer, disposition: 'attachment' as const },
      })),
    }),
  };
}

function toPlatformAddress({ address, name }: MailAddress): PlatformAddress {
  return name ? { email: address, name } : address;
}

function tooLate(timeoutMs: number): OrchestratorError {
  const message = `the mail platform did not answer within ${timeoutMs} ms; the mail may have been sent`;
  return new OrchestratorError('TIMEOUT', message, { details: { timeoutMs, outcome: 'unknown' }, retryable: true });
}

function toFailure(thrown: unknown): OrchestratorError {
  const { code } = Object(thrown) as { readonly code?: unknown };
  const text = messageOf(thrown);
  const said = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}...` : text;
  const fail = (kind: 'AGENT_FAILED' | 'INVALID_INPUT', retryable: boolean, details: object) =>
    new OrchestratorError(kind, `the mail platform refused the mail: ${said}`, { details: { ...details }, retryable });
  if (typeof code !== 'string' || !code.startsWith('E_')) {
    // A restricted binding says so without a code.
    if (/^email to .* not allowed/.test(text)) return fail('INVALID_INPUT', false, {});
    if (/^email from .* not allowed/.test(text)) return fail('AGENT_FAILED', false, {});
    return fail('AGENT_FAILED', true, { outcome: 'unknown' });
  }
  if (RETRYABLE.includes(code))
    return fail('AGENT_FAILED', true, {
      reason: code,
      ...(code === 'E_INTERNAL_SERVER_ERROR' && { outcome: 'unknown' }),
    });
  return fail(CALLER.includes(code) ? 'AGENT_FAILED' : 'INVALID_INPUT', false, { reason: code });
}
