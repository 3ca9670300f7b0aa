/** The connections of the SMTP sender: TLS, logins, how many there are, and how long they live. */

import { afterEach, describe, expect, it } from 'vitest';
import { smtpMail } from '../../src/entries/smtp.ts';
import { certificateFor } from './certificate.ts';
import { failureOf, mailOf, type SmtpPeer, sendOptions, smtpPeer } from './smtp-peer.ts';

const PASS = 'pass phrase';
const tls = certificateFor('localhost');
const auth = { user: 'shop', pass: PASS };
let peer: SmtpPeer | undefined;
let closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing) await close();
  closing = [];
  await peer?.close();
  peer = undefined;
});

function open(options: Parameters<typeof smtpMail>[0]) {
  const sender = smtpMail({ host: '127.0.0.1', port: peer?.port as number, ...options });
  closing.push(() => sender.close?.());
  return sender;
}

/** Waits for what the server notices a moment later. */
async function until(isTrue: () => boolean): Promise<void> {
  for (let i = 0; i < 400 && !isTrue(); i++) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(isTrue()).toBe(true);
}

describe('TLS and logins over SMTP', () => {
  it('sends no password without TLS, also with `requireTLS: false`, unless `allowInsecureAuth` says so', async () => {
    peer = await smtpPeer({ hideSTARTTLS: true, disabledCommands: ['STARTTLS'], allowInsecureAuth: true });
    const error = await failureOf(open({ auth, requireTLS: false }).send(mailOf(), sendOptions()));
    expect(error).toMatchObject({ code: 'AGENT_FAILED', message: expect.stringContaining('no TLS') });
    expect(peer.logins).toEqual([]);
    await open({ auth, requireTLS: false, allowInsecureAuth: true }).send(mailOf(), sendOptions());
    expect(peer.logins).toEqual(['shop']);
  });

  it.each([
    ['from the first byte', true],
    ['after STARTTLS', false],
  ])('logs in over TLS %s, if the given authority signed the certificate', async (_when, secure) => {
    peer = await smtpPeer({ ...tls, secure });
    const sender = open({ secure, auth, ca: tls.cert });
    await sender.send(mailOf(), sendOptions());
    expect(peer.logins).toEqual(['shop']);
    expect(peer.raw).toHaveLength(1);
  });

  it.each([
    ['no authority is given', {}, 'localhost'],
    ['the certificate is of another name', {}, 'mail.example.com'],
  ])('sends nothing, neither the password nor the mail, if %s', async (_what, given, name) => {
    const other = certificateFor(name);
    for (const secure of [true, false]) {
      peer = await smtpPeer({ ...other, secure });
      const ca = name === 'localhost' ? {} : { ca: other.cert };
      const sender = open({ host: 'localhost', secure, auth, ...ca, ...given });
      const error = await failureOf(sender.send(mailOf(), sendOptions()));
      expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: false });
      expect(error.message).toMatch(/certificate is not trusted .*`ca`/);
      expect([peer.logins, peer.raw]).toEqual([[], []]);
      await peer.close();
    }
  });

  it('checks certificates even if the environment says not to', async () => {
    peer = await smtpPeer({ ...tls, secure: true });
    const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      const error = await failureOf(open({ secure: true }).send(mailOf(), sendOptions()));
      expect(error.message).toMatch(/certificate is not trusted/);
    } finally {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
    }
  });

  it('never sends a password without TLS, unless `allowInsecureAuth` is set', async () => {
    peer = await smtpPeer({ allowInsecureAuth: true });
    const error = await failureOf(open({ auth }).send(mailOf(), sendOptions()));
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: false });
    expect(error.message).toMatch(/offers no TLS \(STARTTLS\).*`allowInsecureAuth: true`/);
    expect(peer.logins).toEqual([]);
    await open({ auth, allowInsecureAuth: true }).send(mailOf(), sendOptions());
    expect(peer.logins).toEqual(['shop']);
  });

  it('uses TLS without a login if the server offers it, and does not go on without it if it fails', async () => {
    peer = await smtpPeer({ ...tls });
    await open({ ca: tls.cert }).send(mailOf(), sendOptions());
    expect(peer.raw).toHaveLength(1);
    expect(await failureOf(open({}).send(mailOf(), sendOptions()))).toMatchObject({ code: 'AGENT_FAILED' });
    expect(peer.raw).toHaveLength(1);
  });

  it('fails for good with a wrong password, which is in no text of the error', async () => {
    peer = await smtpPeer({ allowInsecureAuth: true });
    const sender = open({ auth: { user: 'shop', pass: 'wrong secret' }, allowInsecureAuth: true });
    const error = await failureOf(sender.send(mailOf(), sendOptions()));
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: false, details: { responseCode: 535 } });
    expect(JSON.stringify([error.message, error.details])).not.toContain('wrong secret');
  });

  it('says what to set if TLS begins on the wrong port', async () => {
    peer = await smtpPeer();
    const error = await failureOf(open({ secure: true }).send(mailOf(), sendOptions()));
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable: false });
    expect(error.message).toMatch(/set `secure` to false/);
  });
});

