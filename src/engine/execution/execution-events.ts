/** The events of one execution as a view of what is stored of it: they can be read again, from any of them on, in any process. */

import { endEvent } from '../model/end-event.ts';
import type { OrchestratorEvent } from '../model/event.ts';
import type { Execution } from '../model/execution.ts';
import { isFinal } from '../model/execution.ts';
import type { StepRecord } from '../model/stored-execution.ts';
import type { Clock } from '../ports/clock.ts';
import type { Storage } from '../ports/storage.ts';

/** An event and its id: its place in the execution, counted from 1. */
export interface NumberedEvent {
  readonly id: string;
  readonly event: OrchestratorEvent;
}

/** Tells when something of an execution may have been stored. */
export interface WakeSource {
  onExecution(id: string, listener: () => void): () => void;
}

const PAGE = 250;
/** Other processes store without telling this one: look again after so long. */
const POLL_MS = 500;

/**
 * The start is event 1, the n-th stored result event n + 1, the end the one behind the last result. A result that is
 * still between two attempts comes when it is final.
 */
export async function* executionEvents(source: {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly events: WakeSource;
  readonly id: string;
  /** Events up to this id are left out. */
  readonly after: number;
  readonly signal?: AbortSignal | undefined;
}): AsyncIterableIterator<NumberedEvent> {
  const { storage, clock, events, id, after, signal } = source;
  const alarm = createAlarm();
  const forget = events.onExecution(id, alarm.ring);
  const stop = () => alarm.ring();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    for (let position = 0; !signal?.aborted; ) {
      const execution = await storage.getExecution(id);
      if (!execution) return;
      if (position === 0) {
        if (after < 1) yield { id: '1', event: started(execution) };
        position = 1;
      }
      position = yield* stored(storage, execution, position, after);
      if (isFinal(execution.status)) {
        if (position >= after) yield { id: String(position + 1), event: endEvent(execution) };
        return;
      }
      await alarm.wait(clock, POLL_MS);
    }
  } finally {
    forget();
    signal?.removeEventListener('abort', stop);
  }
}

async function* stored(
  storage: Storage,
  execution: Execution,
  from: number,
  after: number,
): AsyncGenerator<NumberedEvent, number> {
  let position = from;
  for (;;) {
    const steps = await storage.listSteps(execution.id, { after: position - 1, limit: PAGE });
    for (const step of steps) {
      if (step.retryAt !== undefined) return position;
      position += 1;
      if (position > after) yield { id: String(position), event: ofStep(execution, step) };
    }
    if (steps.length < PAGE) return position;
  }
}

function at(ms: number): string {
  return new Date(ms).toISOString();
}

function started({ id, ensemble, input, createdAt }: Execution): OrchestratorEvent {
  return { event: 'execution.started', timestamp: at(createdAt), data: { id, ensemble, input } };
}

function ofStep({ id: executionId }: Execution, step: StepRecord): OrchestratorEvent {
  const { key, name: agent, output, duration, attempts, error, startedAt } = step;
  const timestamp = at(startedAt + duration);
  if (!error) return { event: 'agent.completed', timestamp, data: { executionId, agent, key, output, duration } };
  const { code, message } = error;
  return {
    event: 'agent.failed',
    timestamp,
    data: { executionId, agent, key, error: { code, message }, attempts, duration },
  };
}

function createAlarm() {
  let rung = false;
  let wake: (() => void) | undefined;
  return {
    ring() {
      rung = true;
      wake?.();
    },
    async wait(clock: Clock, ms: number): Promise<void> {
      if (!rung) {
        await new Promise<void>((resolve) => {
          wake = resolve;
          const cancel = clock.setTimer(ms, resolve);
          wake = () => {
            cancel();
            resolve();
          };
        });
      }
      rung = false;
      wake = undefined;
    },
  };
}
