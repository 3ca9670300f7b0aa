/** Tells observers in this process about events: typed, isolated, and free when nobody listens. */

import { EventEmitter } from 'eventemitter3';
import { cloneJson } from '../json.ts';
import { EVENT_KINDS, type EventData, type EventKind, executionOf, type OrchestratorEvent } from '../model/event.ts';
import type { Clock } from '../ports/clock.ts';
import type { Logger } from '../ports/logger.ts';
import { suggestName } from '../suggest-name.ts';

export type EventListener<K extends EventKind> = (event: OrchestratorEvent<K>) => void;

export interface Emitter {
  /** @returns forgets the listener; @throws TypeError for an event that there is not, and for no function */
  on<K extends EventKind>(event: K, listener: EventListener<K>): () => void;
  /** Every event of one execution, in order. @returns forgets the listener */
  onExecution(id: string, listener: (event: OrchestratorEvent) => void): () => void;
  /** Whether anybody would hear an event now: events are built only then. */
  readonly heard: boolean;
  emit<K extends EventKind>(event: K, data: EventData[K]): void;
  /** Tells of an event that was made elsewhere. */
  send(event: OrchestratorEvent): void;
}

export function createEmitter(clock: Clock, logger: Logger): Emitter {
  const byKind = new EventEmitter<Record<string, [OrchestratorEvent]>>();
  const byExecution = new EventEmitter<Record<string, [OrchestratorEvent]>>();
  let listeners = 0;

  // A listener is a guest: what it throws, or rejects with, is logged and goes no further.
  const guard = (listener: (event: never) => unknown) => (event: OrchestratorEvent) => {
    const report = (thrown: unknown) => logger.error({ err: thrown, event: event.event }, 'a listener failed');
    try {
      const answer = listener(event as never);
      if (answer instanceof Promise) answer.catch(report);
    } catch (thrown) {
      report(thrown);
    }
  };
  const listen = (emitter: typeof byKind, name: string, listener: (event: never) => unknown) => {
    const guarded = guard(listener);
    emitter.on(name, guarded);
    listeners += 1;
    let listening = true;
    return () => {
      if (!listening) return;
      listening = false;
      listeners -= 1;
      emitter.off(name, guarded);
    };
  };

  // The run goes on with what it tells of: listeners get a copy, and none can change what the next one hears.
  const send = (event: OrchestratorEvent) => {
    const id = executionOf(event);
    if (byKind.listenerCount(event.event) === 0 && byExecution.listenerCount(id) === 0) return;
    const copy = freeze(cloneJson(event));
    byKind.emit(event.event, copy);
    byExecution.emit(id, copy);
  };

  return {
    on(event, listener) {
      checkListener(event, listener);
      return listen(byKind, event, listener);
    },
    onExecution: (id, listener) => listen(byExecution, id, listener),
    get heard() {
      return listeners > 0;
    },
    emit(event, data) {
      send({ event, timestamp: new Date(clock.now()).toISOString(), data } as OrchestratorEvent);
    },
    send,
  };
}

function checkListener(event: string, listener: unknown): void {
  if (typeof listener !== 'function') throw new TypeError(`on: what listens to \`${event}\` must be a function`);
  if (Object.hasOwn(EVENT_KINDS, event)) return;
  const kinds = Object.keys(EVENT_KINDS);
  const near = suggestName(String(event), kinds);
  throw new TypeError(
    `on: there is no event \`${event}\`; ${near === undefined ? `there are ${kinds.join(', ')}` : `did you mean \`${near}\`?`}`,
  );
}

function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}
