/** Mail suite: every recipient gets the mail, and nobody else does. */

import { same } from '../http-suite/context.ts';
import { addresses, type DeclareMailCase } from './context.ts';

const at = (name: string) => ({ address: `${name}@example.com` });

export function recipientCases(it: DeclareMailCase): void {
  it('sends one mail to all recipients, and shows to and cc', async ({ deliver }) => {
    const mail = await deliver({ to: [at('a'), at('b')], cc: [at('c')], bcc: [at('d'), at('e')] });
    const all = ['a', 'b', 'c', 'd', 'e'].map((name) => `${name}@example.com`);
    same([...mail.recipients].sort().join(), all.join(), 'recipients');
    same(addresses(mail.to), 'a@example.com,b@example.com', 'to');
    same(addresses(mail.cc), 'c@example.com', 'cc');
  });

  it('shows no blind copy in the mail', async ({ deliver }) => {
    const mail = await deliver({ bcc: [at('hidden')] });
    same(mail.recipients.includes('hidden@example.com'), true, 'whether the blind copy is delivered');
    const { recipients: _recipients, raw, ...shown } = mail;
    const isShown = JSON.stringify([shown.to, shown.cc, shown.headers]).includes('hidden@') || raw?.includes('hidden@');
    same(isShown ?? false, false, 'whether the blind copy is shown');
  });

  it('sends the names of sender and recipients, in every script', async ({ deliver }) => {
    const mail = await deliver({
      from: { ...at('sender'), name: 'Zażółć Shop' },
      to: [
        { ...at('ada'), name: 'Ada Lovelace' },
        { ...at('taro'), name: '山田太郎' },
      ],
    });
    same(mail.from.name, 'Zażółć Shop', 'name of the sender');
    same(mail.from.address, 'sender@example.com', 'address of the sender');
    same(mail.to.map(({ name }) => name).join(), 'Ada Lovelace,山田太郎', 'names of the recipients');
  });

  it('takes a name with commas, quotes and brackets as a name, and not as an address', async ({ deliver }) => {
    const name = 'Doe, Jane "JD" <evil@example.org>; x: (y) \\';
    const mail = await deliver({ from: { ...at('sender'), name }, to: [{ ...at('ada'), name }] });
    same(mail.recipients.join(), 'ada@example.com', 'recipients');
    same(mail.to[0]?.name, name, 'name of the recipient');
    same(mail.from.address, 'sender@example.com', 'address of the sender');
  });

  it('sends where replies go', async ({ deliver }) => {
    same((await deliver({ replyTo: at('support') })).replyTo?.address, 'support@example.com', 'replyTo');
  });

  it('keeps mails apart that are sent at the same time', async ({ world, send }) => {
    const names = Array.from({ length: 20 }, (_, i) => `user${i}`);
    const mails = names.map((name) => ({ to: [at(name)], subject: `to ${name}`, messageId: `<${name}@example.com>` }));
    await Promise.all(mails.map((mail, i) => send(mail, { idempotencyKey: `key-${i}` })));
    const received = await world.received();
    same(received.length, names.length, 'number of mails');
    for (const mail of received) same(`${mail.subject}@example.com`, `to ${mail.recipients.join()}`, 'subject');
  });
}
