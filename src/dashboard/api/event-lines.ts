/** Reads server-sent events from a stream, and connects again when it breaks. */

import { at, type Client } from './client.ts';

export interface StreamedEvent {
  readonly event: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export type Connection = 'open' | 'lost' | 'ended';

interface Follow {
  onEvents(events: readonly StreamedEvent[]): void;
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
      const stream = await client.stream(at`/executions/${id}/events`, after, signal);
      if (!stream) return follow.onChange('ended');
      follow.onChange('open');
      pauseMs = FIRST_PAUSE_MS;
      for await (const { id: last, events } of readEvents(stream)) {
        after = last ?? after;
        follow.onEvents(events);
      }
    } catch {
      if (signal.aborted) return;
      follow.onChange('lost');
    }
    await pause(pauseMs, signal);
    pauseMs = Math.min(LAST_PAUSE_MS, pauseMs * 2);
  }
}

interface EventBatch {
  readonly id: string | undefined;
  readonly events: readonly StreamedEvent[];
}

/** The events of each chunk that completes one. */
async function* readEvents(stream: ReadableStream<Uint8Array>): AsyncGenerator<EventBatch> {
  const reader = stream.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (text + value).split('\n\n');
    text = blocks.pop() ?? '';
    const read = blocks.map(readBlock);
    const events = read.flatMap(({ event }) => event ?? []);
    if (events.length > 0) yield { id: read.findLast((block) => block.id !== undefined)?.id, events };
  }
}

function readBlock(block: string): { readonly id?: string; readonly event?: StreamedEvent } {
  const lines = block.split('\n');
  const textOf = (field: string) => lines.find((line) => line.startsWith(`${field}: `))?.slice(field.length + 2);
  const [id, data] = [textOf('id'), textOf('data')];
  return { ...(id !== undefined && { id }), ...(data !== undefined && { event: JSON.parse(data) as StreamedEvent }) };
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
