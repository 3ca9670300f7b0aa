/** The mail suite passes for the sender in memory, and fails for senders that break its rules. */

import { describe, expect, it } from 'vitest';
import type { MailMessage } from '../../src/entries/adapter.ts';
import { type MailSuiteOptions, type MailWorld, mailSuite } from '../../src/entries/conformance.ts';
import { type MailSender, memoryMail } from '../../src/index.ts';

/** A sender that changes each message before it is kept. */
function worldThat(change: (message: MailMessage) => MailMessage): MailWorld {
  const kept = memoryMail();
  const sender: MailSender = { send: (message, options) => kept.send(change(message), options) };
  const received = () =>
    kept.messages.map((mail) => ({
      ...mail,
      recipients: [...mail.to, ...mail.cc, ...mail.bcc].map(({ address }) => address),
    }));
  return { sender, received };
}

const silent = (send: MailSender['send']) => () => ({ sender: { send }, received: () => [] });

mailSuite({
  name: 'memoryMail',
  create: () => worldThat((message) => message),
  test: { describe, it },
});

/** The titles of the cases that fail. */
async function failures(options: Pick<MailSuiteOptions, 'create' | 'createSilent'>): Promise<readonly string[]> {
  const cases: [string, () => Promise<void>][] = [];
  const test = {
    describe: (_name: string, body: () => void) => body(),
    it: (title: string, body: () => Promise<void>) => void cases.push([title, body]),
  };
  mailSuite({ name: 'broken', ...options, test });
  const failed: string[] = [];
  for (const [title, body] of cases) {
    const thrown = await body().then(
      () => undefined,
      (error: unknown) => error,
    );
    if (thrown) failed.push(title);
  }
  return failed;
}

it.each<[string, (message: MailMessage) => MailMessage, RegExp]>([
  ['drops the HTML', ({ html: _html, ...rest }) => ({ text: 'x', ...rest }), /HTML/],
  ['cuts the subject', (mail) => ({ ...mail, subject: mail.subject.slice(0, 70) }), /script|blanks/],
  ['shows blind copies', (mail) => ({ ...mail, cc: [...mail.cc, ...mail.bcc], bcc: [] }), /blind/],
  ['forgets blind copies', (mail) => ({ ...mail, bcc: [] }), /recipients/],
  [
    'changes bytes',
    (mail) => ({
      ...mail,
      attachments: mail.attachments.map((one) => ({ ...one, content: one.content.map((byte) => byte & 127) })),
    }),
    /byte for byte/,
  ],
  ['drops headers', (mail) => ({ ...mail, headers: {} }), /custom headers/],
  ['makes a Message-ID of its own', (mail) => ({ ...mail, messageId: '<other@example.com>' }), /Message-ID/],
  [
    'drops lines with a dot',
    (mail) => ({ ...mail, ...(mail.text !== undefined && { text: mail.text.replaceAll('\r\n.\r\n', '\r\n') }) }),
    /lines/,
  ],
  ['forgets where replies go', ({ replyTo: _replyTo, ...rest }) => rest, /replies/],
])('the suite finds a sender that %s', async (_what, change, title) => {
  const failed = await failures({ create: () => worldThat(change) });
  expect(failed.some((one) => title.test(one))).toBe(true);
});

it('the suite finds a sender that ignores the signal, and one without a timeout', async () => {
  const create = () => worldThat((message) => message);
  const ignores = await failures({ create, createSilent: silent(async () => ({ messageId: '<a@b>' })) });
  expect(ignores.filter((title) => /abort|TIMEOUT/.test(title))).toHaveLength(2);
});
