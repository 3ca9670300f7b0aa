/** Sends what the notifications of executions report: a task of the timer, and the calls of hosts without one. */

import { socketSlots } from '../../adapters/http/socket-slots.ts';
import { andThen } from '../../engine/base/maybe-promise.ts';
import { inPortions } from '../../engine/base/portions.ts';
import type { StoredDelivery } from '../../engine/delivery/delivery.ts';
import type { NotificationTarget } from '../../engine/delivery/notification.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { Tracing } from '../../engine/host/telemetry.port.ts';
import type { SettledDelivery, Storage } from '../../engine/storage/storage.port.ts';
import type { SteadyClock } from '../timed/steady-clock.ts';
import type { TimedTask } from '../timed/timed-work.ts';
import { attemptDelivery, type EndedAttempt, withoutAttempt } from './attempt.ts';
import { createDeliveryLanes } from './delivery-lanes.ts';
import type { PauseReason, Receivers } from './receivers.ts';
import type { Replays } from './replays.ts';
import { type EmailSenders, sendEmail } from './send-email.ts';
import { type AttemptOutcome, sendWebhook, type WebhookSender } from './send-webhook.ts';
import type { FindTarget } from './targets.ts';

/** Is notified of what became of a delivery. */
export interface DeliveryObserver {
  ended(delivery: StoredDelivery, attempt: EndedAttempt): void;
  paused(delivery: StoredDelivery): void;
  receiverPaused(delivery: StoredDelivery, reason: PauseReason): void;
}

export interface DeliveryServiceDependencies extends WebhookSender, EmailSenders {
  readonly storage: Storage;
  readonly clock: SteadyClock;
  readonly logger: Logger;
  readonly findTarget: FindTarget;
  readonly receivers: Receivers;
  readonly replays: Replays;
  readonly observer: DeliveryObserver;
  /** Undefined without telemetry. */
  readonly tracing: Tracing | undefined;
  /** How long deliveries are kept, in ms. */
  readonly retentionMs: number;
  /** Something is to be sent at an instant (Unix ms). */
  wake(at: number): void;
}

export interface DeliveryService {
  readonly task: TimedTask;
  /** This process has ensembles with notifications: from now on it looks for deliveries that other processes left. */
  use(): void;
  /** There is a job that sends deliveries again. */
  replay(): void;
  /** Sends what is due, and waits for it. @returns the instant (Unix ms) at which something is due next */
  deliverDue(): Promise<number | undefined>;
  /** Sends what is due for the last time, and waits up to `graceMs` for what is being sent. */
  close(graceMs: number): Promise<void>;
}

/** How often a shared storage is searched for what other processes left. */
const POLL_MS = 5_000;
const CARE_EVERY_MS = 60_000;
const PURGE_EVERY_MS = 3_600_000;
const PURGED_AT_ONCE = 1_000;
const MAX_SOCKETS_PER_HOST = 10;
/** A delivery whose notification can't be read here is looked at again after this time. */
const UNREADABLE_MS = 60_000;
const NOTHING = () => undefined;

