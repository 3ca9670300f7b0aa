/** Shows each message of an answer to a guard before the client package gets it. */

import { eventReader } from '../../engine/base/bytes/read-event-stream.ts';

/**
 * @param see - gets each message, as the server sent it. What it throws breaks the answer
 * @param resumedAfter - the id of the event after which a stream is resumed. The client package would forget it if the stream broke
 *   before its first event
 */
export function watchMessages(
  response: Response,
  see: (message: unknown) => void,
  resumedAfter?: string | null,
): Response {
  const type = response.headers.get('content-type') ?? '';
  if (!response.ok || response.body === null) return response;
  const watch = type.startsWith('text/event-stream') ? eventWatch(see, resumedAfter ?? undefined) : jsonWatch(see);
  const { status, headers } = response;
  return new Response(response.body.pipeThrough(new TransformStream(watch)), { status, headers });
}

function eventWatch(see: (message: unknown) => void, resumedAfter?: string): Transformer<Uint8Array, Uint8Array> {
  const read = eventReader();
  return {
    start(controller) {
      if (resumedAfter !== undefined) controller.enqueue(new TextEncoder().encode(`id: ${resumedAfter}\ndata: \n\n`));
    },
    transform(bytes, controller) {
      for (const { data } of read(bytes)) see(parsed(data));
      controller.enqueue(bytes);
    },
  };
}

/** One message, or a list of them. The client package takes an answer when it is complete. */
function jsonWatch(see: (message: unknown) => void): Transformer<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  let text = '';
  return {
    transform(bytes, controller) {
      text += decoder.decode(bytes, { stream: true });
      controller.enqueue(bytes);
    },
    flush() {
      const value = parsed(text);
      for (const message of Array.isArray(value) ? value : [value]) see(message);
    },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The client package reports what is not JSON.
    return undefined;
  }
}
