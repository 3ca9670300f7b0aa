/** The options of the SMTP sender, the settings of an agent's config, and the rules of both. */

import { isIP } from 'node:net';
import { OrchestratorError } from '../../../engine/base/errors.ts';
import type { JsonObject } from '../../../engine/base/json/json.ts';
import {
  flag,
  type OptionCheck,
  type OptionChecks,
  optional,
  readOptions,
  wholeNumber,
} from '../../../engine/base/read-options.ts';
import type { ConfigIssue } from '../../../engine/operation/operation.port.ts';

/** The options of {@link smtpMail}. */
export interface SmtpMailOptions {
  /** The name or the address of the mail server, such as `smtp.example.com`. */
  readonly host?: string | undefined;
  /** Default 465 with `secure: true`, and 587 otherwise. */
  readonly port?: number | undefined;
  /** `true`: the connection begins with TLS (port 465). `false`: it is plain at first (port 587 or 25). Default: true for port 465 alone. */
  readonly secure?: boolean | undefined;
  /** User and password. They are sent only over TLS, and only to `host`. */
  readonly auth?: { readonly user: string; readonly pass: string };
  /**
   * Whether a plain connection must become one with TLS. Default false: TLS is used if the server offers it. With `auth` it must, whatever
   * is here, unless `allowInsecureAuth` is true.
   */
  readonly requireTLS?: boolean | undefined;
  /** Allows to send user and password over a connection without TLS, such as to a test server. Default false. */
  readonly allowInsecureAuth?: boolean | undefined;
  /** Certificates in PEM form of the authorities that may sign the server's certificate, instead of the system's. */
  readonly ca?: string | readonly string[] | undefined;
  /** The name of this host in `EHLO`. Default: the host's own name if it has a dot, else `[127.0.0.1]`. */
  readonly name?: string | undefined;
  /**
   * Connections that stay open for the next mail. `false`: each mail has its own. Default: at most 5 connections at the same time, each
   * for at most 100 mails, closed 3 s after the last one.
   */
  readonly pool?: false | SmtpPoolOptions | undefined;
}

/** How many connections an SMTP sender has, and how long they stay open. */
export interface SmtpPoolOptions {
  /** The largest number of connections at the same time. Further mails wait within their timeout. Default 5. */
  readonly maxConnections?: number | undefined;
  /** The largest number of mails of one connection. Default 100. */
  readonly maxMessages?: number | undefined;
  /** How long a connection stays open without a mail, in ms. Default 3,000. */
  readonly idleMs?: number | undefined;
}

/** One server, and how to speak to it. */
export interface SmtpServer {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  readonly auth: { readonly user: string; readonly pass: string } | undefined;
  readonly requireTls: boolean;
}

/** The keys of an agent's config that this sender takes. */
export const SETTINGS = ['host', 'port', 'secure', 'auth'] as const;

const LABELS =
  /^(?=.{1,253}\.?$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*\.?$/i;
const LITERAL = /^\[(?:[0-9a-f.:]|IPv6:)+\]$/i;

const RULES: Readonly<Record<(typeof SETTINGS)[number] | 'name', OptionCheck>> = {
  host: optional<string>(
    "the name or the IP address of a mail server, such as 'smtp.example.com', without a port and a scheme",
    (value) => typeof value === 'string' && (isIP(value) !== 0 || LABELS.test(value)),
  ),
  port: optional<number>(
    'a whole number from 1 to 65535, such as 587',
    (value) => Number.isInteger(value) && value >= 1 && value <= 65_535,
  ),
  secure: optional('true (port 465) or false (port 587 or 25)', (value) => typeof value === 'boolean'),
  auth: optional<Record<string, unknown> | null>(
    '{ user, pass }, two texts that are not empty, and nothing else',
    (value) => {
      const { user, pass, ...others } = value ?? {};
      const isPart = (text: unknown) => typeof text === 'string' && text !== '' && !text.includes('\0');
      return isPart(user) && isPart(pass) && Object.keys(others).length === 0;
    },
  ),
  name: optional<string>(
    "the name of this host, such as 'app.example.com', or an address such as '[192.0.2.1]'",
    (value) => typeof value === 'string' && (LABELS.test(value) || LITERAL.test(value)),
  ),
};

/** Texts with expressions are checked again when they are known. */
export function checkSettings(settings: JsonObject): readonly ConfigIssue[] {
  const problems = SETTINGS.filter((key) => !JSON.stringify(settings[key] ?? null).includes('${'))
    .map((key) => ({ path: [key], message: RULES[key](settings[key]) }))
    .filter((issue): issue is { path: (typeof SETTINGS)[number][]; message: string } => issue.message !== undefined);
  return problems.map(({ path, message }) => ({ path, message: `\`${path[0]}\` ${message}` }));
}

const CHECKS: OptionChecks<SmtpMailOptions> = {
  ...RULES,
  requireTLS: flag,
  allowInsecureAuth: flag,
  ca: optional<string | readonly string[]>('a certificate in PEM form, or a list of them', (given) =>
    [given].flat().every((one) => typeof one === 'string' && one.includes('-----BEGIN CERTIFICATE-----')),
  ),
  pool: optional<unknown>(
    'false, or { maxConnections?, maxMessages?, idleMs? }',
    (pool) => pool === false || (typeof pool === 'object' && pool !== null),
  ),
};
const MAX_INT = 2 ** 31 - 1;

/** @throws TypeError */
export function checkOptions(options: SmtpMailOptions): void {
  const { auth, host, pool } = readOptions('smtpMail', options, CHECKS);
  if (auth && host === undefined)
    throw new TypeError('smtpMail: `auth` needs `host`: user and password go only to the host that they belong to');
  if (!pool) return;
  const count = wholeNumber(1, MAX_INT);
  const checks = { maxConnections: count, maxMessages: count, idleMs: wholeNumber(0, MAX_INT) };
  readOptions('smtpMail: `pool`', pool, checks);
}

/**
 * The server of one send. The settings of the agent's config win. User and password of the options go to the host of the options alone: a
 * config with another host has to bring its own.
 *
 * @throws NOT_CONFIGURED without a host
 * @throws INVALID_INPUT for a setting that is not valid
 */
export function serverOf(options: SmtpMailOptions, settings: JsonObject): SmtpServer {
  for (const key of SETTINGS) {
    const problem = RULES[key](settings[key]);
    if (problem !== undefined)
      throw new OrchestratorError('INVALID_INPUT', `smtpMail: the setting \`${key}\` ${problem}`);
  }
  const given = settings as Pick<SmtpMailOptions, (typeof SETTINGS)[number]>;
  const host = given.host ?? options.host;
  if (host === undefined) {
    const message = "smtpMail has no server: give `host` in the agent's config, or smtpMail({ host })";
    throw new OrchestratorError('NOT_CONFIGURED', message);
  }
  const isOwn = host.toLowerCase() === options.host?.toLowerCase();
  const own: SmtpMailOptions = isOwn ? options : {};
  const port = given.port ?? own.port;
  const secure = given.secure ?? own.secure ?? port === 465;
  const auth = given.auth ?? own.auth;
  return {
    host,
    port: port ?? (secure ? 465 : 587),
    secure,
    auth: auth && { user: auth.user, pass: auth.pass },
    requireTls: !secure && (options.requireTLS === true || (auth !== undefined && options.allowInsecureAuth !== true)),
  };
}
