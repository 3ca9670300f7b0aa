/** The events of one execution as an async iterator: it misses no event, and ends when the execution ends. */

import type { OrchestratorEvent } from '../event.ts';

/** The maximum number of events kept for late or slow readers; then the oldest are dropped. */
export const MAX_KEPT_EVENTS = 10_000;

export interface EventStream {
  push(event: OrchestratorEvent): void;
  /** No more events follow: all readers end. */
  end(): void;
  /** Reads from the first event that is still kept. Each call starts a new reader. */
  read(): AsyncIterableIterator<OrchestratorEvent>;
}

/** The events of one execution since its start. */
export interface KeptEvents {
  /** Reads from the first event on; undefined when the events were dropped. */
  read(): AsyncIterableIterator<OrchestratorEvent> | undefined;
  /** The execution has ended. @param last - the event of its end, if the source did not emit it */
  end(last?: OrchestratorEvent): void;
  /** Drops the events, unless `read` was called. @returns whether they are kept */
  drop(): boolean;
}

export function keepEvents(
  source: { onExecution(id: string, listener: (event: OrchestratorEvent) => void): () => void },
  id: string,
): KeptEvents {
  let stream: EventStream | undefined = createEventStream();
  let hasReader = false;
  const forget = source.onExecution(id, (event) => {
    stream?.push(event);
    // The run may end in another process than the one in which it began.
    if (isEnd(event)) end();
  });
  let ended = false;
  const end = (last?: OrchestratorEvent) => {
    if (ended) return;
    ended = true;
    forget();
    if (last) stream?.push(last);
    stream?.end();
  };
  return {
    read() {
      hasReader = true;
      return stream?.read();
    },
    end,
    drop() {
      if (hasReader) return true;
      end();
      stream = undefined;
      return false;
    },
  };
}

function isEnd({ event }: OrchestratorEvent): boolean {
  return event.startsWith('execution.') && event !== 'execution.started';
}

export function createEventStream(): EventStream {
  let kept: OrchestratorEvent[] = [];
  let dropped = 0;
  let ended = false;
  let wake: (() => void)[] = [];
  const wakeAll = () => {
    const waiting = wake;
    wake = [];
    for (const resolve of waiting) resolve();
  };
  return {
    push(event) {
      kept.push(event);
      if (kept.length > 2 * MAX_KEPT_EVENTS) {
        dropped += kept.length - MAX_KEPT_EVENTS;
        kept = kept.slice(-MAX_KEPT_EVENTS);
      }
      wakeAll();
    },
    end() {
      ended = true;
      wakeAll();
    },
    async *read() {
      for (let position = 0; ; ) {
        position = Math.max(position, dropped);
        while (position < dropped + kept.length) {
          yield kept[position - dropped] as OrchestratorEvent;
          position += 1;
        }
        if (ended) return;
        await new Promise<void>((resolve) => wake.push(resolve));
      }
    },
  };
}
