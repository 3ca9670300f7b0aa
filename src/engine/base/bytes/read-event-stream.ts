/** Reads the events of a response with `text/event-stream`. */

export interface SentEvent {
  /** The newest id in the stream; empty before the first. */
  readonly id: string;
  readonly data: string;
}

/** @returns a function that takes the next bytes of a stream, and returns the events that they complete */
export function eventReader(): (bytes: Uint8Array) => readonly SentEvent[] {
  const decoder = new TextDecoder();
  let rest = '';
  let id = '';
  let data: string[] = [];
  return (bytes) => {
    const events: SentEvent[] = [];
    const text = rest + decoder.decode(bytes, { stream: true });
    // A line may end with CR, LF or both. What follows a CR at the end is not known yet.
    const end = text.endsWith('\r') ? text.length - 1 : text.length;
    const lines = text.slice(0, end).split(/\r\n|\n|\r/);
    rest = (lines.pop() ?? '') + text.slice(end);
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) events.push({ id, data: data.join('\n') });
        data = [];
        continue;
      }
      const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
      if (field === 'id') id = value;
      if (field === 'data') data.push(value);
    }
    return events;
  };
}

/** @param body - cancelled when the caller stops reading */
export async function* readEventStream(body: ReadableStream<Uint8Array>): AsyncGenerator<SentEvent> {
  const reader = body.getReader();
  const read = eventReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* read(value);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
