/** One execution's events as server-sent events: as fast as the reader takes them, with a sign of life when there are none. */

import type { CancelTimer } from '../../engine/ports/clock.ts';
import type { HandlerParts } from '../call.ts';

/** A caller is asked for again before an event when the last time is longer ago than this, ms. */
const ALLOWED_FOR_MS = 1_000;

/** Who reads a stream. */
export interface StreamReader {
  /** Whether the caller may read on: asked at each sign of life, and before an event once a second at most. */
  stillAllowed(): Promise<boolean>;
  /** Called when the stream is over. Calling it again does nothing. */
  release(): void;
}

/**
 * @param after - id of the event behind which to begin
 */
export function eventStream(
  parts: HandlerParts,
  executionId: string,
  after: string | undefined,
  reader: StreamReader,
): ReadableStream<Uint8Array> {
  const { orchestrator, heartbeatMs, setTimer, monotonic, logger, toJson } = parts;
  const gone = new AbortController();
  const events = orchestrator.executions.events(executionId, { after, signal: gone.signal });
  const encoder = new TextEncoder();
  let askedAt = monotonic();
  let cancelBeat: CancelTimer = () => {};
  const stop = () => {
    cancelBeat();
    gone.abort();
    reader.release();
  };

  type Controller = ReadableStreamDefaultController<Uint8Array>;
  const breakOff = (controller: Controller, thrown: unknown) => {
    stop();
    logger.error({ err: thrown, executionId }, 'a stream of events broke off');
    controller.error(thrown);
  };
  /** Ends the stream of a caller who may not read on. @returns whether there is anything left to do */
  const isOpen = async (controller: Controller): Promise<boolean> => {
    askedAt = monotonic();
    const isAllowed = await reader.stillAllowed();
    if (gone.signal.aborted) return false;
    if (isAllowed) return true;
    stop();
    controller.close();
    return false;
  };

  return new ReadableStream({
    start(controller) {
      const beat = async () => {
        try {
          if (!(await isOpen(controller))) return;
        } catch (thrown) {
          if (!gone.signal.aborted) breakOff(controller, thrown);
          return;
        }
        // A reader that still has something to read needs no sign of life.
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(':\n\n'));
        cancelBeat = setTimer(heartbeatMs, beat);
      };
      cancelBeat = setTimer(heartbeatMs, beat);
    },
    async pull(controller) {
      try {
        const { done, value } = await events.next();
        if (gone.signal.aborted) return;
        if (monotonic() - askedAt > ALLOWED_FOR_MS && !(await isOpen(controller))) return;
        if (done) {
          stop();
          controller.close();
          return;
        }
        controller.enqueue(
          encoder.encode(`id: ${value.id}\nevent: ${value.event.event}\ndata: ${toJson(value.event)}\n\n`),
        );
      } catch (thrown) {
        if (!gone.signal.aborted) breakOff(controller, thrown);
      }
    },
    cancel: stop,
  });
}
