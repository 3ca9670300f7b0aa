/** A mail sender that keeps its mails in memory, for tests and for development. */

import type { JsonObject } from '../../engine/base/json/json.ts';
import type { MaybePromise } from '../../engine/base/maybe-promise.ts';
import { aFunction, readOptions } from '../../engine/base/read-options.ts';
import type { MailMessage, MailSender, SendOptions } from '../../engine/operation/mail.port.ts';

export interface MemoryMailOptions {
  /**
   * Called for each mail before it is kept. What it throws, or rejects with, is the failure of that send, and the mail is not kept. A
   * promise delays the send.
   */
  readonly onSend?: ((message: MailMessage, options: SendOptions) => MaybePromise<void>) | undefined;
}

/** A mail that was sent, with what it was sent with. */
export interface KeptMail extends MailMessage {
  readonly idempotencyKey: string;
  /** The settings of the agent's config, such as `apiKey`. */
  readonly settings: JsonObject;
}

export interface MemoryMail extends MailSender {
  /** The mails in the order in which they were sent. */
  readonly messages: readonly KeptMail[];
  /** Forgets all mails. */
  clear(): void;
}

/**
 * Creates a mail sender that sends nothing: it keeps its mails. It takes the settings of every provider of the specification, so it can
 * take the place of any of them.
 *
 * @param options - see {@link MemoryMailOptions}
 */
export function memoryMail(options: MemoryMailOptions = {}): MemoryMail {
  const { onSend } = readOptions('memoryMail', options, { onSend: aFunction });
  const messages: KeptMail[] = [];
  return {
    settings: ['apiKey', 'host', 'port', 'secure', 'auth'],
    messages,
    clear() {
      messages.length = 0;
    },
    async send(message, options) {
      const { signal, idempotencyKey, settings } = options;
      signal.throwIfAborted();
      await onSend?.(message, options);
      signal.throwIfAborted();
      messages.push({ ...message, idempotencyKey, settings });
      return { messageId: message.messageId };
    },
  };
}
