/** The two hosts in which the HTTP tests run a handler: `fetch`, and a real Node server. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach } from 'vitest';
import { toNodeListener } from '../../src/adapters/hosts/node/to-node-listener.ts';
import type { HttpHandler } from '../../src/engine/host/host.port.ts';
import { problemOf } from './check-response.ts';

export type Ask = (path: string, init?: RequestInit) => Promise<Response>;

export interface Host {
  readonly host: string;
  open(handler: HttpHandler): Promise<Ask>;
}

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

export const HOSTS: readonly Host[] = [
  {
    host: 'fetch',
    open: async (handler) => (path, init) =>
      handler.fetch(new Request(`http://service.test${path}`, withDuplex(init)), { ip: '192.0.2.1' }),
  },
  {
    host: 'node server',
    async open(handler) {
      const origin = await serve(toNodeListener(handler));
      return async (path, init) => {
        const response = await fetch(`${origin}${path}`, withDuplex(init));
        const [pathname = ''] = path.split('?');
        const problem = await problemOf(init?.method ?? 'GET', pathname, response);
        if (problem !== undefined) throw new Error(problem);
        return response;
      };
    },
  },
];

/** Serves on a loopback port until the test ends. @returns the origin */
export async function serve(listener: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

// Node requires it for a body that is a stream.
function withDuplex(init: RequestInit | undefined): RequestInit | undefined {
  return init?.body instanceof ReadableStream ? ({ ...init, duplex: 'half' } as RequestInit) : init;
}
