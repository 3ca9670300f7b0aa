/** The limits of a response and of open event streams: large values in pages and one by one, HEAD without reading a record. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { watchedStorage } from '../storage/watched-storage.ts';
import { createService, post, readResponse } from './service.ts';

const BIG = 'x'.repeat(3 * 1024 * 1024);
const FLOW = [1, 2, 3].map((n) => ({ agent: `a${n}`, operation: 'code', config: { script: 'big' } }));
const ENSEMBLES = [
  { name: 'large', flow: FLOW },
  { name: 'waits', flow: [{ wait: 'go' }] },
];

async function open(options: object = {}) {
  const { storage, calls } = watchedStorage(memoryStorage());
  const service = createService(options, { storage, ensembles: ENSEMBLES, scripts: { big: () => BIG } } as never);
  const headers = await service.bearer('read:executions', 'execute:ensembles');
  const ask = (path: string, init: RequestInit = {}) =>
    service.handler.fetch(new Request(`http://service.test/api/v1${path}`, { headers, ...init }));
  return { ...service, ask, calls, headers };
}

describe('the response', () => {
  it('with a record holds 4 MiB of outputs; the others are marked, and each has its own path', async () => {
    const { ask, orchestrator } = await open();
    const { id } = await orchestrator.execute('large');
    const { body } = await readResponse(ask(`/executions/${id}`));
    expect(body.agents.map(({ output, outputOmitted }: never) => [output === null, outputOmitted])).toEqual([
      [false, undefined],
      [true, true],
      [true, true],
    ]);
    const one = await readResponse(ask(`/executions/${id}/agents/${encodeURIComponent('flow[2]')}`));
    expect([one.status, one.body.name, one.body.output.length]).toEqual([200, 'a3', BIG.length]);
    expect((await readResponse(ask(`/executions/${id}/agents/flow[1]`))).body.name).toBe('a2');
    const page = await readResponse(ask(`/executions/${id}/agents`));
    expect([page.body.agents.length, typeof page.body.nextCursor]).toEqual([2, 'string']);
    const rest = await readResponse(ask(`/executions/${id}/agents?cursor=${encodeURIComponent(page.body.nextCursor)}`));
    expect([rest.body.agents.length, rest.body.nextCursor]).toEqual([1, undefined]);
  });

  it('for an unknown agent run is 404, as for an unknown execution', async () => {
    const { ask, orchestrator, bearer } = await open();
    const { id } = await orchestrator.execute('large');
    for (const path of [`/executions/${id}/agents/flow[3]`, `/executions/exec_${'0'.repeat(26)}/agents/flow[0]`])
      expect((await readResponse(ask(path))).status).toBe(404);
    const headers = await bearer('execute:ensembles');
    expect((await readResponse(ask(`/executions/${id}/agents/flow[0]`, { headers }))).status).toBe(403);
  });

  it('to HEAD, and a 202, need only the status of the execution: no record is read', async () => {
    const { ask, orchestrator, calls, headers } = await open();
    const { id } = await orchestrator.execute('large');
    calls();
    const response = await ask(`/executions/${id}`, { method: 'HEAD' });
    expect([response.status, await response.text()]).toEqual([200, '']);
    expect((await ask(`/executions/exec_${'0'.repeat(26)}`, { method: 'HEAD' })).status).toBe(404);
    expect(calls()).not.toHaveProperty(['executions.get']);
    const started = await readResponse(ask('/execute/ensemble/waits', post({ async: true }, headers)));
    expect(started.status).toBe(202);
    expect(calls()).not.toHaveProperty(['executions.get']);
  });
});

describe('event streams', () => {
  it('of one token beyond the limit are 503 until one is closed; another token has its own limit', async () => {
    const { ask, orchestrator, bearer } = await open({ maxStreamsPerToken: 2 });
    const { id } = await orchestrator.start('waits');
    const stream = (init?: RequestInit) => ask(`/executions/${id}/events`, init);
    const [first] = [await stream(), await stream()];
    const refused = await readResponse(stream());
    expect([refused.status, refused.headers.get('retry-after'), refused.body.error]).toEqual([
      503,
      '1',
      {
        code: 'OVERLOADED',
        message: 'event streams: this token has 2 open, which is the maximum; close one, or try again later',
        limit: 2,
      },
    ]);
    const headers = await bearer('read:executions');
    expect((await stream({ headers })).status).toBe(200);
    expect((await stream({ method: 'HEAD' })).status).toBe(200);
    await first?.body?.cancel();
    expect((await stream()).status).toBe(200);
    expect((await stream()).status).toBe(503);
  });

  it('of all tokens together have a limit too; a stream that has ended frees its slot', async () => {
    const { ask, orchestrator, clock } = await open({ maxStreams: 1 });
    const run = await orchestrator.start('waits');
    const stream = () => ask(`/executions/${run.id}/events`);
    const first = await stream();
    expect((await readResponse(stream())).body.error.message).toContain(
      'event streams: this handler has 1 open, which is the maximum',
    );
    await clock.advance(1000);
    await orchestrator.executions.signal(run.id, 'go');
    expect(await first.text()).toContain('execution.completed');
    expect((await stream()).status).toBe(200);
  });

  it('by default 100 of one token and 1,000 in total may be open', async () => {
    const { ask, orchestrator, bearer } = await open();
    const { id } = await orchestrator.start('waits');
    const tokens = await Promise.all(Array.from({ length: 11 }, () => bearer('read:executions')));
    const statuses: number[] = [];
    for (const headers of tokens)
      for (let i = 0; i < 101; i++) statuses.push((await ask(`/executions/${id}/events`, { headers })).status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1000);
    expect(statuses.slice(0, 101).filter((status) => status === 503)).toHaveLength(1);
  });

  it.each([0, -1, 1.5, '3'])('maxStreams: %s is a TypeError', (maxStreams) => {
    for (const options of [{ maxStreams }, { maxStreamsPerToken: maxStreams }])
      expect(() => createService(options as never)).toThrow(TypeError);
  });
});
