/** The handler in Deno, Bun and Workers: the host passes on the address and `waitUntil`. */

import { describe, expect, it } from 'vitest';
import { toBunHandler } from '../../src/adapters/hosts/bun/to-bun-handler.ts';
import { toDenoHandler } from '../../src/adapters/hosts/deno/to-deno-handler.ts';
import { toWorker } from '../../src/adapters/hosts/workers/to-worker.ts';
import type { HostInfo, HttpHandler } from '../../src/engine/host/host.port.ts';
import { createService, post, readResponse } from './service.ts';

function recording(): { handler: HttpHandler; hosts: (HostInfo | undefined)[] } {
  const hosts: (HostInfo | undefined)[] = [];
  const { handler } = createService();
  return {
    hosts,
    handler: {
      handle: handler.handle,
      fetch(request, host) {
        hosts.push(host);
        return handler.fetch(request, host);
      },
    },
  };
}
const health = (headers: Record<string, string> = {}) => new Request('http://service.test/api/v1/health', { headers });
const FORGED = { 'x-forwarded-for': '203.0.113.9', 'x-real-ip': '203.0.113.9' };

describe('toDenoHandler', () => {
  it.each([
    ['a TCP peer', { remoteAddr: { transport: 'tcp', hostname: '192.0.2.7', port: 4711 } }, '192.0.2.7'],
    ['a Unix socket', { remoteAddr: { transport: 'unix', path: '/run/x.sock' } }, undefined],
    ['no info', undefined, undefined],
  ])('passes on the address of %s', async (_what, info, ip) => {
    const { handler, hosts } = recording();
    expect((await toDenoHandler(handler)(health(FORGED), info)).status).toBe(200);
    expect(hosts.map((host) => host?.ip)).toEqual([ip]);
  });
});

describe('toBunHandler', () => {
  it.each([
    ['a peer', { requestIP: () => ({ address: '192.0.2.7', port: 1, family: 'IPv4' }) }, '192.0.2.7'],
    ['a closed connection', { requestIP: () => null }, undefined],
    ['no server', undefined, undefined],
  ])('passes on the address of %s', async (_what, server, ip) => {
    const { handler, hosts } = recording();
    expect((await toBunHandler(handler)(health(FORGED), server)).status).toBe(200);
    expect(hosts.map((host) => host?.ip)).toEqual([ip]);
  });
});

describe('toWorker', () => {
  const context = () => {
    const kept: Promise<unknown>[] = [];
    return { kept, waitUntil: (promise: Promise<unknown>) => void kept.push(promise) };
  };

  it("passes on the address that Cloudflare's edge reports, and no other", async () => {
    const { handler, hosts } = recording();
    const worker = toWorker(handler);
    await worker.fetch(health({ ...FORGED, 'cf-connecting-ip': '192.0.2.7' }), {}, context());
    await worker.fetch(health(FORGED), {}, context());
    expect(hosts.map((host) => host?.ip)).toEqual(['192.0.2.7', undefined]);
  });

  it('passes on `waitUntil`: an execution continues after the response', async () => {
    const service = createService();
    const held = context();
    const request = new Request(
      'http://service.test/api/v1/execute/ensemble/slow',
      post({ async: true }, await service.bearer('admin')),
    );
    const { body } = await readResponse(toWorker(service.handler).fetch(request, {}, held));
    service.release();
    await Promise.all(held.kept);
    expect(held.kept).toHaveLength(1);
    expect(await service.orchestrator.executions.get(body.executionId)).toMatchObject({ status: 'completed' });
  });

  it('creates one handler for each env from its bindings, and tries again after a failure', async () => {
    const made: string[] = [];
    let fail = true;
    const worker = toWorker(async (env: { NAME: string }) => {
      if (fail) throw new Error('no binding');
      made.push(env.NAME);
      return createService().handler;
    });
    const [one, two] = [{ NAME: 'one' }, { NAME: 'two' }];
    await expect(worker.fetch(health(), one, context())).rejects.toThrow('no binding');
    fail = false;
    for (const env of [one, one, two, one]) expect((await worker.fetch(health(), env, context())).status).toBe(200);
    expect(made).toEqual(['one', 'two']);
  });
});
