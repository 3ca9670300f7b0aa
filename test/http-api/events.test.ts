/** The event stream of one execution. */

import { request as httpRequest } from 'node:http';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { toNodeListener } from '../../src/adapters/hosts/node/to-node-listener.ts';
import { type Ask, HOSTS, serve } from './hosts.ts';
import { createService, readResponse, type Service } from './service.ts';

interface Message {
  readonly id?: string;
  readonly event?: string;
  // biome-ignore lint/suspicious/noExplicitAny: the tests read any part of an event
  readonly data?: any;
}

/** A message as a reader of server-sent events sees it. */
function parseMessage(text: string): Message {
  const message: Record<string, unknown> = {};
  for (const line of text.split('\n')) {
    const [, field = '', value = ''] = /^([a-z]*): ?(.*)$/.exec(line) ?? [];
    if (field !== '') message[field] = field === 'data' ? JSON.parse(value) : value;
  }
  return message;
}

const messages = (text: string): readonly Message[] =>
  text
    .split('\n\n')
    .filter((part) => part !== '' && part !== ':')
    .map(parseMessage);

describe.each(HOSTS)('events by $host', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let headers: { authorization: string };
  beforeEach(async () => {
    service = createService();
    ask = await open(service.handler);
    headers = await service.bearer('read:executions');
  });
  const stream = (id: string, query = '', extra: Record<string, string> = {}) =>
    ask(`/api/v1/executions/${id}/events${query}`, { headers: { ...headers, ...extra } });

  it('streams a finished execution from its start to its end, and ends', async () => {
    const run = await service.orchestrator.execute('greet', { who: 'Ada' });
    const response = await stream(run.id);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-request-id': expect.any(String),
    });
    const received = messages(await response.text());
    expect(received.map(({ id, event }) => [id, event])).toEqual([
      ['1', 'execution.started'],
      ['2', 'agent.completed'],
      ['3', 'execution.completed'],
    ]);
    expect(received[1]?.data).toEqual({
      event: 'agent.completed',
      timestamp: '2026-01-01T00:00:00.000Z',
      data: {
        executionId: run.id,
        ensemble: 'greet',
        agent: 'hello',
        key: 'flow[0]',
        output: 'Hello Ada',
        duration: 0,
      },
    });
    expect(received[2]?.data.data).toMatchObject({ id: run.id, status: 'completed', output: { text: 'Hello Ada' } });
  });

  it('continues after Last-Event-ID, or `after`; the header wins', async () => {
    const { id } = await service.orchestrator.execute('greet', { who: 'Ada' });
    const ids = async (response: Promise<Response>) =>
      messages(await (await response).text()).map((message) => message.id);
    expect(await ids(stream(id, '', { 'last-event-id': '1' }))).toEqual(['2', '3']);
    expect(await ids(stream(id, '?after=2'))).toEqual(['3']);
    expect(await ids(stream(id, '?after=0', { 'last-event-id': '2' }))).toEqual(['3']);
    expect(await ids(stream(id, '?after=3'))).toEqual([]);
  });

  it('after the last event of an ended execution the response is 204, so that readers do not reconnect', async () => {
    const { id } = await service.orchestrator.execute('greet', { who: 'Ada' });
    for (const after of ['3', '4', '999999999']) {
      const response = await stream(id, '', { 'last-event-id': after });
      expect([after, response.status, await response.text()]).toEqual([after, 204, '']);
      expect(response.headers.get('x-request-id')).not.toBeNull();
    }
    expect((await stream(id, '?after=2')).status).toBe(200);
    const running = await service.orchestrator.start('slow');
    const open = await stream(running.id, '?after=1');
    expect(open.status).toBe(200);
    await open.body?.cancel();
  });

  it.each(['abc', '-1', '1.5', '1e3', '9'.repeat(30)])('refuses `after=%s`', async (after) => {
    const { id } = await service.orchestrator.execute('echo');
    expect(await readResponse(stream(id, `?after=${after}`))).toMatchObject({
      status: 400,
      body: { error: { code: 'INVALID_REQUEST' } },
    });
    expect((await stream(id, '', { 'last-event-id': after })).status).toBe(400);
  });

  it('streams an execution while it runs, with a comment after every 15 s without an event', async () => {
    const run = await service.orchestrator.start('slow');
    const reader = ((await stream(run.id)).body as ReadableStream<Uint8Array>).getReader();
    const decoder = new TextDecoder();
    let text = '';
    const until = async (enough: (text: string) => boolean) => {
      while (!enough(text)) {
        const { done, value } = await reader.read();
        if (done) return;
        text += decoder.decode(value, { stream: true });
      }
    };
    await until((so) => so.includes('execution.started'));
    expect(text).not.toContain(':\n\n');
    const beat = until((so) => so.endsWith(':\n\n'));
    await service.clock.advance(15_000);
    await beat;
    service.release();
    await service.clock.advance(0);
    await until(() => false);
    expect(messages(text).map(({ event }) => event)).toEqual([
      'execution.started',
      'agent.completed',
      'execution.completed',
    ]);
    await service.clock.advance(0);
    expect(service.clock.nextIn).toBeUndefined();
  });

  it('HEAD returns the headers and opens no stream', async () => {
    const run = await service.orchestrator.start('slow');
    const response = await ask(`/api/v1/executions/${run.id}/events`, { method: 'HEAD', headers });
    expect([response.status, await response.text()]).toEqual([200, '']);
    await service.clock.advance(0);
    await vi.waitFor(() => expect(service.clock.nextIn).toBeUndefined());
  });
});

describe('a reader that disconnects', () => {
  it('ends its stream: no timer is left, and the execution continues', async () => {
    const service = createService();
    const headers = await service.bearer('admin');
    const run = await service.orchestrator.start('slow');
    const reply = await service.handler.fetch(
      new Request(`http://service.test/api/v1/executions/${run.id}/events`, { headers }),
    );
    const reader = (reply.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await service.clock.advance(0);
    expect(service.clock.nextIn).toBeGreaterThan(0);
    await reader.cancel();
    await service.clock.advance(0);
    expect(service.clock.nextIn).toBeUndefined();
    service.release();
    expect(await run.result()).toMatchObject({ status: 'completed' });
  });

  it('ends its stream over a Node server too', async () => {
    const service = createService();
    const headers = await service.bearer('admin');
    const run = await service.orchestrator.start('slow');
    const origin = await serve(toNodeListener(service.handler));
    await new Promise<void>((resolve, reject) => {
      const asked = httpRequest(`${origin}/api/v1/executions/${run.id}/events`, { headers }, (response) => {
        response.once('data', () => {
          asked.destroy();
          resolve();
        });
        response.on('error', () => {});
      });
      asked.on('error', reject).end();
    });
    await vi.waitFor(() => expect(service.clock.nextIn).toBeUndefined(), { timeout: 20_000 });
    service.release();
    expect(await run.result()).toMatchObject({ status: 'completed' });
  });
});
