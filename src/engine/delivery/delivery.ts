/** Deliveries: what a notification of an ensemble sends for an event, with the attempts to send it. */

import { sha256 } from '@noble/hashes/sha2.js';
import { utf8ToBytes } from '@noble/hashes/utils.js';
import { derivedId, idTime } from '../execution/id.ts';

/** The kinds of events that a notification can report. */
export type NotifiedEvent =
  | 'execution.started'
  | 'execution.completed'
  | 'execution.failed'
  | 'execution.timeout'
  | 'agent.completed'
  | 'state.updated';

export const NOTIFIED_EVENTS: readonly NotifiedEvent[] = [
  ...(['execution.started', 'execution.completed', 'execution.failed', 'execution.timeout'] as const),
  ...(['agent.completed', 'state.updated'] as const),
];

/** The order in which events of an execution happen. */
const ORDER: readonly NotifiedEvent[] = [
  ...(['execution.started', 'agent.completed', 'state.updated'] as const),
  ...(['execution.completed', 'execution.failed', 'execution.timeout'] as const),
];

/** `paused`: it is not sent, because its receiver is paused. It is sent when the receiver is resumed. */
export const DELIVERY_STATUSES = ['pending', 'succeeded', 'failed', 'paused'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** A delivery when it is stored, with the commit of the state that its event reports. */
export interface NewDelivery {
  /** `dlv_` and 26 characters. It sorts by `createdAt`. */
  readonly id: string;
  readonly executionId: string;
  readonly ensemble: string;
  /** The hash of the stored definition. The notification in it says where the delivery goes. */
  readonly version: string;
  /** The index of the notification. */
  readonly notification: number;
  readonly event: NotifiedEvent;
  /** Names the receiver, without its address: deliveries to the same receiver have the same text. */
  readonly receiver: string;
  /** The envelope of the event, as it is sent. */
  readonly body: string;
  /** Unix ms. It is due from then on. */
  readonly createdAt: number;
}

/** One try to send a delivery. */
export interface DeliveryAttempt {
  /** Counts from 1. */
  readonly attempt: number;
  /** Unix ms. */
  readonly at: number;
  /** ms */
  readonly duration: number;
  /** The HTTP status of the answer, if there was one. */
  readonly status?: number;
  /** Why it failed. */
  readonly error?: string;
  /** The beginning of the answer of a receiver at a public address. */
  readonly excerpt?: string;
}

/** What is known of a delivery besides its body. */
export interface DeliveryState extends Omit<NewDelivery, 'body'> {
  readonly status: DeliveryStatus;
  /** How many attempts were made. An attempt that a crash cut off does not count. */
  readonly attempts: number;
  /** How many attempts were made before it was last sent again. Its retries count from there. */
  readonly attemptsBefore: number;
  /** Unix ms of the next attempt. Only while it is pending. */
  readonly dueAt?: number;
  /** The last 20 attempts. */
  readonly log: readonly DeliveryAttempt[];
}

export interface StoredDelivery extends DeliveryState {
  readonly body: string;
}

export const KEPT_ATTEMPTS = 20;

/** An event for which there may be deliveries. */
export interface EventIdentity {
  readonly executionId: string;
  readonly event: NotifiedEvent;
  /** Distinguishes events of one kind of an execution. */
  readonly key: string;
  /** Unix ms. */
  readonly at: number;
}

/** The id of an event: the same event has the same id, however often its execution is resumed. */
export function eventId(event: EventIdentity): string {
  return derivedId('evt_', event.at, hashOf(event, ''));
}

/** The id of the delivery of an event by one notification. */
export function deliveryId(event: EventIdentity, notification: number): string {
  return derivedId('dlv_', event.at, hashOf(event, String(notification)));
}

function hashOf({ executionId, event, key }: EventIdentity, of: string): Uint8Array {
  const hash = sha256(utf8ToBytes([executionId, event, key, of].join('\n')));
  // So that ids of one instant sort in the order in which such events happen.
  hash[0] = ORDER.indexOf(event);
  return hash;
}

/** The least id that a delivery of this instant can have. @param at - Unix ms */
export function firstDeliveryId(at: number): string {
  return idTime('dlv_', at);
}
