/** The `email` operation over a real SMTP server, and without the package that it needs. */

import { afterEach, describe, expect, it } from 'vitest';
import { loadNodemailer } from '../../src/adapters/mail/smtp/load-nodemailer.ts';
import { smtpMail } from '../../src/entries/smtp.ts';
import { createOrchestrator } from '../../src/index.ts';
import { certificateFor } from './certificate.ts';
import { failureOf, type SmtpPeer, smtpPeer } from './smtp-peer.ts';

let peer: SmtpPeer | undefined;

afterEach(async () => {
  await peer?.close();
  peer = undefined;
});

const batch = `
name: news
inputs: { port: { type: number } }
flow:
  - agent: send
    operation: email
    config:
      host: localhost
      port: \${input.port}
      auth: { user: shop, pass: '\${env.SMTP_PASS}' }
      from: Shop <shop@example.com>
      subject: Hello {{ name }}
      body: Dear {{ name }}
      batch:
        recipients:
          - { email: a@example.com, name: Ada }
          - { email: b@example.com, name: Bob }
          - { email: c@example.com, name: Zoë }
outputs:
  sent: \${send.output.sent}
`;

describe('`operation: email` over SMTP', () => {
  it('sends a batch with the settings of the config, and `close` ends its connections', async () => {
    const tls = certificateFor('localhost');
    peer = await smtpPeer({ ...tls });
    const mail = { smtp: smtpMail({ ca: tls.cert, pool: { idleMs: 600_000 } }) };
    const orchestrator = createOrchestrator({ ensembles: [batch], mail, secrets: { SMTP_PASS: 'pass phrase' } });
    const run = await orchestrator.execute('news', { port: peer.port });
    expect(run.output).toEqual({ sent: 3 });
    const received = await peer.received();
    expect(received.map(({ recipients, subject }) => `${recipients.join()} ${subject}`).sort()).toEqual([
      'a@example.com Hello Ada',
      'b@example.com Hello Bob',
      'c@example.com Hello Zoë',
    ]);
    expect(new Set(peer.logins)).toEqual(new Set(['shop']));
    await orchestrator.close();
    for (let i = 0; i < 400 && peer.open > 0; i++) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(peer.open).toBe(0);
  });

  it.each([
    ["Cannot find package 'nodemailer'", /is not installed; `npm install nodemailer`/],
    ['Unexpected token', /can't be loaded \(Unexpected token\); install version 10.6 or later again/],
  ])('says what to install if the package can not be loaded: %s', async (text, message) => {
    const error = await failureOf(loadNodemailer(() => Promise.reject(new Error(text))));
    expect(error).toMatchObject({ code: 'NOT_CONFIGURED', retryable: false, details: { driver: 'nodemailer' } });
    expect(error.message).toMatch(message);
  });
});
