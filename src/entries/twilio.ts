/**
 * The public names for text messages by Twilio.
 *
 * @module ensemble-orchestrator/twilio
 */

export { type TwilioOptions, twilioSms } from '../adapters/twilio/twilio-sms.ts';
export type { SmsMessage, SmsSender } from '../engine/operation/sms.port.ts';
