/** An SMS sender for tests: it keeps its messages. */

import type { MaybePromise } from '../engine/base/maybe-promise.ts';
import { aFunction, readOptions } from '../engine/base/read-options.ts';
import type { SmsMessage, SmsSender } from '../engine/operation/sms.port.ts';

export interface MemorySmsOptions {
  /** Called for each message before it is kept. What it throws is the failure of that send, and the message is not kept. */
  readonly onSend?: ((message: SmsMessage) => MaybePromise<void>) | undefined;
}

/** A message that was sent. */
export interface KeptSms extends SmsMessage {
  readonly idempotencyKey: string;
}

export interface MemorySms extends SmsSender {
  /** The messages in the order in which they were sent. */
  readonly messages: readonly KeptSms[];
}

/**
 * Creates an SMS sender that sends nothing: it keeps its messages. Their ids are `sms_1`, `sms_2` and so on.
 *
 * @param options - see {@link MemorySmsOptions}
 * @example
 * ```ts
 * import { createTestOrchestrator, memorySms } from 'ensemble-orchestrator/testing';
 *
 * const sms = memorySms();
 * const orchestrator = createTestOrchestrator({
 *   sms: { twilio: sms },
 *   ensembles: ['name: e\nflow:\n  - { agent: text, operation: sms, config: { to: "+48123456789", body: "Hi {{ name }}" } }'],
 * });
 * await orchestrator.execute('e', { name: 'Ada' });
 * console.log(sms.messages[0]?.body); // Hi Ada
 * ```
 */
export function memorySms(options: MemorySmsOptions = {}): MemorySms {
  const { onSend } = readOptions('memorySms', options, { onSend: aFunction });
  const messages: KeptSms[] = [];
  return {
    messages,
    async send(message, { idempotencyKey, signal }) {
      signal.throwIfAborted();
      await onSend?.(message);
      signal.throwIfAborted();
      messages.push({ ...message, idempotencyKey });
      return { messageId: `sms_${messages.length}` };
    },
  };
}
