/** A call that ends while the client package is loaded, or before it begins: nothing is sent, and what fails later ends no process. */

import { afterEach, beforeEach, expect, it } from 'vitest';
import { callScope } from '../../src/adapters/mcp/call-scope.ts';
import { loadClientPackage } from '../../src/adapters/mcp/load-client-package.ts';
import { mcpServer } from '../../src/adapters/mcp/mcp-client.ts';
import { deferred } from '../engine/scene.ts';
import { callOf } from './access.ts';

const unhandled: unknown[] = [];
const note = (reason: unknown) => void unhandled.push(reason);
beforeEach(() => {
  unhandled.length = 0;
  process.on('unhandledRejection', note);
});
afterEach(() => void process.off('unhandledRejection', note));

it.each([true, false])('while the package is loaded; sessions are shared: %s', async (share) => {
  const sent: string[] = [];
  const begun = deferred();
  const loaded = deferred();
  const access = {
    name: 'test',
    url: 'https://server.example/mcp',
    http: {
      async send({ url }: { readonly url: string }): Promise<never> {
        sent.push(url);
        throw new Error('late');
      },
    },
    authorize: async () => ({}),
    sign: () => ({}),
  };
  const server = mcpServer(access, share, async () => {
    begun.resolve(undefined);
    await loaded.promise;
    return loadClientPackage();
  });
  const controller = new AbortController();
  const call = server.callTool(callOf('echo', 'a', { signal: controller.signal }));
  await begun.promise;
  controller.abort(new Error('stopped'));
  await expect(call).rejects.toThrow('stopped');
  loaded.resolve(undefined);
  await loadClientPackage();
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect([sent, unhandled]).toEqual([[], []]);
});

it('work that fails after its call has failed is not reported to the process', async () => {
  const scope = callScope('test');
  scope.fail(new Error('first'));
  await expect(scope.run(Promise.reject(new Error('second')))).rejects.toThrow('first');
  await new Promise((resolve) => setImmediate(resolve));
  expect(unhandled).toEqual([]);
});
