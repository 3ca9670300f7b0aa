/** The events of one execution as a view of what is stored of it: they can be read again, from any of them on, in any process. */

import { endEvent } from '../model/end-event.ts';
import type { OrchestratorEvent } from '../model/event.ts';
import { isFinal } from '../model/execution.ts';
import type { NewExecution, StepRecord } from '../model/stored-execution.ts';
import type { Storage } from '../ports/storage.ts';
import type { ExecutionWatch } from './watch-executions.ts';

/** An event and its id: its place in the execution, counted from 1. */
export interface NumberedEvent {
  readonly id: string;
  readonly event: OrchestratorEvent;
}

/** Steps, and bytes of their outputs, that a reader has at hand. */
const PAGE = 250;
const READ_BYTES = 1024 * 1024;

/** Where a reader stands: the id of the last event, and the key of its step. */
interface Place {
  readonly position: number;
  readonly key: string | undefined;
}

/**
 * The start is event 1, the n-th stored result event n + 1, the end the one behind the last result. A result that is
 * still between two attempts comes when it is final.
 */
export async function* executionEvents(source: {
  readonly storage: Storage;
  readonly watch: ExecutionWatch;
  readonly id: string;
  /** Events up to this id are left out. */
  readonly after: number;
  readonly signal?: AbortSignal | undefined;
}): AsyncIterableIterator<NumberedEvent> {
  const { storage, watch, id, after, signal } = source;
  const follower = watch.follow(id);
  signal?.addEventListener('abort', follower.wake, { once: true });
  try {
    let place: Place | undefined;
    while (!signal?.aborted) {
      const known = await storage.getStatus(id);
      if (!known) return;
      if (!place) {
        const accepted = after < 1 ? await storage.getAccepted(id) : undefined;
        if (accepted) yield { id: '1', event: started(accepted) };
        place = await placeOf(storage, id, after);
      }
      place = yield* stored(storage, id, place, after);
      if (isFinal(known.status)) {
        const ended = place.position >= after ? await storage.getExecution(id, { agents: false }) : undefined;
        if (ended) yield { id: String(place.position + 1), event: endEvent(ended) };
        return;
      }
      await follower.wait(place.key);
    }
  } finally {
    follower.close();
    signal?.removeEventListener('abort', follower.wake);
  }
}

/** Events up to an id are skipped without being read. */
async function placeOf(storage: Storage, id: string, after: number): Promise<Place> {
  if (after < 2) return { position: 1, key: undefined };
  const { skipped, key } = await storage.skipRuns(id, after - 1);
  return { position: skipped + 1, key };
}

async function* stored(storage: Storage, id: string, from: Place, after: number): AsyncGenerator<NumberedEvent, Place> {
  let { position, key } = from;
  for (;;) {
    const steps = await storage.listSteps(id, { after: key, limit: PAGE, bytes: READ_BYTES });
    if (steps.length === 0) return { position, key };
    for (const step of steps) {
      if (step.retryAt !== undefined) return { position, key };
      position += 1;
      key = step.key;
      if (position > after) yield { id: String(position), event: ofStep(id, step) };
    }
  }
}

function at(ms: number): string {
  return new Date(ms).toISOString();
}

function started({ id, ensemble, input, createdAt }: NewExecution): OrchestratorEvent {
  return { event: 'execution.started', timestamp: at(createdAt), data: { id, ensemble, input } };
}

function ofStep(executionId: string, step: StepRecord): OrchestratorEvent {
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
