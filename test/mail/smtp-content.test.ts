/** Mail over SMTP arrives at a real server as it was sent, and nothing in it is read again. */

import { afterEach, describe, expect, it } from 'vitest';
import { smtpMail } from '../../src/entries/smtp.ts';
import { failureOf, mailOf, type SmtpPeer, sendOptions, smtpPeer } from './smtp-peer.ts';

let peer: SmtpPeer;

async function deliver(given: Parameters<typeof mailOf>[0]) {
  peer = await smtpPeer();
  const sender = smtpMail({ host: '127.0.0.1', port: peer.port });
  const answer = await sender.send(mailOf(given), sendOptions());
  await sender.close?.();
  const [mail] = await peer.received();
  if (!mail) throw new Error('the server received no mail');
  return { ...mail, answer, envelope: peer.raw[0] as SmtpPeer['raw'][number] };
}

afterEach(() => peer?.close());

const lines = (text: string | undefined) => text?.replace(/\r\n?/g, '\n').replace(/\n+$/, '');

describe('the content of a mail over SMTP', () => {
  it('has both bodies, names, Message-ID, date and custom headers', async () => {
    const mail = await deliver({
      from: { address: 'shop@example.com', name: 'Zażółć, "Shop" <evil@example.org>' },
      to: [{ address: 'ada@example.com', name: '山田太郎' }],
      cc: [{ address: 'c@example.com' }],
      replyTo: { address: 'support@example.com', name: 'Suppört' },
      subject: 'Zażółć gęślą 👩‍🚀 '.repeat(12).trim(),
      text: 'Zażółć',
      html: '<p>日本語 שלום</p>',
      headers: { 'List-Unsubscribe': `<https://example.com/?t=${'t'.repeat(300)}>`, 'X-Note': 'größer' },
    });
    expect(mail.from).toEqual({ address: 'shop@example.com', name: 'Zażółć, "Shop" <evil@example.org>' });
    expect(mail.to).toEqual([{ address: 'ada@example.com', name: '山田太郎' }]);
    expect(mail.cc).toEqual([{ address: 'c@example.com' }]);
    expect(mail.replyTo).toEqual({ address: 'support@example.com', name: 'Suppört' });
    expect(mail.subject).toBe('Zażółć gęślą 👩‍🚀 '.repeat(12).trim());
    expect([lines(mail.text), lines(mail.html)]).toEqual(['Zażółć', '<p>日本語 שלום</p>']);
    expect(mail.headers['list-unsubscribe']?.replace(/\s/g, '')).toBe(`<https://example.com/?t=${'t'.repeat(300)}>`);
    expect(mail.headers['x-note']).toBe('größer');
    expect(mail.answer.messageId).toBe('<0123456789abcdef@example.com>');
    expect(mail.messageId).toBe('<0123456789abcdef@example.com>');
    expect(mail.headers.date).toMatch(/^\w{3}, \d{2} \w{3} \d{4} /);
    expect(Math.max(...mail.raw.split('\r\n').map((line) => line.length))).toBeLessThanOrEqual(998);
  });

  it('goes to to, cc and bcc, each once, and shows no blind copy', async () => {
    const at = (name: string) => ({ address: `${name}@example.com` });
    const mail = await deliver({ to: [at('a'), at('b')], cc: [at('c'), at('a')], bcc: [at('hidden'), at('b')] });
    expect(mail.envelope.recipients).toEqual(['a', 'b', 'c', 'hidden'].map((name) => `${name}@example.com`));
    expect(mail.envelope.from).toBe('sender@example.com');
    expect(mail.raw).not.toContain('hidden');
    expect(mail.raw).not.toMatch(/^bcc/im);
  });

  it.each([
    ['dots, bare line feeds and carriage returns', '.\n..\r\n.x\r.\r\rQUIT\n.\r\n\r\n.\r\nafter\n'],
    ['lines of 5,000 characters, blanks at the end, `From ` and `=20`', `${'y'.repeat(5_000)}\nFrom x\nend  \n=20\n`],
    ['characters past ASCII in lines of 5,000', `${'ż'.repeat(5_000)}\n.\n`],
  ])('keeps %s in both bodies', async (_name, text) => {
    const mail = await deliver({ text, html: `<pre>${text}</pre>` });
    expect(lines(mail.text)).toBe(lines(text));
    expect(lines(mail.html)).toBe(lines(`<pre>${text}</pre>`));
    expect(peer.raw).toHaveLength(1);
  });

  it('keeps attachments byte for byte, with their names and types', async () => {
    const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 31) % 256);
    const text = new TextEncoder().encode('a\nb\r\nc\rd\r\n.\r\n');
    const message = new TextEncoder().encode(`Subject: ż\n\n${'x'.repeat(2_000)}\n.\n`);
    const attachments = [
      { filename: 'all bytes.bin', content: bytes, contentType: 'application/octet-stream' },
      { filename: 'Rechnung für Zoë; "1".pdf', content: bytes.subarray(5, 9), contentType: 'application/pdf' },
      { filename: `${'long-名-'.repeat(30)}.txt`, content: text, contentType: 'text/plain; charset=utf-8' },
      { filename: 'empty.csv', content: new Uint8Array(), contentType: 'text/csv' },
      { filename: 'page.html', content: text, contentType: 'text/html' },
    ];
    const mail = await deliver({ attachments });
    expect(lines(mail.text)).toBe('Hello Ada');
    expect(mail.attachments.map(({ filename }) => filename)).toEqual(attachments.map(({ filename }) => filename));
    for (const [i, { content, contentType }] of attachments.entries()) {
      expect(mail.attachments[i]?.contentType).toBe(contentType.split(';')[0]);
      expect(Buffer.from(mail.attachments[i]?.content ?? []).equals(content)).toBe(true);
    }
    const mails = await deliver({
      attachments: [{ filename: 'a.eml', content: message, contentType: 'message/rfc822' }],
    });
    expect(mails.raw).toContain(Buffer.from(message).toString('base64').slice(0, 60));
  });

  it('has tags and metadata as headers', async () => {
    const mail = await deliver({ tags: ['welcome', 'größe'], metadata: { order: 7, note: 'ż', list: ['a'] } });
    expect(mail.headers['x-tags']).toBe('welcome, größe');
    expect(JSON.parse(mail.headers['x-metadata'] ?? '')).toEqual({ order: 7, note: 'ż', list: ['a'] });
  });

  it('sends a name of a domain in ASCII, and refuses what SMTP can not carry before it connects', async () => {
    const mail = await deliver({ to: [{ address: 'ada@bücher.example' }] });
    expect(mail.raw).toContain('To: ada@xn--bcher-kva.example\r\n');
    const sender = smtpMail({ host: '127.0.0.1', port: peer.port });
    const bad = [
      { to: [{ address: 'zoë@example.com' }] },
      { to: [{ address: 'a b@example.com' }] },
      { to: [{ address: 'a>\r\nRCPT TO:<b@example.com' }] },
      { attachments: [{ filename: 'a', content: new Uint8Array(), contentType: 'multipart/mixed' }] },
      { metadata: { token: 'x'.repeat(900) } },
    ];
    for (const given of bad) {
      const error = await failureOf(sender.send(mailOf(given), sendOptions()));
      expect([error.code, error.retryable]).toEqual(['INVALID_INPUT', false]);
    }
    expect(peer.connections).toBe(1);
  });

  it('reads no file and no address that a body or an attachment names', async () => {
    const path = '/etc/hostname';
    const named = { path, href: `file://${path}`, raw: 'Subject: raw\r\n\r\nraw' };
    const content = new TextEncoder().encode('own');
    const mail = await deliver({
      html: `<img src="file://${path}">`,
      attachments: [{ filename: 'a.txt', content, contentType: 'text/plain', ...named }],
    });
    expect(Buffer.from(mail.attachments[0]?.content ?? []).toString()).toBe('own');
    expect(lines(mail.html)).toBe(`<img src="file://${path}">`);
  });
});
