/** The mail port: hands one message over for sending. */

import type { JsonObject } from '../json.ts';

export interface MailAttachment {
  readonly filename: string;
  readonly content: string;
  readonly contentType: string;
  /** How `content` is written; default `utf8`. */
  readonly encoding?: 'base64' | 'utf8';
}

export interface MailMessage {
  readonly from: string;
  readonly fromName?: string;
  readonly to: readonly string[];
  readonly cc?: readonly string[];
  readonly bcc?: readonly string[];
  readonly replyTo?: string;
  readonly subject: string;
  readonly text?: string;
  readonly html?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly attachments?: readonly MailAttachment[];
  readonly tags?: readonly string[];
  readonly metadata?: JsonObject;
}

export interface MailSender {
  /**
   * Resolves once the message is accepted for sending.
   * @throws OrchestratorError AGENT_FAILED; `retryable` says whether the same message may pass later
   */
  send(
    message: MailMessage,
    options?: { readonly idempotencyKey?: string; readonly signal?: AbortSignal },
  ): Promise<{ readonly messageId: string }>;
}
