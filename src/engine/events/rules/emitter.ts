/** Delivers events to listeners in this process: typed, isolated from each other, and without cost when nobody listens. */

import { EventEmitter } from 'eventemitter3';
import { cloneJson } from '../../base/json/json.ts';
import { suggestName } from '../../base/suggest-name.ts';
import type { Clock } from '../../host/clock.port.ts';
import type { Logger } from '../../host/logger.port.ts';
import { EVENT_KINDS, EVENTS_APART, type EventData, type EventKind, type OrchestratorEvent } from '../event.ts';
import { type Measure, measurementsOf } from '../measurement.ts';
import type { TextEvent } from './live-texts.ts';

/** @typeParam K - a kind of event, or `*` for every event */
export type EventListener<K extends EventKind | '*'> = (
  event: OrchestratorEvent<K extends '*' ? EventKind : K>,
) => void;

export interface Emitter {
  /** @returns a function that removes the listener @throws TypeError for an unknown event, and for a listener that is not a function */
  on<K extends EventKind | '*'>(event: K, listener: EventListener<K>): () => void;
  /** Listens to every event of one execution, in order. @returns a function that removes the listener */
  onExecution(id: string, listener: (event: OrchestratorEvent) => void): () => void;
  /**
   * Calls `listener` when something of an execution was stored: at each of its events, and at each `wake`.
   * @returns a function that removes the listener
   */
  onStored(id: string, listener: () => void): () => void;
  /** Listens to the texts that the models of one execution write. @returns a function that removes the listener */
  onText(id: string, listener: (event: TextEvent) => void): () => void;
  /** Listens to what is measured, for metrics. @returns a function that removes the listener */
  onMeasured(listener: Measure): () => void;
  /** Undefined while nobody listens to it. Events are measured as they are sent. */
  readonly measure: Measure | undefined;
  /** Something of an execution was stored, without an event. */
  wake(id: string): void;
  /** Whether there is any listener: events are built only then. */
  readonly hasListeners: boolean;
  emit<K extends EventKind>(event: K, data: EventData[K]): void;
  /** Delivers an event that was built elsewhere. */
  send(event: OrchestratorEvent): void;
}

/** The name under which a listener receives every event. */
const ALL = '*';

export function createEmitter(clock: Clock, logger: Logger): Emitter {
  const byKind = new EventEmitter<Record<string, [OrchestratorEvent]>>();
  const byExecution = new EventEmitter<Record<string, [OrchestratorEvent]>>();
  const texts = new EventEmitter<Record<string, [TextEvent]>>();
  const wakes = new EventEmitter<Record<string, []>>();
  const measures = new Set<Measure>();
  let listeners = 0;

  // A listener must not break its emitter: what it throws or rejects with is only logged.
  const isolate = (listener: (event: never) => unknown) => (event: OrchestratorEvent) => {
    const report = (err: unknown) =>
      logger.error({ err, event: event.event, executionId: event.data.executionId }, 'a listener failed');
    try {
      const answer = listener(event as never);
      if (answer instanceof Promise) answer.catch(report);
    } catch (thrown) {
      report(thrown);
    }
  };
  /** Counts a listener. @returns a function that removes it once */
  const count = (remove: () => void) => {
    listeners += 1;
    let listening = true;
    return () => {
      if (!listening) return;
      listening = false;
      listeners -= 1;
      remove();
    };
  };
  const listen = (emitter: typeof byKind, name: string, listener: (event: never) => unknown) => {
    const isolated = isolate(listener);
    emitter.on(name, isolated);
    return count(() => emitter.off(name, isolated));
  };

  const measure: Measure = (...measured) => {
    for (const listener of measures) listener(...measured);
  };

  // The run continues to use the values of an event, so listeners get a frozen copy: none can change what another receives.
  const send = (event: OrchestratorEvent) => {
    const { executionId: id } = event.data;
    if (measures.size > 0)
      for (const { metric, labels, value } of measurementsOf(event)) measure(metric, labels, value);
    const isOfRun = !EVENTS_APART.has(event.event);
    // Readers of stored events get no copy of the event: they read it from the storage. A text is not stored.
    if (event.event === 'agent.delta') texts.emit(id, event);
    else if (isOfRun) wakes.emit(id);
    const kinds = [event.event, ALL].filter((kind) => byKind.listenerCount(kind) > 0);
    const hasReaders = isOfRun && byExecution.listenerCount(id) > 0;
    if (kinds.length === 0 && !hasReaders) return;
    const copy = freeze(cloneJson(event));
    for (const kind of kinds) byKind.emit(kind, copy);
    if (hasReaders) byExecution.emit(id, copy);
  };

  return {
    on(event, listener) {
      checkListener(event, listener);
      return listen(byKind, event, listener);
    },
    onExecution: (id, listener) => listen(byExecution, id, listener),
    onStored(id, listener) {
      wakes.on(id, listener);
      return count(() => wakes.off(id, listener));
    },
    onText(id, listener) {
      texts.on(id, listener);
      return count(() => texts.off(id, listener));
    },
    onMeasured(listener) {
      measures.add(listener);
      return count(() => measures.delete(listener));
    },
    get measure() {
      return measures.size > 0 ? measure : undefined;
    },
    wake(id) {
      wakes.emit(id);
    },
    get hasListeners() {
      return listeners > 0;
    },
    emit(event, data) {
      send({ event, timestamp: new Date(clock.now()).toISOString(), data } as OrchestratorEvent);
    },
    send,
  };
}

function checkListener(event: string, listener: unknown): void {
  if (typeof listener !== 'function') throw new TypeError(`on: the listener of \`${event}\` must be a function`);
  if (event === ALL || Object.hasOwn(EVENT_KINDS, event)) return;
  const kinds = Object.keys(EVENT_KINDS);
  const near = suggestName(String(event), kinds);
  throw new TypeError(
    `on: there is no event \`${event}\`; ${near === undefined ? `there are ${kinds.join(', ')}, and \`*\` for all of them` : `did you mean \`${near}\`?`}`,
  );
}

function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}
