/** What the SMTP sender reports when the mail server fails at each command. */

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { smtpMail } from '../../src/entries/smtp.ts';
import { type Fault, type ScriptedServer, type Stage, scriptedServer } from './scripted-server.ts';
import { failureOf, mailOf, sendOptions } from './smtp-peer.ts';

const PLAIN_EHLO = '250-here\r\n250 AUTH PLAIN';
const auth = { user: 'shop', pass: 'pass phrase' };
let server: ScriptedServer;
let closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing) await close();
  closing = [];
  await server?.close();
});

function open(options: Parameters<typeof smtpMail>[0] = {}) {
  const sender = smtpMail({ host: '127.0.0.1', port: server.port, auth, allowInsecureAuth: true, ...options });
  closing.push(() => sender.close?.());
  return sender;
}

async function failAt(
  stage: Stage,
  fault: Fault,
  options: { ehlo?: string; timeoutMs?: number; requireTLS?: boolean } = {},
) {
  const { ehlo, timeoutMs = 5_000, requireTLS = stage === 'STARTTLS' } = options;
  server = await scriptedServer({ [stage]: fault }, ehlo);
  const error = await failureOf(open({ requireTLS }).send(mailOf(), sendOptions({ timeoutMs })));
  expect(JSON.stringify([error.message, error.details])).not.toMatch(/pass phrase|cGFzcyBwaHJhc2U|c2hvcA/);
  return error;
}

const STAGES: readonly Stage[] = ['banner', 'EHLO', 'STARTTLS', 'AUTH', 'MAIL', 'RCPT', 'DATA', 'content'];

describe('a mail server that answers with an error', () => {
  it('to STARTTLS with a yes, but without TLS: nothing is sent, and nobody is told to turn `secure` off', async () => {
    const commands: string[] = [];
    const peer = createServer((socket) => {
      socket.on('error', () => {}).write('220 ready\r\n');
      socket.on('data', (data) => {
        const line = String(data).trim();
        if (/^\w+/.test(line)) commands.push(line);
        if (/^EHLO/.test(line)) socket.write('250-here\r\n250-STARTTLS\r\n250 AUTH PLAIN\r\n');
        else socket.write(/^STARTTLS/.test(line) ? '220 go ahead\r\n' : '500 what?\r\n');
      });
    }).listen(0);
    await once(peer, 'listening');
    const { port } = peer.address() as AddressInfo;
    const error = await failureOf(smtpMail({ host: '127.0.0.1', port, auth }).send(mailOf(), sendOptions()));
    peer.close();
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: false });
    expect(error.message).toMatch(/it does not begin TLS after STARTTLS/);
    expect(commands).toEqual([expect.stringMatching(/^EHLO/), 'STARTTLS']);
  });

  it.each(
    STAGES.flatMap(
      (stage) =>
        [
          [stage, undefined],
          [stage, PLAIN_EHLO],
        ] as const,
    ),
  )('of the kind 4xx at %s fails the send, and a retry may pass (%j)', async (stage, ehlo) => {
    const error = await failAt(stage, '451 4.3.0 later, please', { ehlo });
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: true, details: { responseCode: 451 } });
    expect(error.details).not.toHaveProperty('outcome');
    expect(error.message).toContain('4.3.0 later, please');
    expect(server.mails).toHaveLength(stage === 'content' ? 1 : 0);
  });

  it.each([
    ['banner', '554 no service', 'AGENT_FAILED'],
    ['EHLO', '550 go away', 'AGENT_FAILED'],
    ['STARTTLS', '502 no TLS', 'AGENT_FAILED'],
    ['AUTH', '535 5.7.8 bad credentials', 'AGENT_FAILED'],
    ['AUTH', '504 no such mechanism', 'AGENT_FAILED'],
    ['MAIL', '530 5.7.0 log in first', 'AGENT_FAILED'],
    ['MAIL', '550 5.7.1 this address may not send', 'AGENT_FAILED'],
    ['MAIL', '552 5.3.4 too large', 'INVALID_INPUT'],
    ['RCPT', '550 5.1.1 no such user', 'INVALID_INPUT'],
    ['RCPT', '530 5.7.0 log in first', 'AGENT_FAILED'],
    ['DATA', '554 no valid mail', 'INVALID_INPUT'],
    ['content', '554 5.7.1 this is spam', 'INVALID_INPUT'],
  ] as const)('at %s with %j fails the send for good as %s', async (stage, fault, code) => {
    const error = await failAt(stage, fault);
    const responseCode = Number(fault.slice(0, 3));
    expect(error).toMatchObject({ code, retryable: false, details: { responseCode } });
    expect(error.message).toContain(fault);
  });

  it.each(['banner', 'EHLO', 'AUTH', 'MAIL', 'RCPT', 'DATA', 'content'] as const)(
    'at %s with an answer that can not be read is the fault of the server, and not of the mail',
    async (stage) => {
      const error = await failAt(stage, 'what is this?');
      expect(error.code).toBe('AGENT_FAILED');
      expect(error.message).toContain(`127.0.0.1:${server.port}`);
    },
  );

  it('that is long, or has control characters, is cut and cleaned', async () => {
    const error = await failAt('content', `554 \u001b[31mred\u0007 ${'x'.repeat(10_000)}`);
    expect(error.message.length).toBeLessThan(600);
    expect(error.message).not.toMatch(/\p{Cc}/u);
  });

  it('that repeats the password is masked', async () => {
    const blob = Buffer.from('\0shop\0pass phrase').toString('base64');
    const error = await failAt('AUTH', `535 not ${blob}, pass phrase`);
    expect(error.message).toContain('535 not ***, ***');
  });
});

