/** A mail sender over the HTTP API of Resend, and of services that speak the same format. */

import { toBase64 } from '../../engine/base/bytes/base64.ts';
import { isOrchestratorError, messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import { optional, readOptions } from '../../engine/base/read-options.ts';
import type { HttpResponse } from '../../engine/host/http.port.ts';
import { isRetryableStatus, retryAfterOf } from '../../engine/host/retry-after.ts';
import type { MailAddress, MailMessage, MailSender, SendOptions } from '../../engine/operation/mail.port.ts';

export interface ThirdpartyMailOptions {
  /** The key of the API. The setting `apiKey` of an agent wins. */
  readonly apiKey?: string | undefined;
  /** The address to which mails are posted. Default `https://api.resend.com/emails`. */
  readonly url?: string | undefined;
}

const MAX_ANSWER_BYTES = 64 * 1024;
const NO_KEY = "thirdpartyMail has no key: give `apiKey` in the agent's config, or thirdpartyMail({ apiKey })";

/**
 * Sends mail over the HTTP API of Resend. Each mail has an idempotency key, so a repeated mail is sent once.
 *
 * A tag becomes a tag with the value `true`, and an entry of `metadata` a tag with its value.
 *
 * @param options - see {@link ThirdpartyMailOptions}
 * @throws TypeError for an invalid option
 */
export function thirdpartyMail(options: ThirdpartyMailOptions = {}): MailSender {
  const { apiKey, url = 'https://api.resend.com/emails' } = readOptions('thirdpartyMail', options, {
    apiKey: optional('text that is not empty', isKey),
    url: optional<string>(
      'an http or https address',
      (text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol),
    ),
  });
  return Object.freeze({
    settings: ['apiKey'],
    secrets: apiKey === undefined ? [] : [apiKey],
    check(settings: JsonObject) {
      const given = settings.apiKey ?? apiKey;
      if (given === undefined) return [{ path: ['apiKey'], message: NO_KEY, notConfigured: true }];
      return isKey(given) ? [] : [{ path: ['apiKey'], message: '`apiKey` must be text that is not empty' }];
    },
    async send(message: MailMessage, send: SendOptions) {
      const key = send.settings.apiKey ?? apiKey;
      if (!isKey(key)) throw new OrchestratorError('NOT_CONFIGURED', NO_KEY);
      const headers = {
        ...{ authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        'idempotency-key': send.idempotencyKey,
      };
      const { timeoutMs, signal } = send;
      const body = JSON.stringify(toBody(message));
      const limits = { timeoutMs, signal, maxResponseBytes: MAX_ANSWER_BYTES, partialBody: true };
      const answer = await send.http.send({ method: 'POST', url, headers, body, ...limits }).catch((error: unknown) => {
        throw signal.aborted ? signal.reason : withOutcome(error);
      });
      return { messageId: readId(answer, key) };
    },
  });
}

function isKey(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function toBody(message: MailMessage): object {
  const { to, cc, bcc, replyTo, attachments, headers } = message;
  const tags = toTags(message);
  return {
    from: toAddressText(message.from),
    to: to.map(toAddressText),
    ...(cc.length > 0 && { cc: cc.map(toAddressText) }),
    ...(bcc.length > 0 && { bcc: bcc.map(toAddressText) }),
    ...(replyTo && { reply_to: toAddressText(replyTo) }),
    ...{ subject: message.subject, text: message.text, html: message.html },
    ...(attachments.length > 0 && {
      attachments: attachments.map(({ filename, content, contentType }) => ({
        ...{ filename, content: toBase64(content), content_type: contentType },
      })),
    }),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(tags.length > 0 && { tags }),
  };
}

/** A name is quoted: whatever it contains, it is read as a name. */
function toAddressText({ address, name }: MailAddress): string {
  return name ? `"${name.replace(/["\\]/g, '\\$&')}" <${address}>` : address;
}

/** @throws INVALID_INPUT for what a tag can't carry */
function toTags({ tags, metadata }: MailMessage): readonly { readonly name: string; readonly value: string }[] {
  const all = [
    ...tags.map((tag) => ['tags', tag, 'true'] as const),
    ...Object.entries(metadata).map((entry) => ['metadata', ...entry] as const),
  ];
  const names = new Set<string>();
  return all.map(([field, name, given]) => {
    const value = typeof given === 'object' ? '' : `${given}`;
    const problem = [name, value].some((text) => !/^[A-Za-z0-9_-]{1,256}$/.test(text))
      ? 'a name or a value that is not 1 to 256 letters, digits, `_` and `-`'
      : names.has(name) && 'a name that is there twice';
    if (problem)
      throw new OrchestratorError(
        'INVALID_INPUT',
        `thirdpartyMail: \`${field}\` has ${problem}: ${JSON.stringify(name).slice(0, 80)}`,
      );
    names.add(name);
    return { name, value };
  });
}

/** @throws OrchestratorError unless the provider has accepted the mail */
function readId({ status, headers, body }: HttpResponse, key: string): string {
  let json: { readonly id?: unknown; readonly name?: unknown; readonly message?: unknown } | null;
  try {
    json = JSON.parse(new TextDecoder().decode(body));
  } catch {
    json = null;
  }
  const isOk = status >= 200 && status <= 299;
  if (isOk && isKey(json?.id)) return json.id;
  // Masked before it is cut: a part of the key would not be found.
  const text = (value: unknown) => (typeof value === 'string' ? value.replaceAll(key, '***').slice(0, 300) : '');
  const reason = text(json?.name);
  const said = isOk ? ' without the id of a mail; check `url`' : text(json?.message) && `: ${text(json?.message)}`;
  const isMessage = status === 400 || status === 413 || status === 422;
  // 409: another call with the same key is in progress, or sent another mail.
  const retryable = isOk || (status === 409 ? reason !== 'invalid_idempotent_request' : isRetryableStatus(status));
  const details = {
    ...{ status, ...(reason && { reason }), ...retryAfterOf(headers) },
    ...((isOk || status >= 500) && { outcome: 'unknown' }),
  };
  throw new OrchestratorError(
    isMessage ? 'INVALID_INPUT' : 'AGENT_FAILED',
    `the mail provider answered ${status}${said}`,
    {
      details,
      retryable,
    },
  );
}

/** An exchange that broke may have sent the mail, unless it found nobody. */
function withOutcome(error: unknown): unknown {
  if (!isOrchestratorError(error) || (error.code !== 'TIMEOUT' && error.code !== 'AGENT_FAILED')) return error;
  const { code, retryable, details } = error as OrchestratorError;
  if (/^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN)$/.test(String(details.code))) return error;
  return new OrchestratorError(code, messageOf(error), {
    details: { ...details, outcome: 'unknown' },
    retryable,
    cause: error,
  });
}
