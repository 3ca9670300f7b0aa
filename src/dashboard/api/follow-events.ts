/** Follows the events of an execution, and connects again when the stream breaks. */

import { readEventStream } from '../../engine/base/bytes/read-event-stream.ts';
import type { Client } from './client.ts';

export type Connection = 'open' | 'lost' | 'ended';

interface Follow {
  onEvent(): void;
  onChange(connection: Connection): void;
}

const FIRST_PAUSE_MS = 1_000;
const LAST_PAUSE_MS = 15_000;

/** Reads the events of an execution until it ends or the signal aborts. After a lost connection it continues where it was. */
export async function followEvents(client: Client, id: string, signal: AbortSignal, follow: Follow): Promise<void> {
  let after: string | undefined;
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      const stream = await client.stream(id, after, signal);
      if (!stream) return follow.onChange('ended');
      follow.onChange('open');
      pauseMs = FIRST_PAUSE_MS;
      for await (const { id: last } of readEventStream(stream)) {
        after = last;
        follow.onEvent();
      }
    } catch {
      if (signal.aborted) return;
      follow.onChange('lost');
    }
    await pause(pauseMs, signal);
    pauseMs = Math.min(LAST_PAUSE_MS, pauseMs * 2);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
