/** What the cases of the mail suite share: worlds, a message to begin with, and the mail that the server received. */

import { fetchHttp } from '../../adapters/http/fetch-http.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import type { HttpClient } from '../../engine/host/http.port.ts';
import type {
  MailAddress,
  MailAttachment,
  MailMessage,
  MailSender,
  SendOptions,
} from '../../engine/operation/mail.port.ts';
import { same } from '../http-suite/context.ts';

/** A mail as a server received it, decoded. */
export interface ReceivedMail {
  /** The addresses to which the server delivers it: to, cc and bcc, in any order. */
  readonly recipients: readonly string[];
  readonly from: MailAddress;
  readonly to: readonly MailAddress[];
  readonly cc: readonly MailAddress[];
  readonly replyTo?: MailAddress | undefined;
  readonly subject: string;
  readonly text?: string | undefined;
  readonly html?: string | undefined;
  readonly attachments: readonly MailAttachment[];
  /** Its further headers. Names may be in any case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The value of its `Message-ID`, with angle brackets. Undefined if the provider creates it. */
  readonly messageId?: string | undefined;
  /** The message as it travels, with its headers. Undefined if the provider creates it. No blind copy may be in it. */
  readonly raw?: string | undefined;
}

export interface MailWorld {
  readonly sender: MailSender;
  /** The settings that each send has. Default: none. */
  readonly settings?: JsonObject;
  /** The HTTP client that each send has. Default: `fetchHttp()` that allows 127.0.0.0/8. */
  readonly http?: HttpClient;
  /** All mails that the server has accepted, the oldest first. */
  received(): readonly ReceivedMail[] | Promise<readonly ReceivedMail[]>;
  /** Closes the server. The suite closes the sender. */
  close?(): void | Promise<void>;
}

export interface MailCase {
  readonly world: MailWorld;
  /** Sends a message that differs from a plain one as given. */
  send(message?: Partial<MailMessage>, options?: Partial<SendOptions>): Promise<{ readonly messageId: string }>;
  /** Sends a message, and returns it as the server received it. @throws Error if the server has not received exactly one mail */
  deliver(message?: Partial<MailMessage>): Promise<ReceivedMail>;
}

/** Declares a test with a world of its own. */
export type DeclareMailCase = (title: string, body: (mail: MailCase) => Promise<void>) => void;

/** A short plain message from `sender@example.com` to `ada@example.com`. */
export const PLAIN: MailMessage = {
  from: { address: 'sender@example.com' },
  to: [{ address: 'ada@example.com' }],
  cc: [],
  bcc: [],
  subject: 'Hello',
  text: 'Hello Ada',
  attachments: [],
  headers: {},
  tags: [],
  metadata: {},
  messageId: '<0123456789abcdef@example.com>',
};

const TIMEOUT_MS = 10_000;

export function mailContext(
  create: () => MailWorld | Promise<MailWorld>,
  it: (title: string, body: () => Promise<void>) => void,
): DeclareMailCase {
  return (title, body) =>
    it(title, async () => {
      const world = await create();
      try {
        await body(mailCase(world));
      } finally {
        await world.sender.close?.();
        await world.close?.();
      }
    });
}

function mailCase(world: MailWorld): MailCase {
  const { sender, settings = {}, http = fetchHttp({ allow: ['127.0.0.0/8'] }) } = world;
  const send: MailCase['send'] = async (message, options) =>
    sender.send(
      { ...PLAIN, ...message },
      {
        ...{ settings, http, timeoutMs: TIMEOUT_MS },
        idempotencyKey: 'key-1',
        signal: new AbortController().signal,
        ...options,
      },
    );
  return {
    world,
    send,
    async deliver(message) {
      await send(message);
      const mails = await world.received();
      same(mails.length, 1, 'number of received mails');
      return mails[0] as ReceivedMail;
    },
  };
}

/** A body without the differences that every transport may make: the form of line breaks, and those at its end. */
export function plainBody(text: string | undefined): string | undefined {
  return text?.replace(/\r\n?/g, '\n').replace(/\n+$/, '');
}

/** The addresses of a list, joined. */
export function addresses(list: readonly MailAddress[]): string {
  return list.map(({ address }) => address).join();
}
