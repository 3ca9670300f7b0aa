/** A receiver of OTLP over HTTP on loopback. */

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ReceivedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  /** `service.name` of its resource; undefined without one. */
  readonly service: string | undefined;
}

interface Resource {
  readonly attributes?: readonly { readonly key: string; readonly value: { readonly stringValue?: string } }[];
}

/** @returns its address, all spans that it has got, and what closes it */
export async function startOtlpReceiver() {
  const received: ReceivedSpan[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { resourceSpans } = JSON.parse(Buffer.concat(parts).toString());
    for (const { resource, scopeSpans } of resourceSpans) {
      const name = (resource as Resource | undefined)?.attributes?.find(({ key }) => key === 'service.name');
      const service = name?.value.stringValue;
      for (const { spans } of scopeSpans) for (const span of spans) received.push({ ...span, service });
    }
    response.setHeader('content-type', 'application/json').end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, received, close: () => void server.close() };
}
