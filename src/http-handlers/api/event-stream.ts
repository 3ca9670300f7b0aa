/** One execution's events as server-sent events, as fast as the reader takes them, with a heartbeat when there are none. */

import type { OrchestratorEvent } from '../../engine/events/event.ts';
import type { CancelTimer } from '../../engine/host/clock.port.ts';
import type { Masking } from '../../engine/host/masking.port.ts';
import type { HandlerDependencies } from '../call.ts';
import { countedBytes, HeldBytes } from '../request/byte-budget.ts';

/** Before an event, the caller's token is checked again when the last check is longer ago than this, in ms. */
const ALLOWED_FOR_MS = 1_000;

/** The caller that reads a stream. */
export interface StreamReader {
  /** Whether the caller may continue to read: checked at each heartbeat, and before an event at most once a second. */
  stillAllowed(): Promise<boolean>;
  /** Called when the stream ends. A second call has no effect. */
  release(): void;
}

/** @param after - the stream begins after the event with this id; undefined begins with the first event */
export function eventStream(
  dependencies: HandlerDependencies,
  executionId: string,
  after: string | undefined,
  reader: StreamReader,
): ReadableStream<Uint8Array> {
  const { orchestrator, heartbeatMs, setTimer, monotonic, logger, toJson } = dependencies;
  const toSend = holdTexts(dependencies.openFrom);
  const gone = new AbortController();
  const events = orchestrator.executions.events(executionId, { after, signal: gone.signal });
  const encoder = new TextEncoder();
  const unsent = new HeldBytes(dependencies.unsent);
  /** Whether the reader waits for an event. */
  let isWanted = false;
  let checkedAt = monotonic();
  let cancelBeat: CancelTimer = () => {};
  const stop = () => {
    cancelBeat();
    gone.abort();
    unsent.release();
    reader.release();
  };

  type Controller = ReadableStreamDefaultController<Uint8Array>;
  const fail = (controller: Controller, thrown: unknown) => {
    stop();
    logger.error({ err: thrown, executionId }, 'an event stream failed');
    controller.error(thrown);
  };
  const end = (controller: Controller) => {
    stop();
    controller.close();
  };
  /** Ends the stream when the caller may no longer read. @returns whether the stream is still open */
  const isOpen = async (controller: Controller): Promise<boolean> => {
    checkedAt = monotonic();
    const isAllowed = await reader.stillAllowed();
    if (gone.signal.aborted) return false;
    if (isAllowed) return true;
    end(controller);
    return false;
  };

  return new ReadableStream(
    {
      start(controller) {
        const beat = async () => {
          try {
            if (!(await isOpen(controller))) return;
          } catch (thrown) {
            if (!gone.signal.aborted) fail(controller, thrown);
            return;
          }
          // A reader with unread events needs no heartbeat.
          if (isWanted && controller.desiredSize === 0) controller.enqueue(encoder.encode(':\n\n'));
          cancelBeat = setTimer(heartbeatMs, beat);
        };
        cancelBeat = setTimer(heartbeatMs, beat);
      },
      // The reader has taken what was sent before.
      async pull(controller) {
        unsent.release();
        isWanted = true;
        try {
          // Without an event to send, the stream would not pull again.
          for (let sent = 0; sent === 0; ) {
            const { done, value } = await events.next();
            if (gone.signal.aborted) return;
            if (monotonic() - checkedAt > ALLOWED_FOR_MS && !(await isOpen(controller))) return;
            if (done) return end(controller);
            const chunks = toSend(value).map(({ id, event }) =>
              encoder.encode(`id: ${id}\nevent: ${event.event}\ndata: ${toJson(event)}\n\n`),
            );
            // Other readers have not taken their responses. This one can continue after its last event.
            const bytes = chunks.reduce((sum, { byteLength }) => sum + countedBytes(byteLength), 0);
            if (!unsent.holdUpTo(bytes)) return end(controller);
            for (const chunk of chunks) controller.enqueue(chunk);
            sent = chunks.length;
          }
        } catch (thrown) {
          if (!gone.signal.aborted) fail(controller, thrown);
        } finally {
          isWanted = false;
        }
      },
      cancel: stop,
      // Nothing is read ahead: an event stays in the store until the reader has taken the one before.
    },
    { highWaterMark: 0 },
  );
}

/** An event of a stream, and its id there. */
interface StreamEvent {
  readonly id: string;
  readonly event: OrchestratorEvent;
}
type TextEvent = StreamEvent & { readonly event: OrchestratorEvent<'agent.delta'> };

/**
 * @returns a function that gives the events to send in place of an event: a text without its held end, or what was held before the
 *   event that ends it
 */
function holdTexts(openFrom: Masking['openFrom']): (next: StreamEvent) => readonly StreamEvent[] {
  const held = new Map<string, TextEvent>();
  const release = (key: string): readonly StreamEvent[] => {
    const before = held.get(key);
    held.delete(key);
    return before ? [before] : [];
  };
  return (next) => {
    if (!isText(next)) {
      const { key } = next.event.data as { readonly key?: string };
      // An event without a step, such as the end of the execution, ends all texts.
      const keys = key === undefined ? [...held.keys()] : [key];
      return [...keys.flatMap(release), next];
    }
    const { key } = next.event.data;
    const text = (held.get(key)?.event.data.text ?? '') + next.event.data.text;
    const from = openFrom(text);
    held.delete(key);
    if (from < text.length) held.set(key, withText(next, text.slice(from)));
    return from > 0 ? [withText(next, text.slice(0, from))] : [];
  };
}

function isText(one: StreamEvent): one is TextEvent {
  return one.event.event === 'agent.delta';
}

function withText({ id, event }: TextEvent, text: string): TextEvent {
  return { id, event: { ...event, data: { ...event.data, text } } };
}