export function createDeliveryService(dependencies: DeliveryServiceDependencies): DeliveryService {
  const { storage, clock, logger, receivers, replays, findTarget, observer } = dependencies;
  const store = storage.deliveries;
  const slots = socketSlots(MAX_SOCKETS_PER_HOST);
  let isUsed = false;
  let isSender = false;
  let caredAt = Number.NEGATIVE_INFINITY;
  let purgedAt = Number.NEGATIVE_INFINITY;
  let probeAt: number | undefined;
  let isReplaying = false;

  const attempt = (delivery: StoredDelivery, target: NotificationTarget, number: number): Promise<AttemptOutcome> => {
    if (target.type === 'email') return sendEmail(dependencies, delivery, target);
    return sendWebhook(dependencies, delivery, target, number, clock.wall.now());
  };

  const traced = async (
    tracing: Tracing,
    { id, executionId, ensemble, event }: StoredDelivery,
    number: number,
    send: () => Promise<AttemptOutcome>,
  ): Promise<AttemptOutcome> => {
    // Without the trace of its execution, it is sent all the same.
    const execution = await (async () => storage.executions.getAccepted(executionId))().catch(NOTHING);
    const about = { id, executionId, ensemble, event, attempt: number };
    return tracing.deliver({ ...about, trigger: execution?.trigger }, send);
  };

  const sendTo = async (delivery: StoredDelivery, target: NotificationTarget, until: number) => {
    // An attempt that would end after the claim could be made twice.
    if (clock.now() + target.timeoutMs > until) return withoutAttempt(delivery, 'pending', clock.now());
    const { tracing } = dependencies;
    const made = await attemptDelivery(delivery, target, clock, (n) => {
      const send = () => attempt(delivery, target, n);
      return tracing ? traced(tracing, delivery, n, send) : send();
    });
    const { receiver } = delivery;
    const address = target.type === 'webhook' ? dependencies.mask(target.url) : target.provider;
    const reason = await receivers.report(receiver, address, made).catch((err: unknown) => {
      logger.warn({ err, receiver }, 'the state of a receiver could not be stored; the result of the delivery counts');
      return undefined;
    });
    observer.ended(delivery, made);
    if (reason) {
      observer.receiverPaused(delivery, reason);
      caredAt = Number.NEGATIVE_INFINITY;
      dependencies.wake(clock.now());
    }
    return made.settled;
  };

  const send = async (delivery: StoredDelivery, until: number): Promise<SettledDelivery> => {
    const target = await findTarget(delivery);
    if ('problem' in target) {
      const { id, executionId, ensemble, version } = delivery;
      const about = { delivery: id, executionId, ensemble, version };
      logger.warn(about, `a delivery can not be sent by this process, and waits: ${target.problem}`);
      return withoutAttempt(delivery, 'pending', clock.now() + UNREADABLE_MS);
    }
    if (!(await receivers.admit(delivery.receiver))) {
      observer.paused(delivery);
      return withoutAttempt(delivery, 'paused');
    }
    const host = target.type === 'webhook' ? new URL(target.url).host : delivery.receiver;
    return slots.run(host, undefined, () => sendTo(delivery, target, until));
  };

  const lanes = createDeliveryLanes({ store, clock, logger, send, onDue: dependencies.wake });

  /** Continues jobs that send deliveries again, probes paused receivers, and deletes old deliveries. */
  const care = async (): Promise<void> => {
    const now = clock.now();
    if (now - caredAt < CARE_EVERY_MS && !isReplaying) return;
    caredAt = now;
    isReplaying = await replays.advance();
    if (isReplaying) dependencies.wake(now);
    probeAt = await receivers.probe();
    if (now - purgedAt < PURGE_EVERY_MS) return;
    purgedAt = now;
    const portions = inPortions(clock, PURGED_AT_ONCE);
    const purge = (limit: number) =>
      andThen(store.purge(now - dependencies.retentionMs, limit), (deleted) => deleted === limit);
    while (await portions.next(purge));
  };

  const deliverDue = async (): Promise<number | undefined> => {
    isSender = true;
    do {
      await care();
      await lanes.pump();
      await lanes.idle();
    } while (isReplaying);
    // What was stored in the meantime.
    const next = await lanes.pump();
    await lanes.idle();
    return next;
  };

  const nextAt = (next: number | undefined): number | undefined =>
    next === undefined || probeAt === undefined ? (next ?? probeAt) : Math.min(next, probeAt);

  return {
    task: {
      async advance({ waits }) {
        if (waits) return { nextAt: await deliverDue() };
        if (!isUsed) return { nextAt: undefined };
        isSender = true;
        await care();
        const next = nextAt(await lanes.pump());
        return { nextAt: next, ...(storage.capabilities.shared && { looksAt: clock.now() + POLL_MS }) };
      },
      logFailure: (err, againInMs) =>
        logger.warn({ err, againInMs }, 'deliveries could not be sent; they are sent later, and none is lost'),
    },
    use() {
      isUsed = true;
    },
    replay() {
      isReplaying = true;
    },
    deliverDue,
    async close(graceMs) {
      // A process that has sent nothing, such as a command on a store, leaves what is due to others.
      if (!isSender) return;
      if (graceMs > 0) await lanes.pump().catch(() => undefined);
      await new Promise<void>((resolve) => {
        const cancel = clock.setTimer(graceMs, resolve);
        void lanes.stop().then(resolve).finally(cancel);
      });
    },
  };
}
