/** Reports what became of deliveries: to the log, and to the listeners of the orchestrator. */

import type { Emitter } from '../../engine/events/rules/emitter.ts';
import type { StoredDelivery } from '../../engine/delivery/delivery.ts';
import { METRICS } from '../../engine/events/measurement.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { DeliveryObserver } from './delivery-service.ts';

export function observeDeliveries(logger: Logger, events: Emitter): DeliveryObserver {
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
