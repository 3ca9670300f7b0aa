/** Webhooks that send a signal to an execution in place of a start (contract 12: `trigger.signal`, `trigger.find`, `trigger.orStart`). */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { signPayload } from '../../src/engine/signing/sign-payload.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';
import { openWebhooks } from './world.ts';

const SECRET = 'hush';

const order = (trigger: object = {}, more: object = {}) => ({
  name: 'order',
  trigger: [
    {
      type: 'webhook',
      path: '/webhooks/paid',
      public: true,
      signal: 'paid',
      find: { tag: 'order=${body.id}' },
      ...trigger,
    },
  ],
  flow: [{ wait: 'paid', name: 'payment', timeout: '1d' }],
  outputs: { payment: '${payment.output}' },
  ...more,
});

function open(trigger: object = {}, more: object = {}) {
  const world = openWebhooks([order(trigger, more)]);
  const start = async (...tags: string[]) => (await world.orchestrator.start('order', {}, { tags })).id;
  const pay = (body: object, headers: Record<string, string> = {}) => world.post('/webhooks/paid', body, headers);
  const outputOf = async (id: string) => {
    await world.clock.advance(0);
    return (await world.orchestrator.executions.get(id)).output;
  };
  const signed = (body: object) => {
    const text = JSON.stringify(body);
    return world.post('/webhooks/paid', text, signPayload({ secret: SECRET, body: text, now: world.clock.now() }));
  };
  return { ...world, start, pay, signed, outputOf };
}

const SIGNED = { public: undefined, auth: { type: 'signature', secret: SECRET } };

describe('a webhook with `signal`', () => {
  it('sends its body to the execution that `find` finds, and to no other', async () => {
    const { start, pay, outputOf } = open();
    const [seven, eight] = [await start('order=7'), await start('order=8')];
    const { status, body } = await pay({ id: 8, amount: 5 });
    expect([status, body]).toEqual([200, { received: true, executionId: eight, signal: 'paid' }]);
    expect([await outputOf(seven), await outputOf(eight)]).toEqual([null, { payment: { id: 8, amount: 5 } }]);
  });

  it('reaches an execution that does not wait yet: the signal is kept', async () => {
    const flow = [{ sleep: '1h' }, { wait: 'paid', name: 'payment' }];
    const { start, pay, clock, outputOf } = open({}, { flow });
    const id = await start('order=7');
    expect((await pay({ id: 7 })).status).toBe(200);
    await clock.advance(3_600_000);
    expect(await outputOf(id)).toEqual({ payment: { id: 7 } });
  });

  it('is answered 404 if there is no execution, or if it has ended', async () => {
    const { start, pay, clock, runs } = open();
    const missing = await pay({ id: 7 });
    expect([missing.status, missing.body]).toEqual([
      404,
      { error: 'no execution waits for the signal `paid` of this request' },
    ]);
    await start('order=7');
    expect((await pay({ id: 7 })).status).toBe(200);
    await clock.advance(0);
    expect((await pay({ id: 7 })).status).toBe(404);
    expect(await runs()).toHaveLength(1);
  });

  it('is answered 409 if several executions have the tag, and 400 if the request names none', async () => {
    const { start, pay } = open();
    await start('order=7');
    await start('order=7');
    expect((await pay({ id: 7 })).status).toBe(409);
    const many = open({ find: { tag: '${body.id}' } });
    for (const id of [null, '', {}, 'x'.repeat(129)]) expect((await many.pay({ id })).status).toBe(400);
    // `order=` alone would be one tag for all requests that lack the field.
    for (const body of [{}, { id: null }, { id: [7] }, [1]]) expect((await pay(body)).status).toBe(400);
  });

  it('finds an execution by its id, also by a header or the query', async () => {
    for (const [text, path, headers] of [
      ['${body.ref}', '/webhooks/paid', {}],
      ["${headers['X-Ref']}", '/webhooks/paid', { 'x-ref': 'order-7' }],
      ['${query.ref}', '/webhooks/paid?ref=order-7', {}],
    ] as const) {
      const { orchestrator, post, outputOf } = open({ find: { id: text } });
      await orchestrator.start('order', {}, { id: 'order-7' });
      expect((await post(path, { ref: 'order-7' }, headers)).body.executionId).toBe('order-7');
      expect(await outputOf('order-7')).toEqual({ payment: { ref: 'order-7' } });
    }
  });

  it('finds no execution of another ensemble', async () => {
    const { orchestrator, post } = openWebhooks([
      order({ find: { id: '${body.id}' } }),
      order({ path: '/webhooks/other' }, { name: 'other' }),
    ]);
    const { id } = await orchestrator.start('other');
    expect((await post('/webhooks/paid', { id })).status).toBe(404);
  });
});

