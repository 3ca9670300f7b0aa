/**
 * The public names for mail over SMTP.
 *
 * @module ensemble-orchestrator/smtp
 */

export { smtpMail } from '../adapters/mail/smtp/smtp-mail.ts';
export type { SmtpMailOptions, SmtpPoolOptions } from '../adapters/mail/smtp/smtp-settings.ts';
