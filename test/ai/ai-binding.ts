/** A binding of Workers AI that answers in the wire format of the real one: objects, streams of server-sent events, and its errors. */

export interface AiCall {
  readonly model: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the inputs and compares them
  readonly inputs: any;
}

/**
 * @param replies - an object is an answer; a list is the events of a stream, `[DONE]` included; an error is thrown
 */
export function aiBinding(...replies: readonly (object | Error)[]) {
  const calls: AiCall[] = [];
  const rest = [...replies];
  return {
    calls,
    async run(model: string, inputs: unknown): Promise<unknown> {
      // The real binding sends them as JSON.
      calls.push({ model, inputs: JSON.parse(JSON.stringify(inputs)) });
      const reply = rest.shift();
      if (reply instanceof Error) throw reply;
      return Array.isArray(reply) ? toStream(reply) : structuredClone(reply);
    },
  };
}

function toStream(list: readonly unknown[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      for (const event of list) {
        controller.enqueue(encoder.encode(`data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`));
      }
      controller.close();
    },
  });
}

/** The error that the binding throws for a code of Workers AI. */
export function inferenceError(text: string): Error {
  return Object.assign(new Error(text), { name: 'InferenceUpstreamError' });
}

export const USAGE = { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 };
