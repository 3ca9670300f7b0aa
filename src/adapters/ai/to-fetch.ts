/** Makes a `fetch` of an HTTP client, so that a provider's own requests pass the checks of the client. */

import type { HttpClient, HttpResponse } from '../../engine/host/http.port.ts';

// The longest delay of a platform's timer. The signal of the call ends it earlier.
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
/** Statuses whose responses can't have a body. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Makes a `fetch` of an HTTP client such as `fetchHttp()` or `nodeHttp()`, for the option `fetch` of a provider. Private addresses are
 * refused, redirects are not followed, and the size of an answer is limited. The body streams if the client calls `onChunk`.
 *
 * It rejects with the errors of the client, and with the reason of `init.signal`.
 *
 * @param http - the client
 */
export function toFetch(http: HttpClient): typeof globalThis.fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const body = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer());
    const hungUp = new AbortController();
    const signal = AbortSignal.any([request.signal, hungUp.signal]);
    return new Promise((resolve, reject) => {
      let streaming: ReadableStreamDefaultController<Uint8Array> | undefined;
      const begin = (head: Pick<HttpResponse, 'status' | 'headers'>) => {
        const stream = new ReadableStream<Uint8Array>({
          start: (controller) => {
            streaming = controller;
          },
          cancel: (reason) => hungUp.abort(reason),
        });
        resolve(new Response(stream, head));
      };
      const onChunk = (chunk: Uint8Array, head: Pick<HttpResponse, 'status' | 'headers'>) => {
        if (streaming === undefined) begin(head);
        if (!hungUp.signal.aborted) streaming?.enqueue(chunk);
      };
      const { method, url } = request;
      const headers = Object.fromEntries(request.headers);
      const sent = http.send({
        ...{ method, url, headers, signal, onChunk, timeoutMs: MAX_TIMEOUT_MS },
        ...(body === undefined ? {} : { body }),
      });
      sent.then(
        (response) => {
          if (streaming === undefined) resolve(toResponse(response));
          else if (!hungUp.signal.aborted) streaming.close();
        },
        (error) => {
          if (streaming === undefined) reject(error);
          else if (!hungUp.signal.aborted) streaming.error(error);
        },
      );
    });
  };
}

function toResponse({ status, headers, body }: HttpResponse): Response {
  // The DOM types ask for an ArrayBuffer, but every runtime accepts any view.
  return new Response(WITHOUT_BODY.has(status) ? null : (body as BodyInit), { status, headers });
}
