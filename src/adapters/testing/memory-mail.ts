/** A mail sender that keeps what it is given. */

import { OrchestratorError } from '../../engine/errors.ts';
import type { MailMessage, MailSender } from '../../engine/ports/mail.ts';

export interface MemoryMail extends MailSender {
  /** Accepted messages, oldest first. */
  readonly sent: readonly (MailMessage & { readonly messageId: string })[];
  /** Refuses the next `count` messages. @param options - default: may be tried again */
  failNext(message: string, options?: { readonly count?: number; readonly retryable?: boolean }): void;
}

/** Message ids are `mail-1`, `mail-2`, ...; a message with an idempotency key that was seen is accepted once. */
export function memoryMail(): MemoryMail {
  const sent: (MailMessage & { readonly messageId: string })[] = [];
  const byKey = new Map<string, string>();
  const failures: OrchestratorError[] = [];
  return {
    sent,
    failNext(message, { count = 1, retryable = true } = {}) {
      for (let i = 0; i < count; i++) failures.push(new OrchestratorError('AGENT_FAILED', message, { retryable }));
    },
    async send(message, { idempotencyKey, signal } = {}) {
      signal?.throwIfAborted();
      const failure = failures.shift();
      if (failure) throw failure;
      const seen = idempotencyKey === undefined ? undefined : byKey.get(idempotencyKey);
      if (seen !== undefined) return { messageId: seen };
      const messageId = `mail-${sent.length + 1}`;
      sent.push({ ...structuredClone(message), messageId });
      if (idempotencyKey !== undefined) byKey.set(idempotencyKey, messageId);
      return { messageId };
    },
  };
}
