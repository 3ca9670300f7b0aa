/** The stored deliveries, as the public `orchestrator.deliveries`. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import { withoutUndefined } from '../../engine/base/without-undefined.ts';
import { oneOf } from '../../engine/base/wording.ts';
import {
  DELIVERY_STATUSES,
  type DeliveryAttempt,
  type DeliveryState,
  type DeliveryStatus,
  type NotifiedEvent,
} from '../../engine/delivery/delivery.ts';
import { webhookReceiver } from '../../engine/delivery/notification.ts';
import { normalizeExecutionId } from '../../engine/execution/id.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import { decodeCursor, encodeCursor, pageLimit } from '../../engine/storage/cursor.ts';
import type { DeliveryQuery, DeliveryStore } from '../../engine/storage/storage.port.ts';
import { readInstant } from '../runs/execution-filter.ts';
import type { DeliveryService } from './delivery-service.ts';
import type { FailingReceiver, PauseReason, Receivers } from './receivers.ts';
import type { Replay, Replays } from './replays.ts';
import type { FindTarget } from './targets.ts';

export type { DeliveryAttempt, DeliveryStatus, NotifiedEvent, PauseReason, Replay };

/** One event for one notification, with the attempts to send it. Instants are Unix ms. */
export interface Delivery {
  readonly id: string;
  readonly executionId: string;
  readonly ensemble: string;
  readonly event: NotifiedEvent;
  readonly type: 'webhook' | 'email';
  /** Equal for all deliveries to the same address, or by the same mail sender. */
  readonly receiver: string;
  /**
   * Where it goes: the host of the webhook, whose path may be a secret, or the name of the mail sender. Absent if this process can't read
   * it: an address is not stored, and the variables of the process may lead to another one.
   */
  readonly to?: string;
  readonly status: DeliveryStatus;
  readonly createdAt: number;
  /** Of a pending delivery. */
  readonly nextAttemptAt?: number;
  /** The last 20 attempts. */
  readonly attempts: readonly DeliveryAttempt[];
}

export interface DeliveryFilter {
  readonly ensemble?: string | undefined;
  /** The id of an execution. */
  readonly execution?: string | undefined;
  readonly status?: DeliveryStatus | undefined;
  /** The address of a webhook. */
  readonly url?: string | undefined;
  /** Only deliveries of events of this instant or later: Unix ms or a Date. */
  readonly since?: number | Date | undefined;
  /** Only deliveries of events before this instant: Unix ms or a Date. */
  readonly until?: number | Date | undefined;
}

export interface DeliveryListFilter extends DeliveryFilter {
  /** Default 100, at most 250. A larger number counts as 250. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page, with the same filter. */
  readonly cursor?: string | undefined;
}

/** A receiver that fails, or is paused. Instants are Unix ms. */
export interface Receiver {
  readonly receiver: string;
  readonly type: 'webhook' | 'email';
  /** The address of the webhook, with secrets masked, or the name of the mail sender. */
  readonly address: string;
  readonly failingSince: number;
  readonly pausedAt?: number;
  /** Why it is paused. `gone`: it answered 410. `failing`: its first attempts failed for three days. */
  readonly reason?: PauseReason;
}

export interface Deliveries {
  /**
   * Newest first, by the instant of the event. A delivery is listed if it matches all filters.
   * @throws INVALID_CURSOR; INVALID_REQUEST for an invalid limit or filter
   */
  list(
    filter?: DeliveryListFilter,
  ): Promise<{ readonly deliveries: readonly Delivery[]; readonly nextCursor?: string }>;
  /** A delivery with the `body` that is sent. @throws NOT_FOUND */
  get(id: string): Promise<Delivery & { readonly body: string }>;
  /**
   * Sends a delivery again, with all its retries. Its attempts are counted on.
   * @throws NOT_FOUND; CONFLICT if it is pending, and if its receiver is paused
   */
  redeliver(id: string): Promise<Delivery>;
  /**
   * Sends again all deliveries that match a filter and are not pending, as a job that any process continues. Without a `status`, those
   * that failed.
   * @returns the job. `replays` has its progress
   */
  replay(filter: DeliveryFilter): Promise<Replay>;
  /** The jobs of `replay`, for seven days. */
  replays(): Promise<readonly Replay[]>;
  /** The receivers that fail, or are paused. */
  receivers(): Promise<readonly Receiver[]>;
  /** Resumes a paused receiver, by its `receiver` or its address. @returns how many deliveries are due again @throws NOT_FOUND */
  resume(receiver: string): Promise<{ readonly deliveries: number }>;
  /**
   * Sends what is due, and waits for it: for a host that keeps no process alive. `runDue` of the orchestrator does this too.
   * @returns the instant (Unix ms) at which something is due next. Absent if nothing will be due
   */
  deliverDue(): Promise<{ readonly nextDueAt?: number }>;
}

export interface DeliveriesDependencies {
  readonly store: DeliveryStore;
  readonly receivers: Receivers;
  readonly replays: Replays;
  readonly service: Pick<DeliveryService, 'deliverDue' | 'replay'>;
  readonly findTarget: FindTarget;
  readonly clock: Clock;
  /** Something is due now, for this process too. */
  wake(): void;
}

