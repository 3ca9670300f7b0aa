/** Turns an evaluated `email` config into a checked message. What does not fit is refused with `INVALID_INPUT`. */

import { utf8ToBytes } from '@noble/hashes/utils.js';
import { fromBase64 } from '../../engine/base/bytes/base64.ts';
import { hashText } from '../../engine/base/bytes/hash.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import type { MailAddress, MailAttachment, MailMessage } from '../../engine/operation/mail.port.ts';
import {
  lineProblem,
  mailHeaderProblem,
  mediaTypeProblem,
  readAddress,
  readFilename,
  readPlainAddress,
} from '../../engine/operation/mail-fields.ts';
import type { OperationContext } from '../../engine/operation/operation.port.ts';
import { type AttachmentConfig, type EmailConfig, MAX_RECIPIENTS } from './config.ts';

/** What is the same in every mail of an agent. */
export type CommonParts = Pick<MailMessage, 'from' | 'replyTo' | 'attachments' | 'tags' | 'metadata'>;

type Context = OperationContext<EmailConfig>;

/** @throws INVALID_INPUT */
export function commonParts({ config }: Context): CommonParts {
  const { fromName, replyTo, attachments, tags, metadata } = config;
  const from = addressAt('from', config.from);
  const name = fromName ? lineAt('fromName', fromName) : from.name;
  return {
    from: { address: from.address, ...(name !== undefined && { name }) },
    ...(replyTo && { replyTo: addressAt('replyTo', replyTo) }),
    attachments: (attachments ?? []).map(toAttachment),
    tags: (tags ?? []).map((tag, i) => lineAt(`tags[${i}]`, tag)),
    metadata: metadata ?? {},
  };
}

/** The one mail of an agent without a batch. @throws INVALID_INPUT */
export function singleMessage(context: Context): MailMessage {
  const { config, idempotencyKey } = context;
  const [to, cc, bcc] = [addressesAt('to', config.to), addressesAt('cc', config.cc), addressesAt('bcc', config.bcc)];
  if (to.length === 0) throw invalidMailKey('to', 'has no address');
  const count = to.length + cc.length + bcc.length;
  if (count > MAX_RECIPIENTS) {
    const rule = `to, cc and bcc have ${count} addresses; a mail has at most ${MAX_RECIPIENTS}; use \`batch\` for more`;
    throw invalidMailKey('to', rule);
  }
  const common = commonParts(context);
  return { ...common, to, cc, bcc, ...texts(context), ...identity(idempotencyKey, common) };
}

/** The mail of one recipient of a batch. @param key - different for each recipient @throws INVALID_INPUT */
export function recipientMessage(
  context: Context,
  common: CommonParts,
  recipient: { readonly address: string; readonly data: JsonObject },
  key: string,
): MailMessage {
  const to = [{ address: recipient.address }];
  return { ...common, to, cc: [], bcc: [], ...texts(context, recipient.data), ...identity(key, common) };
}

/** The address of a recipient. @throws INVALID_INPUT */
export function recipientAddress(email: string): string {
  const { value, problem } = readPlainAddress(email);
  if (!value) throw invalidMailKey('email', problem);
  return value.address;
}

/** @param data - of a recipient. Default: the fields of the agent's input, with which the config is filled in already */
function texts(
  { config, render }: Context,
  data?: JsonObject,
): Pick<MailMessage, 'subject' | 'text' | 'html' | 'headers'> {
  const read: ReadText = (key, value) => (data && render(key, data)) ?? value ?? '';
  const [text, html] = [read('body', config.body), read('html', config.html)];
  if (text === '' && html === '') throw invalidMailKey('body', 'is empty, and so is `html`: a mail needs a text');
  return {
    subject: lineAt('subject', read('subject', config.subject)),
    ...(text !== '' && { text }),
    ...(html !== '' && { html }),
    headers: toHeaders(config, read),
  };
}

type ReadText = (key: string, value: string | null | undefined) => string;

function toHeaders({ headers }: EmailConfig, read: ReadText): Record<string, string> {
  const sent: [string, string][] = [];
  for (const [name, given] of Object.entries(headers ?? {})) {
    if (given === null) continue;
    const value = typeof given === 'string' ? read(`headers.${name}`, given) : String(given);
    const problem = mailHeaderProblem(name, value);
    if (problem !== undefined) throw invalidMailKey('headers', problem);
    if (sent.some(([other]) => other.toLowerCase() === name.toLowerCase()))
      throw invalidMailKey('headers', `header \`${name}\` is given twice`);
    sent.push([name, value]);
  }
  return Object.fromEntries(sent);
}

/** Derived from the key, so that a mail that is sent again has the same. */
export function identity(key: string, { from }: Pick<MailMessage, 'from'>): Pick<MailMessage, 'messageId'> {
  return { messageId: `<${hashText(`mail|${key}`)}@${from.address.slice(from.address.lastIndexOf('@') + 1)}>` };
}

function toAttachment({ filename, content, contentType, encoding }: AttachmentConfig, i: number): MailAttachment {
  const at = `attachments[${i}]`;
  const name = readFilename(filename);
  if ('problem' in name) throw invalidMailKey(`${at}.filename`, name.problem);
  const file = typeof content === 'string' ? { content } : content;
  const isBase64 = (encoding ?? file.encoding) === 'base64';
  const kind = (encoding ?? file.encoding) == null ? encodedKind(file.content) : undefined;
  if (kind !== undefined)
    throw invalidMailKey(`${at}.content`, `is base64 of ${kind}, and would be sent as text; add \`encoding: base64\``);
  const bytes = isBase64 ? fromBase64(file.content) : utf8ToBytes(file.content);
  if (!bytes) throw invalidMailKey(`${at}.content`, 'is not base64');
  const type = contentType ?? file.contentType ?? (isBase64 ? 'application/octet-stream' : 'text/plain; charset=utf-8');
  const problem = mediaTypeProblem(type);
  if (problem !== undefined) throw invalidMailKey(`${at}.contentType`, problem);
  return { filename: name.value, content: bytes, contentType: type };
}

/** The first characters of files in base64, by what they are. */
const ENCODED_KINDS: readonly (readonly [string, string])[] = [
  ['JVBERi0', 'a PDF'],
  ['iVBORw0KGgo', 'a PNG image'],
  ['/9j/', 'a JPEG image'],
  ['R0lGODdh', 'a GIF image'],
  ['R0lGODlh', 'a GIF image'],
  ['UEsDB', 'a ZIP file or an Office document'],
  ['H4sI', 'a gzip file'],
];
const BASE64 = /^[A-Za-z0-9+/=\r\n]{16,}$/;

/** What a text is in base64; undefined for any other text. */
function encodedKind(content: string): string | undefined {
  if (!BASE64.test(content.slice(0, 256))) return undefined;
  return ENCODED_KINDS.find(([start]) => content.startsWith(start))?.[1];
}

function addressesAt(key: string, given: EmailConfig['to']): readonly MailAddress[] {
  if (given === undefined || given === null) return [];
  if (typeof given === 'string') return [addressAt(key, given)];
  return given.map((one, i) => addressAt(`${key}[${i}]`, one));
}

function addressAt(key: string, text: string): MailAddress {
  const { value, problem } = readAddress(text);
  if (!value) throw invalidMailKey(key, problem);
  return value;
}

function lineAt(key: string, text: string): string {
  const problem = lineProblem(text);
  if (problem !== undefined) throw invalidMailKey(key, problem);
  return text;
}

function invalidMailKey(key: string, problem: string): OrchestratorError {
  return new OrchestratorError('INVALID_INPUT', `\`${key}\` of the mail: ${problem}`);
}
