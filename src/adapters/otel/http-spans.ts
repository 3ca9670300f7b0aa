/** An HTTP client whose requests are spans, and which passes the trace on. */

import { type Context, context, type Span, SpanKind, type Tracer } from '@opentelemetry/api';
import type { HttpClient, HttpRequest } from '../../engine/host/http.port.ts';
import { addressRules, portOf } from '../http/address-rules.ts';
import { HTTP_STATUS, requestAttributes } from './names.ts';
import { hasProvider, holderOf, toTraceContext, withoutInstrumentation } from './span-contexts.ts';
import { fail, inSpan } from './spans.ts';

/** Whether the trace is passed on to a host. */
export type Propagates = (url: URL) => boolean;

/**
 * By default, only to hosts of one's own network: private addresses and names. A trace shows others which of their requests belong
 * together.
 *
 * @param propagate - true: to all; false: to none; a list: also to these, written as the `allow` of the HTTP clients
 * @throws TypeError for a wrong entry
 */
export function createPropagates(propagate: boolean | readonly string[] | undefined): Propagates {
  if (typeof propagate === 'boolean') return () => propagate;
  const listed = addressRules(propagate ?? []);
  // A host that these rules refuse is in a private network. No name is looked up.
  const publicHosts = addressRules([], true);
  return (url) =>
    listed.allowsHost(url.hostname, portOf(url)) || publicHosts.hostProblem(url.hostname, 443) !== undefined;
}

export function tracedHttp(
  client: HttpClient,
  tracer: Tracer,
  propagates: Propagates,
  mask: (text: string) => string,
): HttpClient {
  return {
    ...client,
    send(request) {
      // The client refuses what is not a URL.
      if (!hasProvider() || !URL.canParse(request.url)) return client.send(request);
      const url = new URL(request.url);
      const { method } = request;
      const attributes = requestAttributes(method, url, mask);
      const outside = context.active();
      const begin = { name: method, kind: SpanKind.CLIENT, attributes, outside, holder: holderOf(outside) };
      const run = (span: Span, within: Context) => {
        const trace = propagates(url) ? toTraceContext(span.spanContext()) : undefined;
        const headers = trace ? withTrace(request.headers, { ...trace }) : request.headers;
        const sent = headers ? { ...request, headers } : request;
        return context.with(withoutInstrumentation(within), () => client.send(sent));
      };
      return inSpan(tracer, begin, run, (span, { status }) => {
        span.setAttribute(HTTP_STATUS, status);
        if (status >= 400) fail(span, String(status));
      });
    },
  };
}

/** What the request says itself stays. */
function withTrace(headers: HttpRequest['headers'] = {}, trace: Record<string, string>): HttpRequest['headers'] {
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  return names.has('traceparent') ? headers : { ...headers, ...trace };
}
