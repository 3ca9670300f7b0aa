/** Loads the optional package `nodemailer` when a mail is sent for the first time. */

import { packageFailure } from '../../../engine/base/package-failure.ts';

/** The two parts of nodemailer that the sender uses: its SMTP client, and its builder of MIME messages. */
export interface Nodemailer {
  readonly SmtpConnection: typeof import('nodemailer/lib/smtp-connection').default;
  readonly MailComposer: typeof import('nodemailer/lib/mail-composer').default;
}

/** @throws NOT_CONFIGURED when the package can't be loaded */
export async function loadNodemailer(load: () => Promise<Nodemailer> = importParts): Promise<Nodemailer> {
  try {
    return await load();
  } catch (cause) {
    throw packageFailure(cause, { who: 'smtpMail', name: 'nodemailer', version: 'version 10.6 or later' });
  }
}

async function importParts(): Promise<Nodemailer> {
  const [connection, composer] = await Promise.all([
    import('nodemailer/lib/smtp-connection'),
    import('nodemailer/lib/mail-composer'),
  ]);
  return { SmtpConnection: connection.default, MailComposer: composer.default };
}
