/** The `email` operation: sends a mail, or a batch of mails. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { HttpClient } from '../../engine/host/http.port.ts';
import type { MailSender } from '../../engine/operation/mail.port.ts';
import type { Operation } from '../../engine/operation/operation.port.ts';
import { SENT } from '../../engine/operation/sent-message.ts';
import { type BatchOutput, sendBatch } from './batch.ts';
import { checkEmailConfig, senderName, TEMPLATE_HEADER } from './check-config.ts';
import { type EmailConfig, emailConfig } from './config.ts';
import { singleMessage } from './message.ts';
import { type Sending, sendMail } from './send.ts';

/** The output of an `email` agent without `batch`. */
export interface EmailOutput {
  readonly messageId: string;
  readonly success: true;
  readonly provider: string;
}

/** @param dependencies - `senders`: the mail senders by name. Only own keys count */
export function emailOperation(dependencies: {
  /** Of the host. */
  readonly senders: Readonly<Record<string, MailSender>>;
  /** Senders that need no option of the host; a sender of the host with the same name takes their place. */
  readonly builtIn?: Readonly<Record<string, MailSender>>;
  readonly http: HttpClient;
  readonly clock: Clock;
}): Operation<EmailConfig> {
  const { http, clock } = dependencies;
  const senders = {
    byName: new Map(Object.entries({ ...dependencies.builtIn, ...dependencies.senders })),
    own: Object.keys(dependencies.senders),
  };
  return {
    name: 'email',
    get config() {
      return emailConfig();
    },
    // Each recipient of a batch has a link of its own to leave the list.
    texts: { subject: 'template', body: 'template', html: 'html', [`headers.${TEMPLATE_HEADER}`]: 'template' },
    readsOnlyInput: (config) => config.batch === undefined || config.batch === null,
    check: (config) => checkEmailConfig(config, senders),
    output: emailOutput,
    needsValues: () => [{ path: ['to'], what: 'a mail needs a receiver' }],
    needs(config) {
      const name = senderName(config, senders);
      return name === undefined ? [] : [`mail:${name}`];
    },
    async run(context): Promise<EmailOutput | BatchOutput> {
      const { config, idempotencyKey } = context;
      const provider = senderName(config, senders);
      const sender = provider === undefined ? undefined : senders.byName.get(provider);
      if (provider === undefined || !sender) {
        const what = provider === undefined ? 'the mail sender of this agent' : `mail sender \`${provider}\``;
        throw new OrchestratorError('NOT_CONFIGURED', `${what} is not configured in this process`);
      }
      const sending: Sending = { context, provider, sender, http, clock };
      if (config.batch) return sendBatch(sending, config.batch.recipients);
      const messageId = await sendMail(sending, singleMessage(context), idempotencyKey);
      return { messageId, success: true, provider };
    },
  };
}

const error = {
  type: 'object',
  properties: {
    email: { type: ['string', 'null'] },
    index: { type: 'integer' },
    code: { type: 'string' },
    message: { type: 'string' },
  },
  required: ['email', 'index', 'code', 'message'],
};

const BATCH = {
  type: 'object',
  properties: {
    sent: { type: 'integer', 'x-countOf': 'messageIds' },
    failed: { type: 'integer', 'x-countOf': 'errors' },
    messageIds: { type: 'array', items: { type: 'string' } },
    errors: { type: 'array', items: error },
    provider: { type: 'string' },
  },
  required: ['sent', 'failed', 'messageIds', 'errors', 'provider'],
  additionalProperties: false,
} as unknown as JsonObject;

function emailOutput({ batch }: JsonObject): JsonObject | undefined {
  if (typeof batch === 'string') return undefined;
  return batch ? BATCH : SENT;
}
