/** One execution's events as server-sent events: as fast as the reader takes them, with a sign of life when there are none. */

import type { CancelTimer } from '../../engine/ports/clock.ts';
import type { HandlerParts } from '../call.ts';

/**
 * @param after - id of the event behind which to begin
 * @param release - called once, when the stream is over
 */
export function eventStream(
  parts: HandlerParts,
  executionId: string,
  after: string | undefined,
  release: () => void,
): ReadableStream<Uint8Array> {
  const { orchestrator, heartbeatMs, setTimer, logger } = parts;
  const gone = new AbortController();
  const events = orchestrator.executions.events(executionId, { after, signal: gone.signal });
  const encoder = new TextEncoder();
  let cancelBeat: CancelTimer = () => {};
  const over = () => {
    cancelBeat();
    release();
  };

  return new ReadableStream({
    start(controller) {
      const beat = () => {
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
        if (done) {
          over();
          controller.close();
          return;
        }
        controller.enqueue(
          encoder.encode(`id: ${value.id}\nevent: ${value.event.event}\ndata: ${JSON.stringify(value.event)}\n\n`),
        );
      } catch (thrown) {
        over();
        logger.error({ err: thrown, executionId }, 'a stream of events broke off');
        controller.error(thrown);
      }
    },
    cancel() {
      over();
      gone.abort();
    },
  });
}
