/** The forms of triggers and notifications. */

import * as z from 'zod/mini';
import { once } from '../../base/once.ts';
import { NOTIFIED_EVENTS } from '../../delivery/delivery.ts';
import { SIGNATURE_SCHEMES, WEBHOOK_METHODS } from '../../webhook/webhook.ts';
import { duration, flag, form, name, nonEmpty, nonEmptyList, text, wholeNumber, withEditorNotes } from './form.ts';

/** One secret, or several during a rotation. */
const secrets = once(() =>
  z.union([text(), nonEmptyList(text()).check(z.maxLength(10))], {
    error: 'must be a text or a list of 1 to 10 texts',
  }),
);

export const webhookTriggerSchema = form('a webhook trigger', '{ type: webhook, path: ..., auth: ... }', () => ({
  type: z.literal('webhook'),
  path: z.string().check(z.regex(/^\/[^\s?#]*$/, { error: 'must be a path that begins with `/`, without `?` or `#`' })),
  methods: z.optional(nonEmptyList(z.enum(WEBHOOK_METHODS))),
  public: flag(),
  auth: z.optional(
    form('`auth`', '{ type: bearer, secret: ... }', () => ({
      type: z.enum(['bearer', 'signature', 'basic', 'oauth']),
      secret: z.optional(secrets()),
      scheme: z.optional(z.enum(SIGNATURE_SCHEMES)),
      issuer: z.optional(nonEmpty()),
      audience: z.optional(nonEmpty()),
    }))(),
  ),
  async: flag(),
  // An input has at most 4 MiB.
  maxBodyBytes: z.optional(wholeNumber(1, 4_194_304)),
  accept: z.optional(nonEmptyList(z.enum(['json', 'form', 'text']))),
  signal: z.optional(name()),
  find: z.optional(
    form('`find`', '{ tag: "order=${body.id}" }', () => ({
      tag: z.optional(nonEmpty()),
      id: z.optional(nonEmpty()),
    }))(),
  ),
  orStart: flag(),
}));

export const scheduleTriggerSchema = form('a schedule trigger', '{ type: schedule, cron: "0 9 * * 1-5" }', () => ({
  type: z.literal('schedule'),
  // For editors. The compiler checks the pattern itself.
  cron: withEditorNotes(z.string(), { pattern: '^\\s*(@[A-Za-z]+|\\S+(\\s+\\S+){4,5})\\s*$' }),
  timezone: z.optional(nonEmpty()),
  overlap: z.optional(z.enum(['skip', 'queue'])),
  catchUp: z.optional(z.enum(['once', 'skip'])),
  input: z.optional(z.unknown()),
}));

const events = once(() => nonEmptyList(z.enum(NOTIFIED_EVENTS)));
export const webhookNotificationSchema = form(
  'a webhook notification',
  '{ type: webhook, events: [...], url: ... }',
  () => ({
    type: z.literal('webhook'),
    events: events(),
    url: nonEmpty(),
    secret: z.optional(secrets()),
    retries: z.optional(wholeNumber(0, 5)),
    timeout: z.optional(duration()),
    standard: flag(),
  }),
);
export const emailNotificationSchema = form(
  'an e-mail notification',
  '{ type: email, events: [...], to: [...], from: ... }',
  () => ({
    type: z.literal('email'),
    events: events(),
    to: nonEmptyList(nonEmpty()),
    from: nonEmpty(),
    subject: z.optional(text()),
    provider: z.optional(nonEmpty()),
  }),
);