const FILTER_KEYS = ['ensemble', 'execution', 'status', 'url', 'since', 'until'] as const;
const DELIVERY_ID = /^dlv_[0-9A-Z]{26}$/;

export function createDeliveries(dependencies: DeliveriesDependencies): Deliveries {
  const { store, receivers, replays, service, clock, wake } = dependencies;
  const toDelivery = deliveryReader(dependencies.findTarget);
  const find = async (id: string) => {
    const found = await store.get(String(id));
    if (found) return found;
    throw new OrchestratorError('NOT_FOUND', `delivery ${id} is unknown`);
  };
  return {
    async list(given = {}) {
      const { limit, cursor, ...filters } = given;
      refuseUnknownKeys(given, [...FILTER_KEYS, 'limit', 'cursor'], 'deliveries.list');
      const query = toQuery(filters);
      const size = pageLimit(limit);
      const filter = JSON.stringify(query);
      const before = cursor === undefined ? undefined : decodeCursor(cursor, filter, DELIVERY_ID);
      const found = await store.list({ ...query, ...(before !== undefined && { before }), limit: size + 1 });
      const page = found.slice(0, size);
      const last = page.at(-1);
      const next = found.length > size && last ? { nextCursor: encodeCursor(last.id, filter) } : {};
      return { deliveries: await Promise.all(page.map(toDelivery)), ...next };
    },
    async get(id) {
      const found = await find(id);
      return { ...(await toDelivery(found)), body: found.body };
    },
    async redeliver(id) {
      const { status, receiver } = await find(id);
      const refuse = (message: string) => new OrchestratorError('CONFLICT', message);
      const state = await receivers.find(receiver);
      if (state?.pausedAt !== undefined)
        throw refuse(`the receiver of delivery ${id} is paused (${state.reason}); resume it: \`${receiver}\``);
      if (status === 'pending' || (await store.requeue([id], clock.now())) === 0)
        throw refuse(`delivery ${id} is pending: it is sent by itself`);
      wake();
      return toDelivery(await find(id));
    },
    async replay(filter) {
      refuseUnknownKeys(filter, FILTER_KEYS, 'deliveries.replay');
      if (filter.status === 'pending')
        throw new OrchestratorError(
          'INVALID_REQUEST',
          'pending deliveries are sent anyway; `status` must be another one',
        );
      const job = await replays.create({ status: 'failed', until: clock.now(), ...toQuery(filter) });
      service.replay();
      wake();
      return job;
    },
    replays: () => replays.list(),
    receivers: async () => (await receivers.list()).map(toReceiver),
    async resume(given) {
      const receiver = /^(webhook|email):/.test(given) ? given : receiverAt(given, 'receiver');
      const deliveries = await receivers.resume(receiver);
      if (deliveries === undefined) throw new OrchestratorError('NOT_FOUND', `receiver ${given} is not paused`);
      wake();
      return { deliveries };
    },
    async deliverDue() {
      const nextDueAt = await service.deliverDue();
      return nextDueAt === undefined ? {} : { nextDueAt };
    },
  };
}

/** @throws INVALID_REQUEST */
function toQuery({ ensemble, execution, status, url, since, until }: DeliveryFilter): Omit<DeliveryQuery, 'limit'> {
  if (status !== undefined && !DELIVERY_STATUSES.includes(status))
    throw new OrchestratorError('INVALID_REQUEST', `\`status\` must be ${oneOf(DELIVERY_STATUSES)}`);
  const filters = {
    ...{ ensemble, status, since: readInstant(since, 'since'), until: readInstant(until, 'until') },
    executionId: execution === undefined ? undefined : normalizeExecutionId(execution),
    receiver: url === undefined ? undefined : receiverAt(url, 'url'),
  };
  return withoutUndefined(filters);
}

/** @throws INVALID_REQUEST */
function receiverAt(url: string, key: string): string {
  if (URL.canParse(url)) return webhookReceiver(new URL(url).href);
  throw new OrchestratorError(
    'INVALID_REQUEST',
    `\`${key}\` must be the address of a webhook, such as \`https://shop.example/hooks\``,
  );
}

function typeOf(receiver: string): Delivery['type'] {
  return receiver.startsWith('email:') ? 'email' : 'webhook';
}

function deliveryReader(findTarget: FindTarget) {
  const destinationOf = async (state: DeliveryState): Promise<string | undefined> => {
    const target = await findTarget(state);
    if ('problem' in target) return undefined;
    if (target.type === 'email') return target.provider;
    return webhookReceiver(target.url) === state.receiver ? new URL(target.url).host : undefined;
  };
  return async (state: DeliveryState): Promise<Delivery> => {
    const { id, executionId, ensemble, event, receiver, status, createdAt, dueAt, log: attempts } = state;
    const to = await destinationOf(state);
    const known = { ...(to !== undefined && { to }), ...(dueAt !== undefined && { nextAttemptAt: dueAt }) };
    return {
      id,
      executionId,
      ensemble,
      event,
      type: typeOf(receiver),
      receiver,
      status,
      createdAt,
      ...known,
      attempts,
    };
  };
}

function toReceiver({ receiver, address, failingSince, pausedAt, reason }: FailingReceiver): Receiver {
  const paused = { ...(pausedAt !== undefined && { pausedAt }), ...(reason && { reason }) };
  return { receiver, type: typeOf(receiver), address, failingSince, ...paused };
}
