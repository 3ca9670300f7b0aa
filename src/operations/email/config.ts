/** The config of the `email` operation. */

import * as z from 'zod/mini';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { once } from '../../engine/base/once.ts';
import type { WrittenDuration } from '../../engine/base/time/duration.ts';
import { durationSchema } from '../../engine/base/time/duration-schema.ts';
import type { StandardSchema } from '../../engine/operation/standard-schema.port.ts';

/** Null means absent in every field, so that an expression can leave an option out. A sender may have further keys: its settings. */
export interface EmailConfig {
  /** The name of an entry of the option `mail`. It may be left out if there is one entry. */
  readonly provider?: string | null | undefined;
  readonly from: string;
  readonly fromName?: string | null | undefined;
  readonly to?: string | readonly string[] | null | undefined;
  readonly cc?: string | readonly string[] | null | undefined;
  readonly bcc?: string | readonly string[] | null | undefined;
  readonly replyTo?: string | null | undefined;
  readonly subject: string;
  readonly body?: string | null | undefined;
  readonly html?: string | null | undefined;
  readonly attachments?: readonly AttachmentConfig[] | null | undefined;
  readonly headers?: Readonly<Record<string, string | number | null>> | null | undefined;
  readonly tags?: readonly string[] | null | undefined;
  readonly metadata?: JsonObject | null | undefined;
  readonly batch?: { readonly recipients: readonly Recipient[] } | null | undefined;
  /** E-mails per second, for a batch. */
  readonly rateLimit?: number | null | undefined;
  /** The longest time of one send. Default `30s`. */
  readonly timeout?: WrittenDuration | null | undefined;
}

/** One recipient of a batch. All fields are data of the templates. */
export type Recipient = JsonObject & { readonly email: string };

export interface AttachmentConfig extends FileParts {
  readonly filename: string;
  /** Text, or a file as `pdf`, `api` and `storage` give it. */
  readonly content: string | (FileParts & { readonly content: string });
}

interface FileParts {
  readonly contentType?: string | null | undefined;
  /** Of `content`. Default `utf8`: the content is text. */
  readonly encoding?: 'base64' | 'utf8' | null | undefined;
}

/** The most recipients of a batch. */
export const MAX_BATCH = 1_000;
/** The most recipients of one mail: to, cc and bcc together. */
export const MAX_RECIPIENTS = 50;
const MAX_ATTACHMENTS = 50;
const MAX_TAGS = 16;
const MIN_RATE = 0.1;
const MAX_RATE = 1_000;
const RATE_RULE = `must be a number of e-mails per second from ${MIN_RATE} to ${MAX_RATE}`;

const FILE_KEYS = ['content', 'contentType', 'encoding', 'filename', 'size', 'pages', 'warnings'];
const CONTENT =
  'expected text, or a file { content, contentType, encoding: base64 or utf8 } such as the output of `pdf`';

function isContent(value: unknown): boolean {
  if (typeof value === 'string') return true;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { content, contentType, encoding } = value as Readonly<Record<string, unknown>>;
  return (
    typeof content === 'string' &&
    [undefined, null, 'base64', 'utf8'].includes(encoding as string) &&
    (contentType === undefined || contentType === null || typeof contentType === 'string') &&
    Object.keys(value).every((key) => FILE_KEYS.includes(key))
  );
}

const text = () => z.string('must be text');
const unknownKeys = (issue: { readonly code?: string; readonly keys?: readonly string[] }) =>
  issue.code === 'unrecognized_keys' ? `has keys that do not belong there: ${issue.keys?.join(', ')}` : undefined;

function attachmentSchema() {
  const content = z.unknown().check(({ value, issues }) => {
    if (!isContent(value)) issues.push({ code: 'custom', message: CONTENT, input: value });
  }) as z.ZodMiniType<AttachmentConfig['content']>;
  const encoding = z.enum(['base64', 'utf8'], 'must be `base64` or `utf8`');
  return z.strictObject(
    { filename: text(), content, contentType: z.nullish(text()), encoding: z.nullish(encoding) },
    { error: (issue) => unknownKeys(issue as never) ?? 'expected { filename, content, contentType, encoding }' },
  );
}

function batchSchema() {
  const recipient = z.looseObject({ email: text() }, 'expected { email, ... }');
  const error = `must be a list of at most ${MAX_BATCH} recipients { email, ... }`;
  const recipients = z.array(recipient, error).check(z.maxLength(MAX_BATCH, error));
  return z.strictObject({ recipients }, { error: (issue) => unknownKeys(issue as never) ?? 'expected { recipients }' });
}

/** The settings of the specification. A sender may have others. */
function settings() {
  const port = 'must be a port from 1 to 65535';
  const auth = z.strictObject({ user: text(), pass: text() }, 'expected { user, pass }');
  return {
    apiKey: z.nullish(text().check(z.minLength(1, 'must not be empty; is its variable set?'))),
    host: z.nullish(text().check(z.minLength(1, 'must not be empty; is its variable set?'))),
    port: z.nullish(z.int(port).check(z.gte(1, port), z.lte(65_535, port))),
    secure: z.nullish(z.boolean('must be true or false')),
    auth: z.nullish(auth),
  };
}

export const emailConfig = once((): StandardSchema<unknown, EmailConfig> => {
  const optional = z.nullish(text());
  const list = z.nullish(z.union([text(), z.array(text())], 'must be an address or a list of addresses'));
  const tags = `must be a list of at most ${MAX_TAGS} texts`;
  const files = `must be a list of at most ${MAX_ATTACHMENTS} files { filename, content, contentType, encoding }`;
  const value = z.union([z.string(), z.number(), z.null()], 'expected text or a number');
  return z.looseObject({
    provider: optional,
    from: text(),
    fromName: optional,
    ...{ to: list, cc: list, bcc: list },
    replyTo: optional,
    subject: text(),
    ...{ body: optional, html: optional },
    attachments: z.nullish(z.array(attachmentSchema(), files).check(z.maxLength(MAX_ATTACHMENTS, files))),
    headers: z.nullish(z.record(z.string(), value, 'must be a map of headers')),
    tags: z.nullish(z.array(text(), tags).check(z.maxLength(MAX_TAGS, tags))),
    metadata: z.nullish(z.record(z.string(), z.custom<Json>(), 'must be a map of keys')),
    batch: z.nullish(batchSchema()),
    rateLimit: z.nullish(z.number(RATE_RULE).check(z.gte(MIN_RATE, RATE_RULE), z.lte(MAX_RATE, RATE_RULE))),
    timeout: z.nullish(durationSchema()),
    ...settings(),
  }) as unknown as StandardSchema<unknown, EmailConfig>;
});

/** The keys of the operation itself. Every other key is a setting of the sender. */
export const OWN_KEYS: readonly string[] = [
  ...['provider', 'from', 'fromName', 'to', 'cc', 'bcc', 'replyTo', 'subject', 'body', 'html', 'attachments'],
  ...['headers', 'tags', 'metadata', 'batch', 'rateLimit', 'timeout'],
];

/** The keys of a config that belong to the sender. */
export function settingsOf(config: object): JsonObject {
  const entries = Object.entries(config as JsonObject).filter(
    ([key, value]) => !OWN_KEYS.includes(key) && value != null,
  );
  return Object.fromEntries(entries);
}
