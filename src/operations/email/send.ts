/** One call of a mail sender, with a timeout, whose failures say nothing that is secret. */

import { isOrchestratorError, messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { toMs } from '../../engine/base/time/duration.ts';
import { underDeadline } from '../../engine/base/time/under-deadline.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { HttpClient } from '../../engine/host/http.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { MailMessage, MailSender } from '../../engine/operation/mail.port.ts';
import type { OperationContext } from '../../engine/operation/operation.port.ts';
import { type EmailConfig, settingsOf } from './config.ts';

/** What all sends of an attempt share. */
export interface Sending {
  readonly context: OperationContext<EmailConfig>;
  readonly provider: string;
  readonly sender: MailSender;
  readonly http: HttpClient;
  readonly clock: Clock;
}

/** One call of a sender. */
export interface SenderCall extends Omit<Sending, 'context'> {
  readonly settings: JsonObject;
  readonly timeoutMs: number;
  /** Ends the call. */
  readonly signal?: AbortSignal;
  readonly logger: Pick<Logger, 'error'>;
  /** Different for each message. */
  readonly idempotencyKey: string;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const SECRET = /key|pass|secret|token/i;

/**
 * @param idempotencyKey - different for each message
 * @returns the id of the message
 * @throws as the port `MailSender`
 */
export function sendMail(
  { context, ...sending }: Sending,
  message: MailMessage,
  idempotencyKey: string,
): Promise<string> {
  const { config, signal, logger } = context;
  const timeoutMs = config.timeout ? toMs(config.timeout) : DEFAULT_TIMEOUT_MS;
  return callSender({ ...sending, settings: settingsOf(config), timeoutMs, signal, logger, idempotencyKey }, message);
}

/** @returns the id of the message @throws as the port `MailSender` */
export async function callSender(call: SenderCall, message: MailMessage): Promise<string> {
  const { provider, sender, http, clock, settings, timeoutMs, signal, logger, idempotencyKey } = call;
  const secrets = [...secretsIn(settings), ...(sender.secrets ?? [])];
  signal?.throwIfAborted();
  const late = new OrchestratorError('TIMEOUT', `mail sender \`${provider}\` did not answer within ${timeoutMs} ms`, {
    ...{ retryable: true, details: { timeoutMs, outcome: 'unknown' } },
  });
  const deadline = { timeoutMs, setTimer: clock.setTimer, late: () => late, ...(signal && { signal }) };
  try {
    // Also for senders that do not end a call in time.
    const answer = await underDeadline(deadline, (within) =>
      sender.send(message, { settings, http, idempotencyKey, timeoutMs, signal: within }),
    );
    return typeof answer?.messageId === 'string' ? withoutSecrets(answer.messageId, secrets) : message.messageId;
  } catch (thrown) {
    signal?.throwIfAborted();
    if (isOrchestratorError(thrown)) throw failureWithout(thrown, secrets);
    // The message of another sender may contain passwords. Only the log receives it.
    const cause = errorWithout(thrown, secrets);
    logger.error({ err: cause, provider }, 'a mail sender failed');
    const what = `mail sender \`${provider}\` failed; the log has its error`;
    const details = { outcome: 'unknown' };
    throw new OrchestratorError('AGENT_FAILED', what, { cause, retryable: true, details });
  }
}

/** The texts among the settings that nobody may read, such as `apiKey` and `auth.pass`. */
function secretsIn(settings: Json): readonly string[] {
  if (typeof settings !== 'object' || settings === null) return [];
  return Object.entries(settings as Readonly<Record<string, Json>>).flatMap(([key, value]) =>
    typeof value === 'string' && value !== '' && SECRET.test(key) ? [value] : secretsIn(value),
  );
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((masked, secret) => (secret === '' ? masked : masked.replaceAll(secret, '***')), text);
}

/** Another error without the secrets, if this one has any. */
function errorWithout(thrown: unknown, secrets: readonly string[]): unknown {
  const text = messageOf(thrown);
  const shown = thrown instanceof Error ? `${text} ${thrown.stack} ${messageOf(thrown.cause)}` : text;
  return withoutSecrets(shown, secrets) === shown ? thrown : new Error(withoutSecrets(text, secrets));
}

/** The failure without secrets in its message and its details. Its cause and its stack may repeat the message, so they go too. */
function failureWithout(error: OrchestratorError, secrets: readonly string[]): OrchestratorError {
  const { code, retryable } = error;
  const message = withoutSecrets(error.message, secrets);
  const facts = Object.entries(error.details).map(([key, fact]) => [key, factWithout(fact, secrets)] as const);
  if (message === error.message && facts.every(([key, fact]) => fact === error.details[key])) return error;
  return new OrchestratorError(code, message, { details: Object.fromEntries(facts), retryable });
}

/** A list or a map that has a secret is masked as a whole. */
function factWithout(fact: unknown, secrets: readonly string[]): unknown {
  if (typeof fact === 'string') return withoutSecrets(fact, secrets);
  if (typeof fact !== 'object' || fact === null) return fact;
  try {
    const written = JSON.stringify(fact);
    const isClean = secrets.every((secret) => secret === '' || !written.includes(JSON.stringify(secret).slice(1, -1)));
    return isClean ? fact : '***';
  } catch {
    return '***';
  }
}
