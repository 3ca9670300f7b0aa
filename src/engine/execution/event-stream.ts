/** The events of one execution as an async iterator that misses none and ends with the run. */

import type { OrchestratorEvent } from '../model/event.ts';

/** Events kept for readers that come late or read slowly; past that the oldest are left out. */
export const MAX_KEPT_EVENTS = 10_000;

export interface EventStream {
  push(event: OrchestratorEvent): void;
  /** No more events come: readers end. */
  end(): void;
  /** From the first event that is still kept. Every call reads anew. */
  read(): AsyncIterableIterator<OrchestratorEvent>;
}

/** The events of one execution, heard from its start on. */
export interface KeptEvents {
  /** From the first event on; undefined when they were dropped before anybody asked for them. */
  read(): AsyncIterableIterator<OrchestratorEvent> | undefined;
  /** The run has ended. @param last - the event of its end, if it was not heard here */
  end(last?: OrchestratorEvent): void;
  /** Keeps them no longer, unless somebody has asked for them. @returns whether they are kept */
  drop(): boolean;
}

export function keepEvents(
  source: { onExecution(id: string, listener: (event: OrchestratorEvent) => void): () => void },
  id: string,
): KeptEvents {
  let stream: EventStream | undefined = createEventStream();
  let asked = false;
  const forget = source.onExecution(id, (event) => {
    stream?.push(event);
    // The run may end in another place than it began.
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
      asked = true;
      return stream?.read();
    },
    end,
    drop() {
      if (asked) return true;
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
