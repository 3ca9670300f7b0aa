/** The mail port over SMTP, with the client and the MIME builder of the package `nodemailer`. */

import { Readable } from 'node:stream';
import type { MailMessage, MailSender, SendOptions } from '../../../engine/operation/mail.port.ts';
import { type BuiltMail, buildMail } from './build-mail.ts';
import { type Connection, type Connections, createConnection, smtpConnections } from './connections.ts';
import { loadNodemailer, type Nodemailer } from './load-nodemailer.ts';
import { type Progress, recipientFailure, smtpFailure, smtpTimeout } from './smtp-failure.ts';
import {
  checkOptions,
  checkSettings,
  SETTINGS,
  type SmtpMailOptions,
  type SmtpServer,
  serverOf,
} from './smtp-settings.ts';

// With a longer delay, a platform's timer fires at once. The client's own limits never end a call: `timeoutMs` does.
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Sends mail over SMTP. It needs the package `nodemailer`, which it loads with the first mail.
 *
 * The settings `host`, `port`, `secure` and `auth` of an agent's config win over the options. The certificate of the server is always
 * checked. User and password go only to the host that they belong to, and only over TLS.
 *
 * A mail goes to all of its recipients, or to nobody: if the server refuses one of them, the sender ends the transaction before the
 * content of the mail.
 *
 * @param options - see {@link SmtpMailOptions}
 * @throws TypeError for an invalid option
 * @example
 * ```ts
 * import { smtpMail } from 'ensemble-orchestrator/smtp';
 *
 * const mail = { smtp: smtpMail({ host: 'smtp.example.com', auth: { user: 'shop', pass: 'from the environment' } }) };
 * console.log(Object.keys(mail)); // [ 'smtp' ]
 * ```
 */
export function smtpMail(options: SmtpMailOptions = {}): MailSender {
  checkOptions(options);
  const connections = smtpConnections(options.pool);
  return Object.freeze({
    settings: SETTINGS,
    secrets: options.auth ? [options.auth.pass] : [],
    check: checkSettings,
    async send(message: MailMessage, send: SendOptions) {
      send.signal.throwIfAborted();
      const server = serverOf(options, send.settings);
      const nodemailer = await loadNodemailer();
      const mail = await buildMail(message, nodemailer);
      await sendOne({ options, server, nodemailer, connections, mail, send });
      return { messageId: message.messageId };
    },
    ready: async () => void (await loadNodemailer()),
    close: () => connections.close(),
  });
}

interface Task {
  readonly options: SmtpMailOptions;
  readonly server: SmtpServer;
  readonly nodemailer: Nodemailer;
  readonly connections: Connections;
  readonly mail: BuiltMail;
  readonly send: SendOptions;
}

/** Ends with the first of three: the end of the transaction, `timeoutMs`, and the caller's signal. */
async function sendOne(task: Task): Promise<void> {
  const { server, connections, send } = task;
  const { signal, timeoutMs } = send;
  const progress: Progress = { doing: 'a free connection', hasBegun: false };
  let isOver = false;
  let current: Connection | undefined;
  const onTake = (connection: Connection) => {
    current = connection;
  };
  await new Promise<void>((resolve, reject) => {
    const end = (settle: () => void) => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      settle();
    };
    const stop = (reason: () => unknown) =>
      end(() => {
        reject(reason());
        current?.client.close();
      });
    const onAbort = () => stop(() => signal.reason);
    const onTime = () => stop(() => smtpTimeout(server, progress, timeoutMs));
    const timer = setTimeout(onTime, Math.min(timeoutMs, MAX_TIMER_MS));
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    connections
      .use(server, {
        ...{ onTake, isOver: () => isOver },
        open: () => openConnection(task, progress, onTake),
        run: (connection) => transfer(task, progress, connection).then(() => end(resolve)),
      })
      .catch((thrown: unknown) => end(() => reject(smtpFailure(server, progress, thrown))));
  });
}

async function openConnection(
  { options, server, nodemailer }: Task,
  progress: Progress,
  onTake: (connection: Connection) => void,
): Promise<Connection> {
  const { ca, name } = options;
  const limits = ['connectionTimeout', 'greetingTimeout', 'socketTimeout', 'dnsTimeout'] as const;
  const client = new nodemailer.SmtpConnection({
    ...{ host: server.host, port: server.port, secure: server.secure, requireTLS: server.requireTls },
    ...(name !== undefined && { name }),
    ...Object.fromEntries(limits.map((limit) => [limit, MAX_TIMER_MS])),
    // Stated, so that no variable of the environment turns the check of certificates off.
    tls: { rejectUnauthorized: true, minVersion: 'TLSv1.2', ...(ca !== undefined && { ca: [ca].flat() }) },
  });
  const connection = createConnection(client);
  onTake(connection);
  try {
    progress.doing = server.secure ? 'the connection, TLS and the greeting' : 'the connection, the greeting and TLS';
    await connection.call((done) => client.connect(done));
    if (server.auth) {
      progress.doing = 'the login';
      if (!client.allowsAuth) {
        const why = 'the server offers no way to log in; leave `auth` out, or use its port for senders';
        throw Object.assign(new Error(why), { code: 'EAUTH' });
      }
      const { user, pass } = server.auth;
      await connection.call((done) => client.login({ user, credentials: { user, pass } }, done));
    }
    return connection;
  } catch (thrown) {
    client.close();
    throw thrown;
  }
}

type Refusals = Parameters<typeof recipientFailure>[1];

async function transfer({ server, mail }: Task, progress: Progress, connection: Connection): Promise<void> {
  const { client } = connection;
  const { from, recipients, bytes } = mail;
  // The client notes on the envelope which recipients the server refused.
  const envelope: { from: string; to: string[]; size: number; rejectedErrors?: Refusals } = {
    ...{ from, to: [...recipients], size: bytes.length },
  };
  progress.doing = 'the sender and the recipients of the mail';
  let isRefused = false;
  const content = new Readable({
    // The client reads the content only after the server has asked for it.
    read() {
      isRefused = (envelope.rejectedErrors ?? []).length > 0;
      // Without its last line, the server delivers nothing.
      if (isRefused) return client.close();
      progress.hasBegun = true;
      progress.doing = 'the content of the mail';
      this.push(bytes);
      this.push(null);
    },
  });
  try {
    const { rejectedErrors = [] } = await connection.call<{ rejectedErrors?: Refusals }>((done) =>
      client.send(envelope, content, done as never),
    );
    if (rejectedErrors.length > 0) throw recipientFailure(server, rejectedErrors);
  } catch (thrown) {
    if (isRefused) throw recipientFailure(server, envelope.rejectedErrors ?? []);
    throw thrown;
  }
}
