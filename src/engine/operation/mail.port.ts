/** The mail port: sends one e-mail. */

import type { JsonObject } from '../base/json/json.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { HttpClient } from '../host/http.port.ts';
import type { WithReady } from '../host/with-ready.port.ts';
import type { ConfigIssue } from './operation.port.ts';

/** One address. The operation has checked that it is exactly one, of at most 254 characters, without comments and routes. */
export interface MailAddress {
  /** Such as `ada@example.com`. */
  readonly address: string;
  /** Without line breaks and control characters. */
  readonly name?: string;
}

export interface MailAttachment {
  /** A base name, without folders and control characters. */
  readonly filename: string;
  readonly content: Uint8Array;
  /** Such as `application/pdf`. */
  readonly contentType: string;
}

/** An e-mail that the operation has checked: no field can add a header or a recipient. */
export interface MailMessage {
  readonly from: MailAddress;
  readonly to: readonly MailAddress[];
  readonly cc: readonly MailAddress[];
  readonly bcc: readonly MailAddress[];
  readonly replyTo?: MailAddress;
  readonly subject: string;
  /** `text`, `html` or both. */
  readonly text?: string;
  readonly html?: string;
  readonly attachments: readonly MailAttachment[];
  /** Custom headers, with valid names. None of them is a header that the message itself has, such as `Bcc` or `Content-Type`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly tags: readonly string[];
  readonly metadata: JsonObject;
  /** The value of its `Message-ID`, with angle brackets: equal each time the same mail is sent again. */
  readonly messageId: string;
}

export interface SendOptions {
  /** The keys of the agent's config that belong to the provider, such as `apiKey` or `host`. They win over the sender's own options. */
  readonly settings: JsonObject;
  /** The HTTP client of the orchestrator, for providers with an HTTP API. */
  readonly http: HttpClient;
  /** Equal each time the same message is sent again. A provider that knows such keys receives it. */
  readonly idempotencyKey: string;
  /** The longest time of the call, in ms. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Sends one e-mail to all its recipients, once. It never repeats a call by itself.
 *
 * If `signal` aborts, `send` rejects with the signal's reason. Otherwise it rejects only with an `OrchestratorError`:
 *
 * | code | retryable | cause |
 * |---|---|---|
 * | `NOT_CONFIGURED` | no | a setting is missing, such as `apiKey` |
 * | `INVALID_INPUT` | no | the provider refuses this message or a recipient for good |
 * | `AGENT_FAILED` | no | the provider refuses the caller: a wrong key, an address that may not send |
 * | `AGENT_FAILED` | yes | the provider is busy or broken, or the connection is; the mail may have been sent if the connection broke late |
 * | `TIMEOUT` | yes | `timeoutMs` passed; the mail may have been sent |
 *
 * `details` of the error has `status` (HTTP) or `responseCode` (SMTP) if there is one, and `outcome: 'unknown'` if the mail may have been
 * sent. No message and no detail contains a key or a password.
 */
export interface MailSender extends WithReady {
  /** Keys of the agent's config that this sender takes as settings, such as `apiKey`. */
  readonly settings?: readonly string[];
  /** What must never be shown of its own options, such as its API key or its password. The orchestrator masks these texts like secrets. */
  readonly secrets?: readonly string[];
  /** Problems of the settings, found at load. The values of expressions are still text. */
  check?(settings: JsonObject): readonly ConfigIssue[];
  send(message: MailMessage, options: SendOptions): MaybePromise<{ readonly messageId: string }>;
  /** Closes its connections. Called by `orchestrator.close()`. */
  close?(): MaybePromise<void>;
}
