/** The limits of an ensemble: how many of its executions are held at once, whatever starts them. */

import { describe, expect, it } from 'vitest';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { createHandler } from '../../src/http-handlers/create-handler.ts';
import { world } from './world.ts';

const HOUR = 3_600_000;

describe('concurrency', () => {
  it('runs as many executions of each key at once as there are slots, in the order of their starts', async () => {
    const { orchestrator, settle, running, finish } = world();
    const start = (customer: string, job: string) => orchestrator.start('export', { customer, job });
    const handles = [await start('acme', 'a1'), await start('acme', 'a2'), await start('acme', 'a3')];
    handles.push(await start('bolt', 'b1'));
    await settle();
    expect(running()).toEqual(['a1', 'b1']);
    expect((await orchestrator.executions.get(handles[1]?.id as string)).status).toBe('queued');
    await finish('a1');
    expect(running()).toEqual(['a2', 'b1']);
    await finish('a2');
    await finish('b1');
    expect(running()).toEqual(['a3']);
    await finish('a3');
    expect((await Promise.all(handles.map((handle) => handle.result()))).map(({ status }) => status)).toEqual(
      Array(4).fill('completed'),
    );
  });

  it('holds for each way to start: HTTP, a webhook, a schedule, a child and a retry', async () => {
    const { orchestrator, settle, running, finish } = world();
    const handler = createHandler(orchestrator);
    const { token } = await orchestrator.tokens.create({ name: 'all', scopes: ['execute:ensembles'] });
    const post = (path: string, body: object) =>
      handler.fetch(
        new Request(`http://localhost${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
          body: JSON.stringify(body),
        }),
      );
    await orchestrator.ready();
    const first = await orchestrator.start('export', { customer: 'acme', job: 'first', fail: true });
    await settle();
    await post('/api/v1/execute/ensemble/export', { input: { customer: 'acme', job: 'http' }, async: true });
    await post('/hooks/export', { customer: 'acme', job: 'webhook' });
    await orchestrator.start('parent', { customer: 'acme', job: 'child' });
    await orchestrator.clock.advance(HOUR);
    await settle();
    expect(running()).toEqual(['first']);
    await finish('first');
    expect(running()).toEqual(['http']);
    expect((await first.result()).status).toBe('failed');
    await orchestrator.executions.retry(first.id);
    for (const [done, next] of [
      ['http', 'webhook'],
      ['webhook', 'child'],
      ['child', 'hourly'],
      ['hourly', 'first'],
    ] as const) {
      await finish(done);
      expect(running()).toEqual([next]);
    }
  });

  it('an execution that waits gives its slot back, and waits for a slot when it is due', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [{ name: 'nap', concurrency: { limit: 1 }, flow: [{ sleep: '1h' }] }],
    });
    const handles = [await orchestrator.start('nap', {}), await orchestrator.start('nap', {})];
    await orchestrator.clock.advance(1000);
    for (const { id } of handles) expect((await orchestrator.executions.get(id)).status).toBe('waiting');
    await orchestrator.clock.advance(HOUR);
    for (const handle of handles) expect((await handle.result()).duration).toBeLessThan(HOUR + 5000);
  });

  it('a limit of 1 and an ensemble that starts itself: the parent gives its slot to the child', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [
        {
          name: 'down',
          concurrency: { limit: 1 },
          flow: [{ if: '${input.depth > 0}', then: [{ ensemble: 'down', input: { depth: '${input.depth - 1}' } }] }],
        },
      ] as never,
    });
    expect((await orchestrator.execute('down', { depth: 3 })).status).toBe('completed');
  });

  it('a cancelled execution leaves the queue', async () => {
    const { orchestrator, settle, running, finish } = world();
    const [, second] = [
      await orchestrator.start('export', { customer: 'acme', job: 'a1' }),
      await orchestrator.start('export', { customer: 'acme', job: 'a2' }),
    ];
    await orchestrator.start('export', { customer: 'acme', job: 'a3' });
    await settle();
    await orchestrator.executions.cancel(second.id);
    await finish('a1');
    expect(running()).toEqual(['a3']);
  });

  it('the limit may follow from the input', async () => {
    const { orchestrator, settle, running } = world({
      limit: "${input.tier == 'premium' ? 2 : 1}",
      key: '${input.customer}',
    });
    for (const job of ['p1', 'p2', 'p3']) await orchestrator.start('export', { customer: 'p', tier: 'premium', job });
    for (const job of ['f1', 'f2']) await orchestrator.start('export', { customer: 'f', job });
    await settle();
    expect(running()).toEqual(['f1', 'p1', 'p2']);
  });

  it('a shared limit counts the executions of all ensembles that name it', async () => {
    const { settle, running, finish, orchestrator } = world(
      [{ shared: 'bank' }, { limit: 1, key: '${input.customer}' }],
      {
        sharedLimits: { bank: { concurrency: 2 } },
        more: [
          {
            name: 'other',
            concurrency: { shared: 'bank' },
            flow: [{ agent: 'write', operation: 'code', config: { script: 'write' } }],
          },
        ],
      },
    );
    for (const customer of ['a', 'b']) await orchestrator.start('export', { customer, job: customer });
    await orchestrator.start('other', { job: 'other' });
    await orchestrator.start('export', { customer: 'a', job: 'a2' });
    await settle();
    expect(running()).toEqual(['a', 'b']);
    await finish('b');
    expect(running()).toEqual(['a', 'other']);
    await finish('other');
    expect(running()).toEqual(['a']);
    await finish('a');
    expect(running()).toEqual(['a2']);
  });

  it.each([
    [{ customer: null }, '`concurrency[0].key` (${input.customer}) must be a text, a number or a boolean'],
    [{ customer: '' }, 'must be a text, a number or a boolean'],
    [{ customer: { id: 1 } }, 'must be a text, a number or a boolean'],
    [{}, 'must be a text, a number or a boolean'],
    [{ customer: 'x'.repeat(1_000_000) }, 'has 1000000 characters; a key has at most 256'],
  ])('the input %# that gives no key is refused, and nothing is queued', async (input, message) => {
    const { orchestrator } = world();
    await expect(orchestrator.start('export', input)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining(message),
    });
    expect((await orchestrator.executions.list()).executions).toEqual([]);
  });

  it.each([
    [{ limit: 0 }, 'concurrency.limit: must be at least 1, not 0'],
    [{ key: '${input.customer}' }, 'concurrency: needs `limit`, or `shared` with the name of a shared limit'],
    [{ limit: 1, shared: 'bank' }, 'are both given; keep one of them'],
    [{ shared: 'bnk' }, 'sharedLimits: { bnk: { concurrency: 4 } }'],
    [{ limit: 2, max: 3 }, 'did you mean `limit`?'],
    [{ limit: 2, key: 'customer' }, 'must read the input, such as `${input.customer}`'],
    [{ limit: 2, key: '${input.custmer}' }, 'did you mean `customer`?'],
    [{ limit: 2, key: '${write.output}' }, "`write` can't be read here"],
    [[{ limit: 1 }, { limit: '5' }], 'concurrency[1].limit: must read the input'],
  ])('the rule %j is refused at load: %s', (concurrency, message) => {
    const definition = {
      name: 'export',
      inputs: { customer: { type: 'string', required: true } },
      concurrency,
      flow: [{ agent: 'write', operation: 'code', config: { script: 'write' } }],
    };
    const load = () => createTestOrchestrator({ ensembles: [definition] as never, scripts: { write: () => 1 } });
    expect(load).toThrow(message);
  });
});
