/** The part of a storage that keeps deliveries: an outbox that commits fill, and from which each delivery is taken when it is due. */

import type { MaybePromise } from '../operation/operation.port.ts';
import type { DeliveryAttempt, DeliveryState, DeliveryStatus, StoredDelivery } from './delivery.ts';

/** A receiver with pending deliveries. */
export interface DueReceiver {
  readonly receiver: string;
  /** Unix ms at which the first of its pending deliveries is due. */
  readonly dueAt: number;
}

export interface DeliveryClaim {
  /** Unix ms. */
  readonly now: number;
  /** Unix ms. Until then no other claim returns the delivery. After that it is due again, unless it was settled. */
  readonly until: number;
  readonly limit: number;
}

/** The result of an attempt, or of a decision about a delivery that was claimed. */
export interface SettledDelivery {
  readonly id: string;
  /** How many attempts were made when it was claimed. If this has changed, or it is not pending any more, nothing is stored. */
  readonly expectedAttempts: number;
  readonly status: DeliveryStatus;
  readonly attempts: number;
  /** Unix ms of the next attempt, with the status `pending`. */
  readonly dueAt?: number;
  readonly log: readonly DeliveryAttempt[];
}

export interface DeliveryQuery {
  readonly executionId?: string;
  readonly ensemble?: string;
  readonly status?: DeliveryStatus;
  readonly receiver?: string;
  /** Unix ms. Only deliveries of events of this instant or later. */
  readonly since?: number;
  /** Unix ms. Only deliveries of events before this instant. */
  readonly until?: number;
  /** Only deliveries before this id in the order of the list. */
  readonly before?: string;
  readonly limit: number;
}

export interface DeliveryStore {
  /**
   * The receivers with pending deliveries, in the order of their names by their bytes. Reads no deliveries.
   * @param after - only receivers after this one
   */
  receivers(after: string, limit: number): MaybePromise<readonly DueReceiver[]>;
  /**
   * Takes pending deliveries of a receiver that are due, those first that are due longest. Each is taken by one caller only.
   * @returns them in the order of their ids
   */
  claim(receiver: string, claim: DeliveryClaim): MaybePromise<readonly StoredDelivery[]>;
  /** Stores what became of deliveries that were claimed. @returns how many were stored */
  settle(results: readonly SettledDelivery[]): MaybePromise<number>;
  /** Makes deliveries that are not pending due again, with all their retries. @returns how many */
  requeue(ids: readonly string[], now: number): MaybePromise<number>;
  get(id: string): MaybePromise<StoredDelivery | undefined>;
  /** Deliveries that match all filters, newest first: by their ids in descending order. Their bodies are not read. */
  list(query: DeliveryQuery): MaybePromise<readonly DeliveryState[]>;
  /** Deletes deliveries of events before an instant (Unix ms) that are not pending. @returns how many, at most `limit` */
  purge(before: number, limit: number): MaybePromise<number>;
}
