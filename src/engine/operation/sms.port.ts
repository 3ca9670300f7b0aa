/** The SMS port: sends one text message. */

import type { MaybePromise } from '../base/maybe-promise.ts';
import type { SendOptions } from './mail.port.ts';

export interface SmsMessage {
  /** A phone number in E.164 form, such as `+48123456789`. */
  readonly to: string;
  /** A phone number in E.164 form, or a name that the provider knows. Undefined: the sender's own. */
  readonly from?: string;
  readonly body: string;
}

/** Sends one text message, once. Its errors are those of `MailSender`. */
export interface SmsSender {
  send(message: SmsMessage, options: Omit<SendOptions, 'settings'>): MaybePromise<{ readonly messageId: string }>;
}
