/** The sender over the `send_email` binding, with a binding that checks what the platform's documentation says. */

import { describe, expect, it } from 'vitest';
import { mailSuite, type ReceivedMail } from '../../src/entries/conformance.ts';
import { platformMail } from '../../src/entries/workers.ts';
import { failureOf, mailOf, sendOptions } from './smtp-peer.ts';

type Address = string | { readonly email: string; readonly name: string };
interface Sent {
  readonly from: Address;
  readonly to: readonly Address[];
  readonly cc?: readonly Address[];
  readonly bcc?: readonly Address[];
  readonly replyTo?: Address;
  readonly subject: string;
  readonly text?: string;
  readonly html?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly attachments?: readonly { filename: string; type: string; content: ArrayBuffer; disposition: string }[];
}

const FIELDS = ['from', 'to', 'cc', 'bcc', 'replyTo', 'subject', 'text', 'html', 'headers', 'attachments'];

/** @param answer - what happens instead of an answer with an id */
function fakeBinding(answer?: () => Promise<never>) {
  const sent: Sent[] = [];
  return {
    sent,
    async send(message: Sent) {
      const other = Object.keys(message).find((key) => !FIELDS.includes(key));
      if (other !== undefined) throw Object.assign(new Error(`unknown field ${other}`), { code: 'E_VALIDATION_ERROR' });
      // As a call to another process does: what can't be copied fails.
      sent.push(structuredClone(message));
      await answer?.();
      return { messageId: `<platform-${sent.length}@example.com>` };
    },
  };
}

function toReceived({ to, cc = [], bcc = [], ...mail }: Sent): ReceivedMail {
  const read = (given: Address) =>
    typeof given === 'string' ? { address: given } : { address: given.email, name: given.name };
  return {
    ...{
      from: read(mail.from),
      to: to.map(read),
      cc: cc.map(read),
      replyTo: mail.replyTo ? read(mail.replyTo) : undefined,
    },
    ...{ subject: mail.subject, text: mail.text, html: mail.html, headers: mail.headers ?? {} },
    recipients: [...to, ...cc, ...bcc].map((one) => read(one).address),
    attachments: (mail.attachments ?? []).map(({ filename, type: contentType, content }) => ({
      ...{ filename, contentType, content: new Uint8Array(content) },
    })),
  };
}

mailSuite({
  name: 'platformMail',
  create() {
    const binding = fakeBinding();
    return { sender: platformMail(binding), received: () => binding.sent.map(toReceived) };
  },
  createSilent() {
    return { sender: platformMail(fakeBinding(() => new Promise(() => {}))), received: () => [] };
  },
  test: { describe, it },
});

