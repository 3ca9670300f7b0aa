/** Reads the events of a response with `text/event-stream`. */

export interface SentEvent {
  /** The newest id in the stream; empty before the first. */
  readonly id: string;
  readonly data: string;
}

/** @param body - cancelled when the caller stops reading */
export async function* readEventStream(body: ReadableStream<Uint8Array>): AsyncGenerator<SentEvent> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = '';
  let id = '';
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n/);
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line === '') {
          if (data.length > 0) yield { id, data: data.join('\n') };
          data = [];
          continue;
        }
        const [, field, text = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
        if (field === 'id') id = text;
        if (field === 'data') data.push(text);
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