describe('a connection that breaks', () => {
  it.each(
    STAGES.filter((stage) => stage !== 'content').flatMap(
      (stage) =>
        [
          [stage, undefined],
          [stage, PLAIN_EHLO],
        ] as const,
    ),
  )('at %s fails the send, a retry may pass, and the mail was not sent (%j)', async (stage, ehlo) => {
    const error = await failAt(stage, 'lost', { ehlo });
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: true, details: { reason: 'connection' } });
    expect(error.details).not.toHaveProperty('outcome');
    expect(error.message).not.toContain('may have been sent');
  });

  it.each(['middle', 'content'] as const)('at the %s of the mail leaves open whether it was sent', async (stage) => {
    const error = await failAt(stage, 'lost');
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: true, details: { outcome: 'unknown' } });
    expect(error.message).toContain('the mail may have been sent');
  });

  it('because nothing listens fails the send, and a retry may pass', async () => {
    server = await scriptedServer({});
    await server.close();
    const error = await failureOf(open().send(mailOf(), sendOptions()));
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: true, details: { code: 'ECONNREFUSED' } });
  });

  it('because the name has no address fails the send', async () => {
    server = await scriptedServer({});
    const settings = { host: 'nowhere.invalid' };
    const error = await failureOf(open().send(mailOf(), sendOptions({ settings })));
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: true, details: { reason: 'connection' } });
    expect(error.message).toContain('nowhere.invalid');
  });
});

describe('a mail server that says nothing', () => {
  it.each([...STAGES.filter((stage) => stage !== 'content'), 'middle', 'content'] as const)(
    'at %s ends in TIMEOUT, and the connection is closed',
    async (stage) => {
      const error = await failAt(stage, 'silent', { timeoutMs: 150 });
      const isLate = stage === 'middle' || stage === 'content';
      expect(error).toMatchObject({ code: 'TIMEOUT', retryable: true, details: { timeoutMs: 150 } });
      expect((error.details as { outcome?: string }).outcome).toBe(isLate ? 'unknown' : undefined);
      for (let i = 0; i < 400 && server.open > 0; i++) await new Promise((resolve) => setTimeout(resolve, 10));
      expect(server.open).toBe(0);
    },
  );

  it('on an open connection does not block the next mail for ever', async () => {
    server = await scriptedServer({ RSET: 'silent' });
    const sender = open({ pool: { maxConnections: 1, idleMs: 600_000 } });
    await sender.send(mailOf(), sendOptions());
    expect(await failureOf(sender.send(mailOf(), sendOptions({ timeoutMs: 150 })))).toMatchObject({ code: 'TIMEOUT' });
    await sender.send(mailOf(), sendOptions());
    expect(server.mails).toHaveLength(2);
  });

  it('or never ends an answer is given up', async () => {
    const error = await failAt('EHLO', `250-${'x'.repeat(3_000_000)}`);
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: true });
  });
});

