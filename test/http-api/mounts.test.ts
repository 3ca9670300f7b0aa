/**
 * The mounting examples, unchanged: the API responds, and so do the app's own pages. The examples for other runtimes run with
 * substitutes for their `serve` here; `npm run runtimes` starts them on the real runtimes.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { serve as serveHono } from '@hono/node-server';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { toNodeListener } from '../../src/adapters/hosts/node/to-node-listener.ts';
import type { HttpHandler } from '../../src/engine/host/host.port.ts';
import type { Orchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { type Ask, serve } from './hosts.ts';
import { post, readResponse } from './service.ts';

const EXAMPLES = new URL('../../examples/', import.meta.url);
// biome-ignore lint/suspicious/noExplicitAny: an example is plain JavaScript
const load = (path: string): Promise<any> => import(/* @vite-ignore */ new URL(path, EXAMPLES).pathname);

const closers: (() => unknown)[] = [];
afterEach(async () => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  for (const close of closers.splice(0)) await close();
});

const over =
  (origin: string): Ask =>
  (path, init) =>
    fetch(`${origin}${path}`, init);

/** A substitute for another runtime's `serve`, on Node: enough for the example to run. */
function nodeServe(respond: (request: Request, peer: string) => Promise<Response>): Promise<string> {
  let peer = '';
  const handler: HttpHandler = {
    fetch: (request) => respond(request, peer),
    handle: async () => ({ matched: false }),
  };
  const listener = toNodeListener(handler);
  return serve((request: IncomingMessage, response: ServerResponse) => {
    peer = request.socket.remoteAddress ?? '';
    listener(request, response);
  });
}

interface Mount {
  readonly ask: Ask;
  readonly orchestrator: Orchestrator;
  /** The text of the app's own page at `/`. */
  readonly own?: string;
}

const MOUNTS: Readonly<Record<string, () => Promise<Mount>>> = {
  async 'mount-node-http'() {
    const { server } = await load('mount-node-http/server.mjs');
    const { orchestrator } = await load('mount-node-http/service.mjs');
    return { ask: over(await serve(server.listeners('request')[0])), orchestrator, own: 'my own page' };
  },
  async 'mount-express'() {
    const { app } = await load('mount-express/app.mjs');
    const { orchestrator } = await load('mount-express/service.mjs');
    return { ask: over(await serve(app)), orchestrator, own: 'my own page' };
  },
  async 'mount-fastify'() {
    const { app } = await load('mount-fastify/app.mjs');
    const { orchestrator } = await load('mount-fastify/service.mjs');
    closers.push(() => app.close());
    return { ask: over(await app.listen({ port: 0, host: '127.0.0.1' })), orchestrator, own: 'my own page' };
  },
  async 'mount-hono'() {
    const { app } = await load('mount-hono/app.mjs');
    const { orchestrator } = await load('mount-hono/service.mjs');
    const port = await new Promise<number>((resolve) => {
      const server = serveHono({ fetch: app.fetch, port: 0, hostname: '127.0.0.1', createServer }, (info) =>
        resolve(info.port),
      );
      closers.push(() => new Promise((done) => server.close(done)));
    });
    return { ask: over(`http://127.0.0.1:${port}`), orchestrator, own: 'my own page' };
  },
  async 'mount-next'() {
    const route = await load('mount-next/app/api/v1/[...path]/route.js');
    const { orchestrator } = await load('mount-next/service.mjs');
    const ask: Ask = async (path, init) => route[init?.method ?? 'GET'](new Request(`http://next.test${path}`, init));
    return { ask, orchestrator };
  },
  async 'mount-deno'() {
    let origin: Promise<string> | undefined;
    vi.stubGlobal('Deno', {
      env: { get: () => undefined },
      serve(_options: object, handle: (request: Request, info: object) => Promise<Response>) {
        origin = nodeServe((request, peer) =>
          handle(request, { remoteAddr: { transport: 'tcp', hostname: peer, port: 1 } }),
        );
        return {};
      },
    });
    await load('mount-deno/main.mjs');
    const { orchestrator } = await load('mount-deno/service.mjs');
    return { ask: over((await origin) as string), orchestrator, own: 'my own page' };
  },
  async 'mount-bun'() {
    let origin: Promise<string> | undefined;
    vi.spyOn(console, 'log').mockImplementation(() => {});
    vi.stubGlobal('Bun', {
      serve({ routes, fetch: handle }: BunOptions) {
        origin = nodeServe(async (request, peer) => {
          const own = routes[new URL(request.url).pathname];
          return own ? own(request) : handle(request, { requestIP: () => ({ address: peer }) });
        });
        return { url: new URL('http://127.0.0.1:3000/') };
      },
    });
    await load('mount-bun/main.mjs');
    const { orchestrator } = await load('mount-bun/service.mjs');
    return { ask: over((await origin) as string), orchestrator, own: 'my own page' };
  },
};

interface BunOptions {
  readonly routes: Readonly<Record<string, (request: Request) => Response>>;
  readonly fetch: (request: Request, server: object) => Promise<Response>;
}

describe.each(Object.entries(MOUNTS))('examples/%s', (_name, mount) => {
  it('runs an ensemble, refuses a request without a token, and leaves other paths to the app', async () => {
    const { ask, orchestrator, own } = await mount();
    const { token } = await orchestrator.tokens.create({ name: 'test', scopes: ['execute:ensembles'] });
    const path = '/api/v1/execute/ensemble/greet';
    const ran = await readResponse(ask(path, post({ input: { who: 'Ada' } }, { authorization: `Bearer ${token}` })));
    expect(ran).toMatchObject({ status: 200, body: { status: 'completed', output: { text: 'Hello Ada' } } });
    expect((await readResponse(ask(path, post({ input: { who: 'Ada' } })))).status).toBe(401);
    expect(await readResponse(ask('/api/v1/health'))).toMatchObject({ status: 200, body: { status: 'ok' } });
    expect((await readResponse(ask('/api/v1/nothing'))).status).toBe(404);
    if (own !== undefined) expect(await (await ask('/')).text()).toBe(own);
    const headers = { 'x-forwarded-for': '192.0.2.7' };
    const floods = await Promise.all(
      Array.from({ length: 101 }, () => readResponse(ask('/api/v1/usage', { headers }))),
    );
    const refused = floods.find(({ status }) => status === 429);
    expect(refused?.body.error.message).toContain('requests of this address is reached');
  });
});

describe('examples/mount-worker', () => {
  it("creates its handler from the Worker's variables, prints a token, and responds", async () => {
    const print = vi.spyOn(console, 'log').mockImplementation(() => {});
    const { default: worker } = await load('mount-worker/worker.mjs');
    const env = { GREETING: 'Good morning' };
    const ask: Ask = async (path, init) =>
      worker.fetch(new Request(`http://worker.test${path}`, init), env, { waitUntil() {} });
    expect(await readResponse(ask('/api/v1/health'))).toMatchObject({ status: 200 });
    const [, authorization = ''] = /'Authorization: (Bearer \S+)'/.exec(String(print.mock.calls)) ?? [];
    const path = '/api/v1/execute/ensemble/greet';
    expect(await readResponse(ask(path, post({ input: { who: 'Ada' } }, { authorization })))).toMatchObject({
      status: 200,
      body: { output: { text: 'Good morning Ada' } },
    });
    expect((await readResponse(ask(path, post({})))).status).toBe(401);
    expect(await (await ask('/')).text()).toBe('my own page');
  });
});
