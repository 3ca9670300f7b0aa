/** The failures of an SMTP transaction: what the server or the connection did becomes an error of the mail port. */

import { messageOf, OrchestratorError } from '../../../engine/base/errors.ts';
import type { SmtpServer } from './smtp-settings.ts';

/** How far a send has come: it ends with what the server may have done. */
export interface Progress {
  /** What the sender waits for, for messages. */
  doing: string;
  /** Whether the content of the mail began to go out. From then on, the mail may have been sent. */
  hasBegun: boolean;
}

/** What nodemailer says of a failure. */
interface Report {
  readonly message: string;
  readonly code?: string;
  readonly originalCode?: string;
  readonly command?: string;
  readonly response?: string;
  readonly responseCode?: number;
  readonly recipient?: string;
  readonly rejectedErrors?: readonly Report[];
}

const MAX_TEXT = 300;
const CERTIFICATE = /^(?:CERT_|UNABLE_TO_|ERR_TLS_CERT|.*_CERT)|SELF_SIGNED/;
/** The server wants a user, other credentials, or an encrypted connection. */
const WANTS_LOGIN = [530, 534, 535, 538];

export function smtpTimeout(server: SmtpServer, { doing, hasBegun }: Progress, timeoutMs: number): OrchestratorError {
  const late = hasBegun ? '; the mail may have been sent' : '';
  return new OrchestratorError(
    'TIMEOUT',
    `mail server ${label(server)} did not end within ${timeoutMs} ms; the sender waited for ${doing}${late}`,
    { details: { timeoutMs, ...(hasBegun && { outcome: 'unknown' }) }, retryable: true },
  );
}

/** @param thrown - an `OrchestratorError` is returned as it is */
export function smtpFailure(server: SmtpServer, progress: Progress, thrown: unknown): OrchestratorError {
  if (thrown instanceof OrchestratorError) return thrown;
  const report = thrown as Report;
  const refusals = report.rejectedErrors ?? [];
  if (refusals.length > 0) return recipientFailure(server, refusals);
  const { responseCode, command = '', code = '' } = report;
  if (responseCode === undefined) return brokenFailure(server, progress, report);
  const said = `mail server ${label(server)} answered ${maskServerText(report.response ?? report.message, server)} at ${progress.doing}`;
  const details = { responseCode };
  // After the content, a code is a definite answer: the server has not taken the mail.
  if (responseCode < 500) return new OrchestratorError('AGENT_FAILED', said, { details, retryable: true });
  if (WANTS_LOGIN.includes(responseCode) || command.startsWith('AUTH')) {
    const remedy = server.auth ? 'check `auth`, and whether the server wants TLS' : 'the server wants `auth`';
    return new OrchestratorError('AGENT_FAILED', `${said}; ${remedy}`, { details });
  }
  if (code === 'ETLS')
    return new OrchestratorError(
      'AGENT_FAILED',
      `${said}; it offers no TLS (STARTTLS), which \`auth\` and \`requireTLS\` need; for a test server on the same computer, smtpMail takes \`allowInsecureAuth: true\``,
      {
        details,
      },
    );
  const isMessage = code === 'EMESSAGE' || command === 'DATA' || (command === 'MAIL FROM' && responseCode === 552);
  return new OrchestratorError(isMessage ? 'INVALID_INPUT' : 'AGENT_FAILED', said, { details });
}

/** One refused recipient ends the whole mail before its content goes out, so a repeated mail reaches nobody twice. */
export function recipientFailure(server: SmtpServer, refusals: readonly Report[]): OrchestratorError {
  const worst = refusals.find(({ responseCode = 0 }) => responseCode >= 500) ?? (refusals[0] as Report);
  const { responseCode = 0, response, message } = worst;
  const rejected = refusals.flatMap(({ recipient }) => recipient ?? []);
  const others = rejected.length > 1 ? ` and ${rejected.length - 1} more` : '';
  const said = `mail server ${label(server)} refused the recipient ${rejected[0]}${others}: ${maskServerText(response ?? message, server)}; nobody got the mail`;
  const isRefused = responseCode >= 500 && !WANTS_LOGIN.includes(responseCode);
  return new OrchestratorError(isRefused ? 'INVALID_INPUT' : 'AGENT_FAILED', said, {
    details: { responseCode, rejected },
    retryable: responseCode < 500,
  });
}

/** The server gave no answer that decides: the connection broke, or its beginning failed. */
function brokenFailure(server: SmtpServer, { doing, hasBegun }: Progress, report: Report): OrchestratorError {
  const { code, originalCode = '', command } = report;
  const text = maskServerText(messageOf(report), server);
  const fail = (why: string, retryable: boolean, details = {}) =>
    new OrchestratorError('AGENT_FAILED', `mail server ${label(server)}: ${why}`, { details, retryable });
  if (code === 'EMESSAGE' && command === 'MAIL FROM')
    return new OrchestratorError('INVALID_INPUT', `mail server ${label(server)} takes no mail of this size: ${text}`);
  // An address that can't be written. With an answer of the server, it is the answer that can't be read.
  if (code === 'EENVELOPE' && report.response === undefined)
    return new OrchestratorError('INVALID_INPUT', `smtpMail: ${text}`);
  if (code === 'EAUTH') return fail(text, false);
  if (CERTIFICATE.test(originalCode))
    return fail(
      `its certificate is not trusted (${text}); for a private authority, pass its certificate as \`ca\``,
      false,
      {
        reason: 'certificate',
        code: originalCode,
      },
    );
  if (/WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST/.test(originalCode))
    return fail(
      server.secure
        ? 'it does not begin with TLS on this port; set `secure` to false for port 587 or 25'
        : 'it does not begin TLS after STARTTLS; something between may answer for it',
      false,
    );
  const unknown = hasBegun ? '; the mail may have been sent' : '';
  return fail(`the connection failed at ${doing}: ${text}${unknown}`, true, {
    reason: 'connection',
    ...(originalCode !== '' && { code: originalCode }),
    ...(hasBegun && { outcome: 'unknown' }),
  });
}

function label({ host, port }: SmtpServer): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Masked before it is cut: a part of a secret would not be found. */
function maskServerText(text: string, { auth }: SmtpServer): string {
  let masked = text;
  if (auth) {
    const forms = [encode(`\0${auth.user}\0${auth.pass}`), encode(auth.pass), auth.pass];
    for (const form of forms) masked = masked.replaceAll(form, '***');
  }
  const line = masked.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trim();
  return line.length > MAX_TEXT ? `${line.slice(0, MAX_TEXT)}...` : line;
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64');
}
