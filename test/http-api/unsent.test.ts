/** Responses that their readers don't take: what they hold in memory is limited, over all connections. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { toNodeListener } from '../../src/entries/node.ts';
import { createHandler, type Orchestrator } from '../../src/index.ts';
import { createService } from './service.ts';

const KB = 1024;
const BIG = 300 * KB;

/** A service with an execution whose record has about 300 KB, and a limit for unsent responses. */
async function open(maxUnsentBytes: number) {
  const service = createService(
    {},
    {
      ensembles: [
        {
          name: 'big',
          flow: [{ agent: 'a', operation: 'code', config: { script: 'big' } }],
          outputs: { a: '${a.output}' },
        },
      ] as never,
      scripts: { big: () => 'x'.repeat(BIG) } as never,
    },
  );
  const handler = createHandler(service.orchestrator, { maxUnsentBytes, clock: service.clock });
  const { id } = await (service.orchestrator as Orchestrator).execute('big');
  const headers = await service.bearer('admin');
  const get = (path = `/executions/${id}`) =>
    handler.fetch(new Request(`http://localhost/api/v1${path}`, { headers }), { ip: '192.0.2.1' });
  return { ...service, handler, get, id, headers };
}

it('a response waits until the unsent ones leave space for it, and is 503 after ten seconds; small ones pass', async () => {
  const { get, clock } = await open(5_800_000);
  // Each holds its real length from now on; a record may need 4 MiB, so the fourth waits.
  const unread = [await get(), await get(), await get()];
  expect(unread.map(({ status }) => status)).toEqual([200, 200, 200]);
  let waiting = await settled(get());
  expect(waiting.state()).toBe('pending');
  expect((await get('/usage')).status).toBe(200);
  expect(JSON.parse((await unread[0]?.text()) ?? '').output.a).toHaveLength(BIG);
  const served = await waiting.promise;
  expect([served.status, (await served.text()).length > BIG]).toEqual([200, true]);

  const again = await get();
  waiting = await settled(get());
  await clock.advance(10_000);
  const refused = await waiting.promise;
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  for (const response of [...unread.slice(1), again]) await response.body?.cancel();
  expect((await (await get()).text()).length).toBeGreaterThan(BIG);
});

it('a reader that takes nothing for 30 seconds is cut off, and its bytes are free again', async () => {
  const { get, clock } = await open(KB);
  const reader = ((await get()).body as ReadableStream<Uint8Array>).getReader();
  expect((await reader.read()).value?.byteLength).toBe(64 * KB);
  await clock.advance(30_000);
  await expect(reader.read()).rejects.toThrow('30 seconds');
  const next = (await get()).body as ReadableStream<Uint8Array>;
  await next.cancel();
});

it('an event stream ends before an event that does not fit, and continues after its last event', async () => {
  const { get, id } = await open(BIG + 100 * KB);
  const [held, stream] = [await get(), await get(`/executions/${id}/events`)];
  const first = await stream.text();
  expect([first.includes('event: execution.started'), first.includes('event: agent.completed')]).toEqual([true, false]);
  await held.body?.cancel();
  const rest = await (await get(`/executions/${id}/events?after=1`)).text();
  expect([...rest.matchAll(/^event: (.*)$/gm)].map(([, kind]) => kind)).toEqual([
    'agent.completed',
    'execution.completed',
  ]);
});

it('over Node, a connection that is closed gives its bytes back', async () => {
  const { handler, headers, id, get } = await open(KB);
  const server = createServer(toNodeListener(handler));
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const closed = new Promise((resolve) => {
    server.once('request', (_request, response) => response.once('close', resolve));
  });
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(`GET /api/v1/executions/${id} HTTP/1.1\r\nHost: x\r\nauthorization: ${headers.authorization}\r\n\r\n`);
  await new Promise((resolve) => socket.once('readable', resolve));
  socket.destroy();
  await closed;
  expect((await (await get()).text()).length).toBeGreaterThan(BIG);
});

/** A promise, and whether it has settled after the tasks that are ready. */
async function settled<T>(promise: Promise<T>) {
  let state = 'pending';
  promise.then(
    () => (state = 'resolved'),
    () => (state = 'rejected'),
  );
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  return { promise, state: () => state };
}
