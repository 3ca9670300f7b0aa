/** Finds what the notifications of an ensemble send about an entry of a commit (the specification's kinds of events and its envelope). */

import type { CompiledEnsemble } from '../../engine/compiled/compiled-ensemble.ts';
import { deliveryId, type EventIdentity, eventId, type NewDelivery } from '../../engine/delivery/delivery.ts';
import type { NotificationTarget } from '../../engine/delivery/notification.ts';
import type { Outbox } from '../../engine/execution/execution-engine.port.ts';
import type { CommitEntry, ExecutionEnd, NewExecution, StepRecord } from '../../engine/execution/stored-execution.ts';
import type { Masking } from '../../engine/host/masking.port.ts';

/** An event of an entry, before anybody wants it. */
interface EntryEvent extends EventIdentity {
  /** The `data` of its envelope. */
  data(id: () => string): object;
}

/** @param json - writes a value with its secrets masked @returns undefined for an ensemble without notifications */
export function createOutbox(
  { name, stored: { version }, notifications }: CompiledEnsemble,
  json: Masking['json'],
): Outbox | undefined {
  const targets = notifications.flatMap((target, notification) => (target ? [{ ...target, notification }] : []));
  if (targets.length === 0) return undefined;

  const deliver = (event: EntryEvent, wanted: readonly (NotificationTarget & { notification: number })[]) => {
    const { executionId, event: kind, at } = event;
    const data = event.data(() => eventId(event));
    const body = json({ event: kind, timestamp: new Date(at).toISOString(), data }) as string;
    return wanted.map(
      ({ notification, receiver }): NewDelivery => ({
        id: deliveryId(event, notification),
        ...{ executionId, ensemble: name, version, notification, event: kind, receiver, body, createdAt: at },
      }),
    );
  };

  return (entry, execution, begunAt) => {
    let deliveries: NewDelivery[] | undefined;
    for (const event of eventsOf(entry, execution, begunAt)) {
      const wanted = targets.filter(({ events }) => events.has(event.event));
      if (wanted.length > 0) deliveries = [...(deliveries ?? []), ...deliver(event, wanted)];
    }
    return deliveries ? { ...entry, deliveries } : entry;
  };
}

function* eventsOf(entry: CommitEntry, execution: NewExecution, begunAt: number | undefined): Generator<EntryEvent> {
  const { id: executionId, ensemble, input } = execution;
  if (begunAt !== undefined) {
    const data = () => ({ id: executionId, ensemble, input });
    yield { executionId, event: 'execution.started', key: '', at: begunAt, data };
  }
  // The steps of a start are results that a retry keeps.
  if (!entry.start) for (const step of entry.steps) if (isResult(step)) yield completedEvent(executionId, step);
  if (entry.state) {
    const { value: state, expectedVersion, updatedAt: at } = entry.state;
    const data = (id: () => string) => ({ id: id(), executionId, state });
    yield { executionId, event: 'state.updated', key: String(expectedVersion + 1), at, data };
  }
  if (entry.end) yield* ended(execution, entry.end);
}

/** Whether a record is the result of an agent that succeeded. */
function isResult({ note, status, retryAt }: StepRecord): boolean {
  return note !== true && status === 'completed' && retryAt === undefined;
}

function completedEvent(executionId: string, step: StepRecord): EntryEvent {
  const { key, name: agent, output, startedAt } = step;
  const duration = Math.round(step.duration);
  const data = (id: () => string) => ({ id: id(), executionId, agent, output, duration });
  return { executionId, event: 'agent.completed', key, at: startedAt + duration, data };
}

function* ended(execution: NewExecution, end: ExecutionEnd): Generator<EntryEvent> {
  const { id, ensemble, createdAt, deadlineAt = createdAt } = execution;
  const { status, output, error, duration, finishedAt: at } = end;
  const about = { executionId: id, key: '', at };
  if (status === 'completed') {
    yield { ...about, event: 'execution.completed', data: () => ({ id, ensemble, status, output, duration }) };
  } else if (status === 'failed') {
    const { message = '' } = error ?? {};
    yield { ...about, event: 'execution.failed', data: () => ({ id, ensemble, status, error: { message }, duration }) };
  } else if (status === 'timed_out') {
    yield { ...about, event: 'execution.timeout', data: () => ({ id, duration, timeout: deadlineAt - createdAt }) };
  }
}
