/** The built-in model provider: any server with the `chat/completions` API that OpenAI introduced. */

import type { Json } from '../../engine/base/json/json.ts';
import type { HttpClient, HttpRequest, HttpResponse } from '../../engine/host/http.port.ts';
import { querySecrets } from '../../engine/host/peer-text.ts';
import type { ModelAnswer, ModelProvider, ModelRequest } from '../../engine/operation/model.port.ts';
import { answerFailure, type ChatCall, statusFailure } from './chat-failure.ts';
import { parseJson } from './chat-json.ts';
import { toChatBody } from './chat-request.ts';
import { createChatStream } from './chat-stream.ts';
import type { ModelServerOptions } from './model-server-options.ts';
import { readCompletion } from './read-completion.ts';

/** An event of a stream takes some 300 bytes for each token. */
const MAX_STREAM_BYTES = 64 * 1024 * 1024;

/**
 * @param options - checked
 * @param ports - `now`: Unix ms, read only to turn the date of a `Retry-After` into a wait
 */
export function chatCompletions(
  options: ModelServerOptions,
  ports: { readonly http: HttpClient; readonly now: () => number },
): ModelProvider {
  const url = new URL(options.url);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/chat/completions`;
  const { apiKey, headers: own = {} } = options;
  const headers = { ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }), ...own };
  const call: ChatCall = {
    label: `POST ${url.origin}${url.pathname}`,
    secrets: [...(apiKey === undefined ? [] : [apiKey]), ...Object.values(own), ...querySecrets(options.url)],
  };
  return {
    ...(options.prices && { prices: options.prices }),
    async generate(request) {
      const stream = request.onText && createChatStream(call, request);
      let streamed = false;
      const complete = new AbortController();
      const sent: HttpRequest = {
        method: 'POST',
        url: url.href,
        headers: { 'content-type': 'application/json', 'idempotency-key': request.idempotencyKey, ...headers },
        body: JSON.stringify(toChatBody(request, options, url.hostname)),
        timeoutMs: request.timeoutMs,
        signal: AbortSignal.any([request.signal, complete.signal]),
        ...(stream && {
          maxResponseBytes: MAX_STREAM_BYTES,
          onChunk: (chunk, head) => {
            if (!isStream(head)) return;
            streamed = true;
            stream.add(chunk);
            // A connection that stays open after the answer is of no use.
            if (stream.isDone) complete.abort();
          },
        }),
      };
      let response: HttpResponse;
      try {
        response = await ports.http.send(sent);
      } catch (error) {
        if (request.signal.aborted || !stream?.hasEnded) throw error;
        return stream.end();
      }
      if (response.status < 200 || response.status > 299) throw statusFailure(call, response, ports.now());
      if (!stream || !isStream(response)) return readWhole(call, request, response);
      if (!streamed) stream.add(response.body);
      return stream.end();
    },
  };
}

function isStream({ status, headers }: Pick<HttpResponse, 'status' | 'headers'>): boolean {
  return status >= 200 && status <= 299 && /^text\/event-stream\b/i.test(headers['content-type'] ?? '');
}

/** Reads an answer that is not a stream, also of a server that does not stream. */
function readWhole(call: ChatCall, request: ModelRequest, response: HttpResponse): ModelAnswer {
  const json: Json | undefined = parseJson(new TextDecoder().decode(response.body));
  if (json === undefined) {
    const type = (response.headers['content-type'] ?? 'no content type').slice(0, 80);
    throw answerFailure(call, 'invalid-json', `a body that is not JSON (${type}); check the \`url\` of the provider`);
  }
  const answer = readCompletion(call, request, json);
  if (answer.text !== '') request.onText?.(answer.text);
  return answer;
}