describe('platformMail', () => {
  it('passes exactly the fields that the binding knows, and an attachment without the bytes around it', async () => {
    const binding = fakeBinding();
    const content = Uint8Array.of(9, 1, 2, 9).subarray(1, 3);
    const given = mailOf({
      ...{ from: { address: 'shop@example.com', name: 'Shop' }, bcc: [{ address: 'b@example.com' }] },
      ...{ attachments: [{ filename: 'a.bin', content, contentType: 'application/octet-stream' }], tags: ['vip'] },
    });
    const answer = await platformMail(binding).send(given, sendOptions());
    expect(answer).toEqual({ messageId: '<platform-1@example.com>' });
    expect(binding.sent).toEqual([
      {
        ...{ from: { email: 'shop@example.com', name: 'Shop' }, to: ['ada@example.com'], bcc: ['b@example.com'] },
        ...{ subject: 'Hello', text: 'Hello Ada', headers: { 'X-Tags': 'vip' } },
        attachments: [
          {
            filename: 'a.bin',
            type: 'application/octet-stream',
            content: Uint8Array.of(1, 2).buffer,
            disposition: 'attachment',
          },
        ],
      },
    ]);
  });

  it.each([
    ['to', 'eve@example.org'],
    ['cc', 'ada@sub.example.com'],
    ['bcc', 'ada@exаmple.com'],
    ['bcc', 'ada@example.com.evil.org'],
    ['to', '"eve@example.com"@example.org'],
    ['to', 'bob@partner.example'],
  ])('sends nothing to %s that is not in `allow`: %s', async (field, address) => {
    const binding = fakeBinding();
    const sender = platformMail(binding, { allow: ['Example.com', 'ceo@partner.example', '@bücher.example'] });
    const error = await failureOf(sender.send(mailOf({ [field]: [{ address }] }), sendOptions()));
    expect(error).toMatchObject({ code: 'INVALID_INPUT', retryable: false, details: { rejected: [address] } });
    expect(binding.sent).toEqual([]);
  });

  it.each(['Ada@EXAMPLE.com', 'CEO@partner.example', 'a@bücher.example', 'a@xn--bcher-kva.example'])(
    'sends to %s, which is in `allow` in another spelling',
    async (address) => {
      const binding = fakeBinding();
      const sender = platformMail(binding, { allow: ['example.com', 'ceo@partner.example', 'bücher.example'] });
      await sender.send(mailOf({ to: [{ address }] }), sendOptions());
      expect(binding.sent).toHaveLength(1);
      await failureOf(platformMail(binding, { allow: [] }).send(mailOf({ to: [{ address }] }), sendOptions()));
      expect(binding.sent).toHaveLength(1);
    },
  );

  it.each([
    ['E_VALIDATION_ERROR', 'INVALID_INPUT', false, undefined],
    ['E_RECIPIENT_NOT_ALLOWED', 'INVALID_INPUT', false, undefined],
    ['E_RECIPIENT_SUPPRESSED', 'INVALID_INPUT', false, undefined],
    ['E_CONTENT_TOO_LARGE', 'INVALID_INPUT', false, undefined],
    ['E_HEADER_NOT_ALLOWED', 'INVALID_INPUT', false, undefined],
    ['E_SENDER_NOT_VERIFIED', 'AGENT_FAILED', false, undefined],
    ['E_SENDER_DOMAIN_NOT_AVAILABLE', 'AGENT_FAILED', false, undefined],
    ['E_RATE_LIMIT_EXCEEDED', 'AGENT_FAILED', true, undefined],
    ['E_DAILY_LIMIT_EXCEEDED', 'AGENT_FAILED', true, undefined],
    ['E_DELIVERY_FAILED', 'AGENT_FAILED', true, undefined],
    ['E_INTERNAL_SERVER_ERROR', 'AGENT_FAILED', true, 'unknown'],
  ])('turns %s of the platform into %s, retryable: %s', async (reason, code, retryable, outcome) => {
    const binding = fakeBinding(() => Promise.reject(Object.assign(new Error('why'.repeat(500)), { code: reason })));
    const error = await failureOf(platformMail(binding).send(mailOf(), sendOptions()));
    expect(error).toMatchObject({ code, retryable, details: { reason } });
    expect((error.details as { outcome?: string }).outcome).toBe(outcome);
    expect(error.message.length).toBeLessThan(400);
  });

  it.each([
    ['email to ada@example.com not allowed', 'INVALID_INPUT', false],
    ['email from sender@example.com not allowed', 'AGENT_FAILED', false],
    ['Network connection lost.', 'AGENT_FAILED', true],
  ])('understands a binding that throws %j without a code', async (text, code, retryable) => {
    const binding = fakeBinding(() => Promise.reject(new Error(text)));
    const error = await failureOf(platformMail(binding).send(mailOf(), sendOptions()));
    expect(error).toMatchObject({ code, retryable, message: expect.stringContaining(text) });
  });

  it('says that the mail may have been sent if the platform does not answer in time', async () => {
    const binding = fakeBinding(() => new Promise(() => {}));
    const error = await failureOf(platformMail(binding).send(mailOf(), sendOptions({ timeoutMs: 50 })));
    expect(error).toMatchObject({ code: 'TIMEOUT', retryable: true, details: { timeoutMs: 50, outcome: 'unknown' } });
  });

  it('refuses definitions and mails without a binding, and says how to add one', async () => {
    const sender = platformMail(undefined);
    const message = expect.stringMatching(/add `send_email = .* to the Wrangler configuration, and pass `env.EMAIL`/);
    expect(sender.check?.({})).toEqual([{ path: ['provider'], message, notConfigured: true }]);
    expect(await failureOf(sender.send(mailOf(), sendOptions()))).toMatchObject({ code: 'NOT_CONFIGURED', message });
    expect(platformMail(fakeBinding()).check?.({})).toEqual([]);
  });

  it('checks its options', () => {
    expect(() => platformMail({} as never)).toThrow(/the binding has no `send`/);
    expect(() => platformMail(fakeBinding(), { only: [] } as never)).toThrow(/`only` is not an option/);
    for (const allow of [[7], ['a b'], [''], ['http://example.com']])
      expect(() => platformMail(fakeBinding(), { allow } as never)).toThrow(/`allow` must be a list of addresses/);
  });
});