describe('the settings of an agent', () => {
  it('win over the options', async () => {
    peer = await smtpPeer({ allowInsecureAuth: true });
    const sender = open({ host: 'nowhere.invalid', port: 1, allowInsecureAuth: true });
    const settings = { host: '127.0.0.1', port: peer.port, secure: false, auth: { user: 'agent', pass: PASS } };
    await sender.send(mailOf(), sendOptions({ settings }));
    expect(peer.logins).toEqual(['agent']);
  });

  it('with another host do not get the password of the options', async () => {
    peer = await smtpPeer({ allowInsecureAuth: true });
    const sender = open({ host: 'smtp.example.com', auth, allowInsecureAuth: true });
    await sender.send(mailOf(), sendOptions({ settings: { host: '127.0.0.1', port: peer.port } }));
    expect([peer.logins, peer.raw.length]).toEqual([[], 1]);
  });

  it.each([
    ['host', 'a\r\nb', /name or the IP address/],
    ['host', 'https://smtp.example.com', /name or the IP address/],
    ['host', '-oQ/tmp', /name or the IP address/],
    ['port', '25\r\n', /whole number from 1 to 65535/],
    ['port', 0, /whole number from 1 to 65535/],
    ['secure', 'no', /true \(port 465\) or false/],
    ['auth', { user: 'a' }, /\{ user, pass \}/],
    ['auth', { user: 'a', pass: 'b', accessUrl: 'http://x' }, /\{ user, pass \}/],
  ])('are refused at load and at the send: %s %j', async (key, value, message) => {
    const sender = smtpMail({ host: 'localhost' });
    expect(sender.check?.({ [key]: value })).toEqual([{ path: [key], message: expect.stringMatching(message) }]);
    const error = await failureOf(sender.send(mailOf(), sendOptions({ settings: { [key]: value } })));
    expect(error).toMatchObject({ code: 'INVALID_INPUT', retryable: false, message: expect.stringMatching(message) });
  });

  it('are accepted at load if they are right, or not known yet', () => {
    const { check } = smtpMail();
    for (const host of ['smtp.example.com', '::1', '192.0.2.1', '${env.SMTP_HOST}', 'host_1'])
      expect(check?.({ host, port: 587, secure: false, auth: { user: 'u', pass: '${env.PASS}' } })).toEqual([]);
  });

  it('must name a host if the options do not', async () => {
    const error = await failureOf(smtpMail().send(mailOf(), sendOptions()));
    expect(error).toMatchObject({ code: 'NOT_CONFIGURED', retryable: false });
    expect(error.message).toMatch(/`host` in the agent's config, or smtpMail\(\{ host \}\)/);
  });
});

describe('the options of smtpMail', () => {
  it.each([
    [{ host: 'a b' }, /`host` must be the name/],
    [{ host: 'a', port: 70_000 }, /`port` must be a whole number/],
    [{ host: 'a', name: 'a\r\nMAIL FROM:<>' }, /`name` must be the name of this host/],
    [{ auth }, /`auth` needs `host`/],
    [{ host: 'a', tls: { rejectUnauthorized: false } }, /`tls` is not an option of this version; .*\bca\b/],
    [{ host: 'a', ca: 'no certificate' }, /`ca` must be a certificate in PEM form/],
    [{ host: 'a', requireTLS: 'yes' }, /`requireTLS` must be true or false/],
    [{ host: 'a', pool: true }, /`pool` must be false, or/],
    [{ host: 'a', pool: { maxConnections: 0 } }, /`pool`: `maxConnections` must be a whole number from 1/],
    [{ host: 'a', pool: { size: 3 } }, /`pool`: `size` is not an option/],
  ])('are checked: %j', (options, message) => {
    expect(() => smtpMail(options as never)).toThrow(message);
  });

  it('name the texts that must be masked', () => {
    expect(smtpMail({ host: 'a', auth }).secrets).toEqual([PASS]);
    expect(smtpMail().secrets).toEqual([]);
  });
});

describe('the connections of smtpMail', () => {
  const mails = (count: number) =>
    Array.from({ length: count }, (_, i) =>
      mailOf({ to: [{ address: `user${i}@example.com` }], subject: `to user${i}` }),
    );

  it('are at most as many as `maxConnections`, and each mail arrives whole', async () => {
    peer = await smtpPeer();
    const sender = open({ pool: { maxConnections: 3 } });
    await Promise.all(mails(20).map((mail) => sender.send(mail, sendOptions())));
    expect(peer.connections).toBeLessThanOrEqual(3);
    const received = await peer.received();
    expect(received).toHaveLength(20);
    for (const mail of received) expect(`${mail.subject}@example.com`).toBe(`to ${mail.recipients.join()}`);
  });

  it('log in once for many mails, and end after `maxMessages`', async () => {
    peer = await smtpPeer({ allowInsecureAuth: true });
    const sender = open({ auth, allowInsecureAuth: true, pool: { maxMessages: 4 } });
    for (const mail of mails(8)) await sender.send(mail, sendOptions());
    expect([peer.connections, peer.logins.length, peer.raw.length]).toEqual([2, 2, 8]);
  });

  it('end `idleMs` after the last mail, and at once with `close`', async () => {
    peer = await smtpPeer();
    await open({ pool: { idleMs: 1 } }).send(mailOf(), sendOptions());
    await until(() => peer?.open === 0);
    const sender = open({ pool: { idleMs: 600_000 } });
    await sender.send(mailOf(), sendOptions());
    expect(peer.open).toBe(1);
    await sender.close?.();
    await until(() => peer?.open === 0);
  });

  it('are new for each mail with `pool: false`', async () => {
    peer = await smtpPeer();
    const sender = open({ pool: false });
    for (const mail of mails(3)) await sender.send(mail, sendOptions());
    expect(peer.connections).toBe(3);
    await until(() => peer?.open === 0);
  });

  it('are not shared by agents with different logins', async () => {
    peer = await smtpPeer({ allowInsecureAuth: true });
    const sender = open({ allowInsecureAuth: true });
    const as = (user: string) => sendOptions({ settings: { auth: { user, pass: PASS } } });
    await sender.send(mailOf(), as('one'));
    await sender.send(mailOf(), as('two'));
    await sender.send(mailOf(), as('one'));
    expect(peer.logins).toEqual(['one', 'two']);
  });

  it('to another server give their place: the limit counts open connections of all servers', async () => {
    peer = await smtpPeer({ allowInsecureAuth: true });
    const sender = open({ allowInsecureAuth: true, pool: { maxConnections: 1, idleMs: 600_000 } });
    for (const user of ['one', 'two', 'three'])
      await sender.send(mailOf(), sendOptions({ settings: { auth: { user, pass: PASS } } }));
    expect(peer.logins).toEqual(['one', 'two', 'three']);
    await until(() => peer?.open === 1);
  });

  it('that the server closed in the meantime are replaced, and the mail arrives once', async () => {
    peer = await smtpPeer();
    const sender = open({ pool: { idleMs: 600_000 } });
    await sender.send(mailOf(), sendOptions());
    peer.drop();
    await until(() => peer?.open === 0);
    await sender.send(mailOf(), sendOptions());
    expect([peer.connections, peer.raw.length]).toEqual([2, 2]);
  });
});
