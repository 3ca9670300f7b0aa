/** Connects the sending of deliveries to the storage, the timer and the options of an orchestrator. */

import { andThen } from '../../engine/base/maybe-promise.ts';
import { toMs } from '../../engine/base/time/duration.ts';
import type { CompileHost } from '../../engine/definition/compile/triggers/compile-host.ts';
import type { StoredDelivery } from '../../engine/delivery/delivery.ts';
import { METRICS } from '../../engine/events/measurement.ts';
import type { Emitter } from '../../engine/events/rules/emitter.ts';
import type { IdSource } from '../../engine/execution/id.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { Masking } from '../../engine/host/masking.port.ts';
import type { Tracing } from '../../engine/host/telemetry.port.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { type ConnectedOptions, DEFAULT_RETENTION } from '../options/options.ts';
import type { SteadyClock } from '../timed/steady-clock.ts';
import type { TimedWork } from '../timed/timed-work.ts';
import { createDeliveries, type Deliveries } from './deliveries.ts';
import { createDeliveryService, type DeliveryObserver, type DeliveryService } from './delivery-service.ts';
import { createReceivers } from './receivers.ts';
import { createReplays } from './replays.ts';
import { createTargets } from './targets.ts';

export interface ConnectedDeliveries extends DeliveryService {
  /** The public `orchestrator.deliveries`. */
  readonly api: Deliveries;
  /** See `ServedDependencies`. */
  deliver(): Promise<void>;
  /** A commit has stored deliveries. */
  onStored(): void;
  attach(work: TimedWork): void;
}

export interface DeliveryDependencies {
  readonly storage: Storage;
  readonly clock: SteadyClock;
  readonly logger: Logger;
  readonly masking: Masking;
  readonly host: CompileHost;
  readonly brand: string;
  readonly events: Emitter;
  readonly ids: IdSource;
  readonly ensembles: ReadonlyMap<string, LoadedEnsemble>;
  readonly tracing: Tracing | undefined;
}

export function connectDeliveries(
  { mail = {}, http, retention = DEFAULT_RETENTION }: ConnectedOptions,
  dependencies: DeliveryDependencies,
): ConnectedDeliveries {
  const { storage, clock, logger, masking, host, brand, ensembles, events, ids, tracing } = dependencies;
  const { documents, deliveries: store } = storage;
  const receivers = createReceivers(documents, store, clock);
  const replays = createReplays(documents, store, { clock, ids, shared: storage.capabilities.shared });
  let timed: TimedWork | undefined;
  /** Whether deliveries were stored since the last `deliver`. */
  let hasStored = false;
  const wake = (at: number) => timed?.wake(service.task, at);
  const findTarget = createTargets(storage.definitions, host);
  const service = createDeliveryService({
    ...{ storage, clock, logger, http, brand, tracing, senders: mail, mask: masking.text, wake },
    findTarget,
    receivers,
    observer: observeDeliveries(logger, events),
    replays,
    retentionMs: toMs(retention),
  });
  for (const { compiled } of ensembles.values()) if (compiled.notifications.length > 0) service.use();
  const wakeNow = () => {
    service.use();
    wake(clock.now());
  };
  return {
    ...service,
    api: createDeliveries({ store, receivers, replays, service, findTarget, clock, wake: wakeNow }),
    async deliver() {
      if (!hasStored) return;
      hasStored = false;
      await service.deliverDue();
    },
    onStored() {
      hasStored = true;
      wakeNow();
    },
    attach(work) {
      timed = work;
    },
  };
}

/** The storage, which says when a commit has stored deliveries. */
export function withOutboxNotice(storage: Storage, onStored: () => void): Storage {
  return {
    ...storage,
    commit(worker, batch) {
      const answers = storage.commit(worker, batch);
      if (!batch.some(({ deliveries }) => deliveries !== undefined)) return answers;
      return andThen(answers, (stored) => {
        onStored();
        return stored;
      });
    },
  };
}

function observeDeliveries(logger: Logger, events: Emitter): DeliveryObserver {
  const lineOf = ({ id, executionId, ensemble, event }: StoredDelivery) => ({
    ...{ delivery: id, executionId, ensemble, event },
  });
  const dataOf = ({ id, executionId, ensemble, event, receiver }: StoredDelivery) => ({
    ...{ executionId, ensemble, delivery: id, receiver, notified: event },
  });
  return {
    ended(delivery, { settled, attempt }) {
      if (settled.status === 'pending') return;
      const { attempt: attempts, status, error } = attempt;
      const isFailed = settled.status === 'failed';
      if (isFailed)
        logger.warn({ ...lineOf(delivery), attempts, status, error }, 'a delivery failed, and is not sent again');
      // One that was sent again says nothing about how long deliveries take.
      if (!isFailed && delivery.attemptsBefore === 0) {
        const lag = attempt.at + attempt.duration - delivery.createdAt;
        events.measure?.(METRICS.deliveryLag, [delivery.ensemble], lag / 1000);
      }
      if (!events.hasListeners) return;
      const data = { ...dataOf(delivery), attempts };
      if (!isFailed) events.emit('delivery.succeeded', data);
      else {
        const why = { ...(status !== undefined && { status }), ...(error !== undefined && { error }) };
        events.emit('delivery.failed', { ...data, ...why });
      }
    },
    paused(delivery) {
      if (events.hasListeners) events.emit('delivery.paused', dataOf(delivery));
    },
    receiverPaused(delivery, reason) {
      const why = reason === 'gone' ? 'it answered 410' : 'its first attempts failed for three days';
      const { receiver } = delivery;
      logger.warn(
        { ...lineOf(delivery), receiver },
        `a receiver is paused: ${why}; its deliveries wait until it is resumed`,
      );
      if (events.hasListeners) events.emit('endpoint.paused', { ...dataOf(delivery), reason });
    },
  };
}
