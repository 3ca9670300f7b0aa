/** Turns a message of the mail port into the bytes and the envelope of one SMTP transaction. */

import { domainToASCII } from 'node:url';
import { OrchestratorError } from '../../../engine/base/errors.ts';
import type { MailAddress, MailMessage } from '../../../engine/operation/mail.port.ts';
import { mailHeaders } from '../mail-headers.ts';
import type { Nodemailer } from './load-nodemailer.ts';

export interface BuiltMail {
  readonly from: string;
  /** Everybody who receives the mail: to, cc and bcc, each once. */
  readonly recipients: readonly string[];
  readonly bytes: Buffer;
}

/**
 * The envelope comes from the addresses of the message, and never from its headers. The addresses of `bcc` are in the envelope alone. No
 * file and no URL is read.
 *
 * @throws INVALID_INPUT for what SMTP can't carry
 */
export async function buildMail(message: MailMessage, { MailComposer }: Nodemailer): Promise<BuiltMail> {
  const from = toAscii(message.from);
  const [to, cc, bcc] = [message.to, message.cc, message.bcc].map((list) => list.map(toAscii)) as [
    MailAddress[],
    MailAddress[],
    MailAddress[],
  ];
  for (const { filename, contentType } of message.attachments) {
    if (/^multipart\//i.test(contentType))
      throw invalidMail(
        `attachment ${JSON.stringify(filename)} has the type ${contentType}, which only a message can have`,
      );
  }
  const composer = new MailComposer({
    ...{ from: toSmtpAddress(from), to: to.map(toSmtpAddress), cc: cc.map(toSmtpAddress) },
    ...(message.replyTo && { replyTo: toSmtpAddress(toAscii(message.replyTo)) }),
    subject: message.subject,
    ...(message.text !== undefined && { text: message.text }),
    ...(message.html !== undefined && { html: message.html }),
    attachments: message.attachments.map(({ filename, content, contentType }) => ({
      ...{ filename, contentType, contentDisposition: 'attachment' },
      // Text is encoded like any other file: another encoding could change its line breaks.
      contentTransferEncoding: 'base64',
      content: Buffer.from(content.buffer, content.byteOffset, content.byteLength),
    })),
    headers: Object.entries(mailHeaders(message)).map(([key, value]) => ({ key, value })),
    messageId: message.messageId,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    from: from.address,
    recipients: [...new Set([...to, ...cc, ...bcc].map(({ address }) => address))],
    bytes: await composer.compile().build(),
  };
}

/** The domain in ASCII form. The part before the `@` must be ASCII, because few servers take others. */
function toAscii({ address, name }: MailAddress): MailAddress {
  const at = address.lastIndexOf('@');
  const [local, domain] = [address.slice(0, at), address.slice(at + 1)];
  const ascii = /^\[[0-9a-z.:]+\]$/i.test(domain) ? domain : domainToASCII(domain);
  if (at < 1 || ascii === '' || !/^[!-;=?-~]+$/.test(local))
    throw invalidMail(
      `the address ${JSON.stringify(address.slice(0, 100))} can't be sent over SMTP: the part before the @ must be ASCII without spaces and angle brackets, and the part after it a domain`,
    );
  return { address: `${local}@${ascii}`, ...(name !== undefined && { name }) };
}

function toSmtpAddress({ address, name }: MailAddress): { readonly address: string; readonly name: string } {
  return { address, name: name ?? '' };
}

function invalidMail(why: string): OrchestratorError {
  return new OrchestratorError('INVALID_INPUT', `smtpMail: ${why}`);
}
