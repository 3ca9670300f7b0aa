/** A real SMTP server on loopback, and what it received, parsed back. */

import type { AddressInfo, Socket } from 'node:net';
import PostalMime, { type Address, decodeWords } from 'postal-mime';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import type { MailAddress, MailMessage, SendOptions } from '../../src/engine/operation/mail.port.ts';
import { fetchHttp } from '../../src/index.ts';

export interface SmtpPeer {
  readonly port: number;
  /** How many connections it had. */
  readonly connections: number;
  /** How many are open. */
  readonly open: number;
  /** How many of them logged in, and as whom. */
  readonly logins: readonly string[];
  readonly raw: readonly { readonly recipients: readonly string[]; readonly from: string; readonly text: string }[];
  received(): Promise<Awaited<ReturnType<typeof parseMail>>[]>;
  /** Breaks all connections. */
  drop(): void;
  close(): Promise<void>;
}

/** @param options - of the package smtp-server. Default: no TLS and no login */
export async function smtpPeer(options: SMTPServerOptions = {}): Promise<SmtpPeer> {
  const raw: { recipients: string[]; from: string; text: string }[] = [];
  const logins: string[] = [];
  let connections = 0;
  let open = 0;
  const server = new SMTPServer({
    ...{ authOptional: true, disabledCommands: options.key || options.secure ? [] : ['STARTTLS'] },
    ...{ closeTimeout: 100, disableReverseLookup: true },
    onAuth: ({ username, password }, _session, done) => {
      if (password !== 'pass phrase') return done(new Error('Invalid username or password'));
      logins.push(username ?? '');
      done(null, { user: username ?? '' });
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        raw.push({
          from: mailFrom ? mailFrom.address : '',
          recipients: rcptTo.map(({ address }) => address),
          text: Buffer.concat(chunks).toString('latin1'),
        });
        done();
      });
    },
    ...options,
    onConnect(session, done) {
      connections++;
      open++;
      if (options.onConnect) options.onConnect(session, done);
      else done();
    },
    onClose() {
      open--;
    },
  });
  server.on('error', () => {});
  const sockets = new Set<Socket>();
  server.server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  return {
    port: (server.server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    get open() {
      return open;
    },
    logins,
    raw,
    received: () => Promise.all(raw.map(({ text, recipients }) => parseMail(Buffer.from(text, 'latin1'), recipients))),
    drop() {
      for (const socket of sockets) socket.destroy();
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** A mail as the mail suite compares it. */
export async function parseMail(bytes: Uint8Array, recipients: readonly string[]) {
  const mail = await PostalMime.parse(bytes);
  const list = (given: Address[] = []): MailAddress[] =>
    given.map(({ address = '', name }) => ({ address, ...(name && { name }) }));
  return {
    recipients,
    from: list(mail.from ? [mail.from] : [])[0] as MailAddress,
    to: list(mail.to),
    cc: list(mail.cc),
    replyTo: list(mail.replyTo)[0],
    subject: mail.subject ?? '',
    text: mail.text,
    html: mail.html,
    attachments: mail.attachments.map(({ filename, mimeType, content }) => ({
      filename: filename ?? '',
      contentType: mimeType,
      content: typeof content === 'string' ? new TextEncoder().encode(content) : new Uint8Array(content),
    })),
    headers: Object.fromEntries(mail.headers.map(({ key, value }) => [key, decodeWords(value)])),
    messageId: mail.messageId,
    raw: Buffer.from(bytes).toString('latin1'),
  };
}

/** A short mail from `sender@example.com` to `ada@example.com`. */
export function mailOf(given: Partial<MailMessage> = {}): MailMessage {
  return {
    ...{ from: { address: 'sender@example.com' }, to: [{ address: 'ada@example.com' }], cc: [], bcc: [] },
    ...{ subject: 'Hello', text: 'Hello Ada', attachments: [], headers: {}, tags: [], metadata: {} },
    messageId: '<0123456789abcdef@example.com>',
    ...given,
  };
}

export function sendOptions(given: Partial<SendOptions> = {}): SendOptions {
  const http = fetchHttp({ allow: ['127.0.0.0/8'] });
  const signal = new AbortController().signal;
  return { settings: {}, http, idempotencyKey: 'key-1', timeoutMs: 10_000, signal, ...given };
}

/** What a promise rejected with. */
export function failureOf(promise: unknown): Promise<Record<string, unknown> & { readonly message: string }> {
  return Promise.resolve(promise).then(
    () => {
      throw new Error('expected a rejection');
    },
    (error) => error,
  );
}