describe('a send that is stopped', () => {
  it.each(['banner', 'content'] as const)('at %s rejects with the reason, and closes the connection', async (stage) => {
    server = await scriptedServer({ [stage]: 'silent' });
    const controller = new AbortController();
    const reason = new Error('stopped');
    const sent = failureOf(open().send(mailOf(), sendOptions({ signal: controller.signal })));
    const reached = () => (stage === 'banner' ? server.open > 0 : server.mails.length > 0);
    for (let i = 0; i < 400 && !reached(); i++) await new Promise((resolve) => setTimeout(resolve, 10));
    controller.abort(reason);
    expect(await sent).toBe(reason);
    for (let i = 0; i < 400 && server.open > 0; i++) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(server.open).toBe(0);
  });

  it('before it began opens no connection', async () => {
    server = await scriptedServer({});
    const signal = AbortSignal.abort(new Error('stopped'));
    expect(await failureOf(open().send(mailOf(), sendOptions({ signal })))).toBe(signal.reason);
    expect(server.commands).toEqual([]);
  });

  it('while it waits for a connection leaves the queue', async () => {
    server = await scriptedServer({ content: 'silent' });
    const sender = open({ pool: { maxConnections: 1 } });
    const first = failureOf(sender.send(mailOf(), sendOptions({ timeoutMs: 500 })));
    const second = await failureOf(sender.send(mailOf(), sendOptions({ timeoutMs: 100 })));
    expect(second).toMatchObject({ code: 'TIMEOUT', details: { timeoutMs: 100 } });
    expect(second.message).toContain('a free connection');
    expect(second.details).not.toHaveProperty('outcome');
    await first;
    expect(server.mails).toHaveLength(1);
  });
});

describe('recipients of whom the server refuses some', () => {
  const to = ['a', 'b', 'c'].map((name) => ({ address: `${name}@example.com` }));

  it.each([[undefined], [PLAIN_EHLO]])('fail the whole mail: nobody gets it (%j)', async (ehlo) => {
    server = await scriptedServer({ RCPT: ['250 ok', '550 5.1.1 no such user', '250 ok'] }, ehlo);
    const error = await failureOf(open().send(mailOf({ to }), sendOptions()));
    expect(error).toMatchObject({
      ...{ code: 'INVALID_INPUT', retryable: false },
      details: { responseCode: 550, rejected: ['b@example.com'] },
    });
    expect(error.message).toMatch(/refused the recipient b@example.com: 550 5.1.1 no such user; nobody got the mail/);
    expect(server.mails).toEqual([]);
  });

  it('may all get it later if the server refuses them only for now', async () => {
    server = await scriptedServer({ RCPT: ['250 ok', '450 4.2.1 mailbox busy', '452 too many'] });
    const error = await failureOf(open().send(mailOf({ to }), sendOptions()));
    expect(error).toMatchObject({
      ...{ code: 'AGENT_FAILED', retryable: true },
      details: { responseCode: 450, rejected: ['b@example.com', 'c@example.com'] },
    });
    expect(server.mails).toEqual([]);
  });
});

describe('the size of a mail', () => {
  it('is told to the server, and too large a mail is refused before it is sent', async () => {
    server = await scriptedServer({});
    const sender = open();
    await sender.send(mailOf(), sendOptions());
    const told = /^MAIL FROM:<sender@example.com> SIZE=(\d+)$/.exec(
      server.commands.find((line) => line.startsWith('MAIL')) ?? '',
    );
    expect(Math.abs(Number(told?.[1]) - (server.mails[0] as string).length)).toBeLessThan(10);
    const error = await failureOf(sender.send(mailOf({ text: 'x '.repeat(80_000) }), sendOptions()));
    expect(error).toMatchObject({ code: 'INVALID_INPUT', retryable: false });
    expect(error.message).toMatch(/takes no mail of this size/);
    expect(server.mails).toHaveLength(1);
  });
});
