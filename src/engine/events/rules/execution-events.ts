/** The events of one execution, derived from what is stored of it: any process can read them again, from any event on. */

import { otherRecord, toStepEvent } from '../../ensemble/step-event.ts';
import { endEvent } from '../../execution/end-event.ts';
import { type ExecutionSummary, isFinal } from '../../execution/execution.ts';
import type { NewExecution, StepRecord } from '../../execution/stored-execution.ts';
import type { RecordReader } from '../../storage/storage.port.ts';
import type { ExecutionOfEvent, OrchestratorEvent } from '../event.ts';
import { createLiveTexts, type LiveTexts, type TextEvent } from './live-texts.ts';
import type { ExecutionWatch } from './watch-executions.ts';

/** Gives the event loop turns, so that many events, or large ones, block nothing. */
export interface Turns {
  pause(): Promise<void>;
}

/** Knows what the models of this process write. */
export interface TextSource {
  onText(id: string, listener: (event: TextEvent) => void): () => void;
}

/** An event and its id: a number that grows in the execution, beginning with 1. Some numbers have no event. */
export interface StoredEvent {
  /** An `agent.delta` is not stored: it has the id of the stored event before it. */
  readonly id: string;
  readonly event: OrchestratorEvent;
}

/** The maximum number of records, and bytes of their outputs, that a reader holds in memory. */
const PAGE = 250;
const READ_BYTES = 1024 * 1024;

/** The position of a reader: the id that belongs to the last record, and the key of the record. */
interface ReadPosition {
  readonly position: number;
  readonly key: string | undefined;
}

/**
 * The start is event 1, the n-th stored record has the id n + 1, and the end follows the last record. A record that is not an event leaves
 * a gap, so an id never moves. An attempt that is replaced later is not an event: marks report its failure and the final result.
 * In between come the texts that models write in this process.
 */
export async function* executionEvents(source: {
  readonly records: RecordReader;
  readonly watch: ExecutionWatch;
  readonly events: TextSource;
  readonly id: string;
  readonly turns: Turns;
  /** Events up to this id are skipped. */
  readonly after: number;
  readonly signal?: AbortSignal | undefined;
}): AsyncIterableIterator<StoredEvent> {
  const { records, watch, events, id, turns, after, signal } = source;
  const follower = watch.follow(id);
  const texts = createLiveTexts();
  const forget = events.onText(id, texts.push);
  signal?.addEventListener('abort', follower.wake, { once: true });
  try {
    let place: ReadPosition | undefined;
    while (!signal?.aborted) {
      const known = await records.executions.getStatus(id);
      if (!known) return;
      if (!place) {
        const accepted = after < 1 ? await records.executions.getAccepted(id) : undefined;
        if (accepted) yield { id: '1', event: startedEvent(accepted) };
        place = await placeOf(records, id, after);
      }
      place = yield* stored(records, turns, known, place, after);
      if (isFinal(known.status)) {
        const ended = place.position >= after ? await records.executions.get(id, { agents: false }) : undefined;
        if (ended) yield { id: String(place.position + 1), event: endEvent(ended) };
        return;
      }
      yield* untilWoken(follower.wait(place.key), texts, String(place.position));
    }
  } finally {
    forget();
    follower.close();
    signal?.removeEventListener('abort', follower.wake);
  }
}

/** The texts that come before the reader is woken. */
async function* untilWoken(waking: Promise<void>, texts: LiveTexts, id: string): AsyncGenerator<StoredEvent, void> {
  let isWoken = false;
  const woken = waking.then(() => {
    isWoken = true;
  });
  for (;;) {
    await Promise.race([woken, texts.next()]);
    for (const event of texts.take()) yield { id, event };
    if (isWoken) return;
  }
}

/** Finds the position after an id, without reading the events before it. */
async function placeOf(records: RecordReader, id: string, after: number): Promise<ReadPosition> {
  if (after < 2) return { position: 1, key: undefined };
  const { skipped, key } = await records.executions.skipSteps(id, after - 1);
  return { position: skipped + 1, key };
}

async function* stored(
  records: RecordReader,
  turns: Turns,
  { id, ensemble }: ExecutionSummary,
  from: ReadPosition,
  after: number,
): AsyncGenerator<StoredEvent, ReadPosition> {
  let { position, key } = from;
  for (;;) {
    const query = { after: key, limit: PAGE, bytes: READ_BYTES, notes: true };
    await turns.pause();
    const steps = await records.executions.listSteps(id, query);
    if (steps.length === 0) return { position, key };
    for (const step of steps) {
      // What was read ahead, and what the reader does with an event, may take long.
      await turns.pause();
      position += 1;
      key = step.key;
      const event = position > after ? await ofStep(records, { executionId: id, ensemble }, step) : undefined;
      if (event) yield { id: String(position), event };
    }
  }
}

function at(ms: number): string {
  return new Date(ms).toISOString();
}

function startedEvent({ id, ensemble, input, createdAt }: NewExecution): OrchestratorEvent {
  return { event: 'execution.started', timestamp: at(createdAt), data: { executionId: id, ensemble, id, input } };
}

async function ofStep(
  { executions }: RecordReader,
  about: ExecutionOfEvent,
  record: StepRecord,
): Promise<OrchestratorEvent | undefined> {
  const otherKey = otherRecord(record);
  const other = otherKey === undefined ? undefined : await executions.getStep(about.executionId, otherKey);
  const made = toStepEvent(record, other);
  if (!made) return undefined;
  const timestamp = at(record.startedAt + record.duration);
  return { event: made.event, timestamp, data: { ...about, ...made.details } } as OrchestratorEvent;
}
