/** Sends a request through the guarded HTTP client, and gives its answer as a `Response` whose body comes as it arrives. */

import type { HttpClient, HttpRequest, HttpResponse } from '../../engine/host/http.port.ts';

type Head = Pick<HttpResponse, 'status' | 'headers'>;

/**
 * The response is there with the first part of its body. A client that ignores `onChunk` gives it when the body is complete. If the
 * exchange breaks later, reading the body fails with the error of `send`.
 *
 * @param onBroken - called with the error of an exchange that broke after its first part
 */
export function streamResponse(
  http: HttpClient,
  request: HttpRequest,
  onBytes: (count: number) => void,
  onBroken: (error: unknown) => void,
): Promise<Response> {
  return new Promise<Response>((resolve, reject) => {
    let body: ReadableStreamDefaultController<Uint8Array> | undefined;
    let isUnread = false;
    const onChunk = (chunk: Uint8Array, head: Head) => {
      onBytes(chunk.byteLength);
      if (body === undefined) {
        const stream = new ReadableStream<Uint8Array>({
          start(controller) {
            body = controller;
          },
          cancel() {
            isUnread = true;
          },
        });
        resolve(responseOf(head, stream));
      }
      // A runtime may reuse the memory of a part.
      if (!isUnread) body?.enqueue(chunk.slice());
    };
    http
      .send({ ...request, onChunk })
      .then(
        (answer) => {
          if (body) return isUnread ? undefined : body.close();
          onBytes(answer.body.byteLength);
          resolve(responseOf(answer, answer.body.byteLength > 0 ? answer.body.slice() : null));
        },
        (error: unknown) => {
          if (!body) return reject(error);
          onBroken(error);
          body.error(error);
        },
      )
      .catch(reject);
  });
}

function responseOf(head: Head, body: ReadableStream<Uint8Array> | Uint8Array | null): Response {
  // `www-authenticate` would begin an authorization of the client package, which it was not given.
  const { location: _location, 'www-authenticate': _challenge, ...headers } = head.headers;
  const empty = head.status === 204 || head.status === 205 || head.status === 304;
  // The DOM types ask for an ArrayBuffer, but every runtime accepts any view. Without `location`, no redirect is followed.
  return new Response(empty ? null : (body as BodyInit | null), { status: head.status, headers });
}
