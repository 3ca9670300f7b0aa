/** The function `follow` of docs/http-api.md, which follows an execution with a browser's `EventSource`. */

import { readFileSync } from 'node:fs';
import { afterEach, expect, it, vi } from 'vitest';
import { readEventStream } from '../../src/engine/base/bytes/read-event-stream.ts';
import { fencedBlocks } from '../docs/code-blocks.ts';
import { createService, type Service } from './service.ts';

const PAGES = new URL('../../docs/', import.meta.url);
const read = (page: string) => readFileSync(new URL(page, PAGES), 'utf8');

interface Listed {
  readonly event: string;
}
type Follow = (
  base: string,
  id: string,
  newTicket: (id: string) => Promise<string>,
  onEvent: (event: Listed) => void,
) => Promise<void>;

const block = fencedBlocks('http-api.md', read('http-api.md')).find(({ code }) => code.includes('function follow('));
const page: { readonly follow: Follow } = await import(`data:text/javascript,${encodeURIComponent(block?.code ?? '')}`);

afterEach(() => vi.unstubAllGlobals());

it('returns after the end of an execution that completed, timed out, or was cancelled', async () => {
  const service = createService();
  stubEventSource(service);
  const { orchestrator, clock } = service;
  const followed = async (name: string, change: (id: string) => unknown) => {
    const begun = service.begun();
    const { id } = await orchestrator.start(name);
    await begun;
    const events: string[] = [];
    const following = page.follow(
      'http://test',
      id,
      async (of) => (await orchestrator.executions.ticket(of)).ticket,
      ({ event }) => events.push(event),
    );
    await change(id);
    await following;
    return events;
  };
  expect(await followed('slow', () => service.release())).toEqual([
    'execution.started',
    'agent.completed',
    'execution.completed',
  ]);
  expect((await followed('hasty', () => clock.advance(10_000))).at(-1)).toBe('execution.timeout');
  expect((await followed('slow', (id) => orchestrator.executions.cancel(id))).at(-1)).toBe('execution.cancelled');
});

it('receives every kind that the stream reports', async () => {
  const heard: string[] = [];
  vi.stubGlobal(
    'EventSource',
    class {
      addEventListener(kind: string, receive: (event: object) => void) {
        heard.push(kind);
        if (kind === 'execution.completed') setTimeout(() => receive({ type: kind, lastEventId: '1', data: '{}' }), 0);
      }
      close() {}
    },
  );
  await page.follow(
    '',
    'x',
    async () => 't',
    () => {},
  );
  const stored = [...read('reference/events.md').matchAll(/^\| `([\w.]+)` \| yes \|/gm)].map(([, kind]) => kind);
  expect(stored).toContain('execution.timeout');
  expect(heard.toSorted()).toEqual(stored.toSorted());
});

/** As much of a browser's `EventSource` as the function uses. */
function stubEventSource({ handler }: Service): void {
  class EventSource extends EventTarget {
    static readonly CLOSED = 2;
    readyState = 1;
    constructor(url: string) {
      super();
      void this.receive(url);
    }
    async receive(url: string) {
      const { body } = await handler.fetch(new Request(url));
      for await (const { id, data } of readEventStream(body as ReadableStream<Uint8Array>)) {
        const { event } = JSON.parse(data) as Listed;
        this.dispatchEvent(Object.assign(new Event(event), { lastEventId: id, data }));
      }
    }
    close() {
      this.readyState = EventSource.CLOSED;
    }
  }
  vi.stubGlobal('EventSource', EventSource);
}
