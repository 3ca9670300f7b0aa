/** Notifications: where an ensemble sends its events. The parts of a definition, evaluated with the variables of the host. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { Address } from '../operation/mail-fields.ts';
import type { NotifiedEvent } from './delivery.ts';

interface NotificationDependencies {
  readonly events: ReadonlySet<NotifiedEvent>;
  /** See `NewDelivery.receiver`. */
  readonly receiver: string;
  readonly retries: number;
  /** Of one attempt. */
  readonly timeoutMs: number;
}

export interface WebhookTarget extends NotificationDependencies {
  readonly type: 'webhook';
  readonly url: string;
  /** Each of them signs. Empty: nothing is signed. */
  readonly secrets: readonly string[];
  /** Whether the headers of Standard Webhooks are sent too. */
  readonly standard: boolean;
}

/** What a subject may read. */
export interface SubjectFields {
  readonly event: NotifiedEvent;
  readonly ensemble: string;
  /** ISO 8601. */
  readonly timestamp: string;
}

export interface EmailTarget extends NotificationDependencies {
  readonly type: 'email';
  readonly to: readonly Address[];
  readonly from: Address;
  readonly subject: (fields: SubjectFields) => string;
  /** The name of a mail sender of the host. */
  readonly provider: string;
}

export type NotificationTarget = WebhookTarget | EmailTarget;

export const DEFAULT_RETRIES = 3;
export const DEFAULT_TIMEOUT_MS = 5_000;
export const MAX_TIMEOUT_MS = 30_000;

/** Names the receiver at an address, which may contain a secret. */
export function webhookReceiver(url: string): string {
  return `webhook:${bytesToHex(sha256(utf8ToBytes(url))).slice(0, 32)}`;
}

export function emailReceiver(provider: string): string {
  return `email:${provider}`;
}