describe('the same signed request', () => {
  it('sends one signal, and its second answer names the same execution, also after that has ended', async () => {
    const flow = [
      { wait: 'paid', name: 'payment' },
      { wait: 'paid', name: 'second', timeout: '1h', onTimeout: 'continue' },
    ];
    const { start, signed, clock, outputOf } = open(SIGNED, { flow, outputs: { second: '${second.output}' } });
    const id = await start('order=7');
    for (let i = 0; i < 3; i++)
      expect((await signed({ id: 7 })).body).toEqual({ received: true, executionId: id, signal: 'paid' });
    await clock.advance(3_600_000);
    expect(await outputOf(id)).toEqual({ second: null });
  });

  it('that has started an execution sends it no signal: its second answer is that of the start', async () => {
    for (const find of [{ tag: 'order=${body.id}' }, { id: 'order-${body.id}' }]) {
      const { signed, orchestrator, clock } = open({ ...SIGNED, orStart: true, find, async: true });
      const first = await signed({ id: 7 });
      const twice = await Promise.all([signed({ id: 8 }), signed({ id: 8 })]);
      await clock.advance(0);
      expect((await signed({ id: 7 })).body).toEqual(first.body);
      expect(twice.map(({ status }) => status).sort()).toEqual([202, 409]);
      const { executions } = await orchestrator.executions.list({ status: 'waiting' });
      expect(executions).toHaveLength(2);
    }
  });

  it('with `orStart` starts nothing after its execution has ended', async () => {
    const { start, signed, clock, runs } = open({ ...SIGNED, orStart: true });
    const id = await start('order=7');
    expect((await signed({ id: 7 })).body.executionId).toBe(id);
    await clock.advance(0);
    expect((await signed({ id: 7 })).body.executionId).toBe(id);
    expect(await runs()).toHaveLength(1);
  });
});

describe('`orStart: true`', () => {
  it('starts an execution if there is none; the next request finds it by the tag', async () => {
    const { pay, outputOf, runs } = open({ orStart: true, async: true });
    const first = await pay({ id: 7 });
    expect([first.status, first.body.queued]).toEqual([202, true]);
    const second = await pay({ id: 7, amount: 5 });
    expect(second.body).toEqual({ received: true, executionId: first.body.executionId, signal: 'paid' });
    expect(await outputOf(first.body.executionId)).toEqual({ payment: { id: 7, amount: 5 } });
    expect((await pay({ id: 7, round: 2 })).body.executionId).not.toBe(first.body.executionId);
    expect((await runs()).map(({ tags }) => tags)).toEqual([['order=7'], ['order=7']]);
  });

  it('with an id starts one execution: after that has ended, nobody gets the signal', async () => {
    const { pay, clock } = open({ orStart: true, async: true, find: { id: 'order-${body.id}' } });
    expect((await pay({ id: 7 })).body.executionId).toBe('order-7');
    expect((await pay({ id: 7, amount: 5 })).body.signal).toBe('paid');
    await clock.advance(0);
    expect((await pay({ id: 7, amount: 6 })).status).toBe(404);
  });

  it('starts one execution for many requests at once: one starts it, the others are its signals', async () => {
    const { pay, runs } = open({ orStart: true, async: true });
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => pay({ id: 7, n })));
    expect(new Set(answers.map(({ body }) => body.executionId)).size).toBe(1);
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(1);
    expect(await runs()).toHaveLength(1);
  });
});

it('with `orStart`, a request signals the execution that another request has started in between, and starts none', async () => {
  const inner = memoryStorage();
  let between: (() => Promise<unknown>) | undefined;
  const storage = changeStorage(inner, {
    executions: {
      // The look for the last execution of the tag, after the look for an active one.
      async list(query) {
        const isLast = query.status === undefined && query.tag === 'order=7';
        const run = isLast ? between : undefined;
        if (run) {
          between = undefined;
          await run();
        }
        return inner.executions.list(query);
      },
    },
  });
  const { orchestrator, post, runs } = openWebhooks([order({ orStart: true })], { storage });
  let other = '';
  between = async () => {
    other = (await orchestrator.start('order', {}, { tags: ['order=7'] })).id;
  };
  const { status, body } = await post('/webhooks/paid', { id: 7 });
  expect([status, body]).toEqual([200, { received: true, executionId: other, signal: 'paid' }]);
  expect(await runs()).toHaveLength(1);
});
