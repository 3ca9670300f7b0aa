/** The forms of triggers and notifications. */

import * as z from 'zod';
import { form, milliseconds, nonEmpty, text } from './form.ts';

export const webhookTriggerSchema = form('a webhook trigger', '{ type: webhook, path: ..., auth: ... }', {
  type: z.literal('webhook'),
  path: z.string().regex(/^\/[^\s?#]*$/, { error: 'must be a path that begins with `/`, without `?` or `#`' }),
  methods: z
    .array(z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']))
    .min(1)
    .optional(),
  public: z.boolean().optional(),
  auth: form('`auth`', '{ type: bearer, secret: ... }', {
    type: z.enum(['bearer', 'signature', 'basic', 'oauth']),
    secret: z
      .union([text, z.array(text).min(1).max(10)], { error: 'must be a text or a list of 1 to 10 texts' })
      .optional(),
    scheme: z.enum(['service', 'github', 'stripe', 'slack', 'standard']).optional(),
    issuer: nonEmpty.optional(),
    audience: nonEmpty.optional(),
  }).optional(),
  async: z.boolean().optional(),
  maxBodyBytes: z.int().min(1).max(26_214_400).optional(),
  accept: z
    .array(z.enum(['json', 'form', 'text']))
    .min(1)
    .optional(),
});

export const scheduleTriggerSchema = form('a schedule trigger', '{ type: schedule, cron: "0 9 * * 1-5" }', {
  type: z.literal('schedule'),
  // For editors; the check at load says more.
  cron: z.string().meta({ pattern: '^\\s*(@[A-Za-z]+|\\S+(\\s+\\S+){4,5})\\s*$' }),
  timezone: nonEmpty.optional(),
  overlap: z.enum(['skip', 'queue']).optional(),
  catchUp: z.enum(['once', 'skip']).optional(),
  input: z.unknown().optional(),
});

/** Kinds of event that a notification can be sent about. */
export const NOTIFIED_EVENTS = [
  'execution.started',
  'execution.completed',
  'execution.failed',
  'execution.timeout',
  'agent.completed',
  'state.updated',
] as const;

const events = z.array(z.enum(NOTIFIED_EVENTS)).min(1);
export const webhookNotificationSchema = form('a webhook notification', '{ type: webhook, events: [...], url: ... }', {
  type: z.literal('webhook'),
  events,
  url: nonEmpty,
  secret: nonEmpty.optional(),
  retries: z.int().min(0).max(5).optional(),
  timeout: milliseconds.optional(),
  standard: z.boolean().optional(),
});
export const emailNotificationSchema = form(
  'an e-mail notification',
  '{ type: email, events: [...], to: [...], from: ... }',
  {
    type: z.literal('email'),
    events,
    to: z.array(nonEmpty).min(1),
    from: nonEmpty,
    subject: text.optional(),
    provider: nonEmpty.optional(),
  },
);
