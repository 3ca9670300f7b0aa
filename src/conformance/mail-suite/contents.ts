/** Mail suite: subject, bodies, attachments and headers arrive as they were sent. */

import type { MailAttachment } from '../../engine/operation/mail.port.ts';
import { same } from '../http-suite/context.ts';
import { type DeclareMailCase, PLAIN, plainBody, type ReceivedMail } from './context.ts';

export function contentCases(it: DeclareMailCase): void {
  it('sends the text and the HTML of a mail, each as it is', async ({ deliver }) => {
    const mail = await deliver({ text: 'Dear Ada,\n\nhello.', html: '<p>Dear <b>Ada</b> &amp; Co</p>' });
    same(plainBody(mail.text), 'Dear Ada,\n\nhello.', 'text');
    same(plainBody(mail.html), '<p>Dear <b>Ada</b> &amp; Co</p>', 'html');
  });

  it('sends a mail that has text alone', async ({ deliver }) => {
    const { html, ...text } = PLAIN;
    const mail = await deliver(text);
    same(plainBody(mail.text), 'Hello Ada', 'text');
    same(mail.html || undefined, html, 'html');
  });

  it('sends a mail that has HTML alone', async ({ deliver }) => {
    const { text: _text, ...rest } = PLAIN;
    const mail = await deliver({ ...rest, text: undefined as never, html: '<p>Hello</p>' });
    same(plainBody(mail.html), '<p>Hello</p>', 'html');
  });

  it('keeps characters of every script in subject and bodies', async ({ deliver }) => {
    const text = 'Zażółć gęślą jaźń 日本語 שלום 👩‍🚀 ﷽';
    const mail = await deliver({ subject: `${text} ${text} ${text}`, text, html: `<p>${text}</p>` });
    same(mail.subject, `${text} ${text} ${text}`, 'subject');
    same(plainBody(mail.text), text, 'text');
    same(plainBody(mail.html), `<p>${text}</p>`, 'html');
  });

  it('keeps a long subject without blanks, and one with several blanks in a row', async ({ world, send }) => {
    const subjects = ['a  b   c', 'x'.repeat(300)];
    for (const subject of subjects) await send({ subject });
    const mails = await world.received();
    for (const [i, subject] of subjects.entries()) same(mails[i]?.subject, subject, 'subject');
  });

  it('keeps lines that a transport could misread: single dots, `From `, blanks at the end, 5,000 characters', async ({
    deliver,
  }) => {
    const text = ['.', '..', '.x', 'From here', 'x  ', '', 'QUIT', '=20', 'y'.repeat(5_000), '.', 'end'].join('\r\n');
    const mail = await deliver({ text, html: `<pre>${text}</pre>` });
    same(plainBody(mail.text), plainBody(text), 'text');
    same(plainBody(mail.html), plainBody(`<pre>${text}</pre>`), 'html');
  });

  it('sends attachments byte for byte, with their names and types', async ({ deliver }) => {
    const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 31) % 256);
    const attachments: readonly MailAttachment[] = [
      { filename: 'all bytes.bin', content: bytes, contentType: 'application/octet-stream' },
      { filename: 'Rechnung für Zoë.pdf', content: Uint8Array.of(37, 80, 68, 70), contentType: 'application/pdf' },
      { filename: 'empty.txt', content: new Uint8Array(), contentType: 'text/plain' },
    ];
    const mail = await deliver({ attachments, html: '<p>See the file</p>' });
    checkAttachments(mail, attachments);
    same(plainBody(mail.text), 'Hello Ada', 'text of the mail with attachments');
  });

  it('sends an attachment of 1 MB', async ({ deliver }) => {
    const content = Uint8Array.from({ length: 1_000_000 }, (_, i) => (i * 7) % 256);
    const attachments = [{ filename: 'a.bin', content, contentType: 'application/octet-stream' }];
    checkAttachments(await deliver({ attachments }), attachments);
  });

  it('sends custom headers', async ({ deliver }) => {
    const link = `<https://example.com/leave?token=${'t'.repeat(300)}>`;
    const mail = await deliver({
      headers: {
        'List-Unsubscribe': link,
        'X-Campaign': 'spring',
        'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      },
    });
    const headers = new Map(Object.entries(mail.headers).map(([name, value]) => [name.toLowerCase(), value]));
    same(headers.get('list-unsubscribe')?.replace(/\s/g, ''), link, 'List-Unsubscribe');
    same(headers.get('x-campaign'), 'spring', 'X-Campaign');
    same(headers.get('list-unsubscribe-post'), 'List-Unsubscribe=One-Click', 'List-Unsubscribe-Post');
  });

  it('returns an id, and sends the same Message-ID each time the same mail is sent', async ({ world, send }) => {
    const answers = [await send(), await send()];
    for (const { messageId } of answers) {
      same(typeof messageId, 'string', 'type of messageId');
      same(messageId !== '', true, 'whether messageId has characters');
    }
    for (const { messageId } of await world.received())
      if (messageId !== undefined) same(messageId, PLAIN.messageId, 'Message-ID');
  });
}

function checkAttachments({ attachments }: ReceivedMail, sent: readonly MailAttachment[]): void {
  same(attachments.length, sent.length, 'number of attachments');
  for (const [i, { filename, content, contentType }] of sent.entries()) {
    const got = attachments[i];
    same(got?.filename, filename, 'filename');
    same(got?.contentType.split(';')[0], contentType, `content type of ${filename}`);
    same(got?.content.length, content.length, `size of ${filename}`);
    same(got?.content.join() === content.join(), true, `whether ${filename} has the bytes that were sent`);
  }
}
