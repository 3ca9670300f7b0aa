/** A storage that is away for a moment, such as a database that restarts: calls wait for it, and `close` does not. */

import { describe, expect, it } from 'vitest';
import { manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import { callPart, createParts } from '../../src/engine/storage/storage-methods.port.ts';
import { createHandler, createOrchestrator, signPayload } from '../../src/index.ts';

const ensembles = [
  { name: 'ask', flow: [{ wait: 'go' }] },
  {
    name: 'hooked',
    trigger: [
      { type: 'webhook', path: '/webhooks/hook', async: true, auth: { type: 'signature', secret: '${env.SECRET}' } },
    ],
    flow: [{ agent: 'done', operation: 'code', config: { script: 'done' } }],
  },
];

/** A storage that other processes may use too, and that fails while `away.is`. `applied`: the next write has its effect although it fails. */
function setUp(
  error: () => Error = () => new OrchestratorError('OVERLOADED', 'the database is away', { retryable: true }),
) {
  const clock = manualClock();
  const away = { is: false, calls: 0, applied: false };
  const inner = memoryStorage({ shared: true });
  const fail = async (): Promise<never> => {
    away.calls += 1;
    throw error();
  };
  const parts = createParts((part, method) => async (...args) => {
    if (!away.is) return callPart(inner, part, method, args);
    if (away.applied && method === 'write') await callPart(inner, part, method, args);
    return fail();
  });
  const storage = {
    ...{ ...inner, ...parts },
    commit: async (...given: Parameters<typeof inner.commit>) => (away.is ? fail() : inner.commit(...given)),
  };
  const lines: { readonly level: string; readonly message: string; readonly about: Record<string, unknown> }[] = [];
  const log = (level: string) => (about: unknown, message?: string) => {
    lines.push({ level, message: message ?? '', about: about as Record<string, unknown> });
  };
  const orchestrator = createOrchestrator({
    ...{ clock, storage, ensembles, scripts: { done: () => 1 }, secrets: { SECRET: 'a secret' } },
    logger: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
    signalLinks: { url: 'https://app.example', secret: 'a secret of at least 32 characters, for links' },
  });
  /** @returns how the call ended and after how many ms, with the storage away for `ms` */
  const during = async <T>(ms: number, call: () => Promise<T>) => {
    away.is = true;
    const begun = clock.monotonic();
    let ended: { readonly value?: T; readonly code?: string; readonly afterMs: number } | undefined;
    call().then(
      (value) => {
        ended = { value, afterMs: clock.monotonic() - begun };
      },
      (thrown) => {
        ended = { code: thrown.code ?? String(thrown), afterMs: clock.monotonic() - begun };
      },
    );
    for (let passed = 0; passed < 40_000 && !ended; passed += 50) {
      if (passed >= ms) away.is = false;
      await clock.advance(50);
    }
    away.is = false;
    return ended;
  };
  return { clock, orchestrator, away, lines, during };
}

describe('a storage that is away for 1.5 s', () => {
  it.each([
    ['a start without an id', {}],
    ['a start with an id', { id: 'order-7' }],
    ['a start with an idempotency key', { idempotencyKey: 'order 7' }],
  ])('delays %s, which succeeds', async (_, options) => {
    const { orchestrator, during } = setUp();
    const ended = await during(1500, () => orchestrator.start('ask', {}, options));
    const { value } = ended ?? {};
    expect(value?.id).toBeTruthy();
  });

  it('delays a signal and a cancellation, which succeed', async () => {
    const { orchestrator, clock, during } = setUp();
    const handle = await orchestrator.start('ask');
    await clock.advance(10);
    expect(await during(1500, () => orchestrator.executions.signal(handle.id, 'go', 1))).toHaveProperty('value');
    const other = await orchestrator.start('ask');
    await clock.advance(10);
    expect(await during(1500, () => orchestrator.executions.cancel(other.id))).toHaveProperty('value');
  });

  it('delays a signed webhook and a request with a token, which are accepted', async () => {
    const { orchestrator, clock, during } = setUp();
    const handler = createHandler(orchestrator);
    const { token } = await orchestrator.tokens.create({ name: 'app', scopes: ['admin'] });
    const ask = async (path: string, init: RequestInit) => {
      const response = await handler.fetch(new Request(`http://app.test${path}`, init));
      return response.status;
    };
    const body = '{"order":7}';
    const headers = {
      'content-type': 'application/json',
      ...signPayload({ secret: 'a secret', body, now: clock.now() }),
    };
    expect((await during(1500, () => ask('/webhooks/hook', { method: 'POST', body, headers })))?.value).toBe(202);
    const authorization = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const start = { method: 'POST', headers: authorization, body: '{"async":true}' };
    expect((await during(4000, () => ask('/api/v1/execute/ensemble/ask', start)))?.value).toBe(202);
  });
});

describe('how long calls wait', () => {
  it('what changes something waits at least 10 s, a read 2 s, and each then says OVERLOADED', async () => {
    const { orchestrator, during } = setUp();
    const { id } = await orchestrator.start('ask');
    const start = await during(60_000, () => orchestrator.start('ask', {}, { idempotencyKey: 'order 8' }));
    expect(start).toMatchObject({ code: 'OVERLOADED' });
    expect(start?.afterMs).toBeGreaterThanOrEqual(10_000);
    const read = await during(60_000, () => orchestrator.executions.get(id));
    expect(read).toMatchObject({ code: 'OVERLOADED' });
    expect(read?.afterMs).toBeGreaterThanOrEqual(2000);
    expect(read?.afterMs).toBeLessThan(4000);
  });

  it('a failure that is no outage is not repeated', async () => {
    const { orchestrator, during } = setUp(() => new Error('a mistake'));
    const { id } = await orchestrator.start('ask');
    const read = await during(60_000, () => orchestrator.executions.get(id));
    expect(read).toMatchObject({ code: 'Error: a mistake', afterMs: 0 });
  });

  it('a write that had its effect although its answer was lost is not a conflict', async () => {
    const { orchestrator, away, during } = setUp();
    away.applied = true;
    const created = await during(300, () => orchestrator.ensembles.create({ ...ensembles[0], name: 'mine' } as never));
    expect(created).toHaveProperty('value');
  });
});

describe('close() while the storage is away', () => {
  it.each([0, 3000])(
    'resolves within a grace of %s ms and two seconds, and logs what could not be unregistered',
    async (grace) => {
      const { orchestrator, clock, away, lines } = setUp();
      await orchestrator.ready();
      await orchestrator.start('ask');
      await clock.advance(10);
      away.is = true;
      const begun = clock.monotonic();
      let closedAt: number | undefined;
      orchestrator.close({ grace }).then(
        () => {
          closedAt = clock.monotonic() - begun;
        },
        () => {
          closedAt = -1;
        },
      );
      for (let passed = 0; passed < 60_000 && closedAt === undefined; passed += 50) await clock.advance(50);
      expect(closedAt).toBeGreaterThanOrEqual(0);
      expect(closedAt).toBeLessThanOrEqual(grace + 2000);
      expect(lines.filter(({ message }) => message.startsWith('this process could not be unregistered'))).toHaveLength(
        1,
      );
    },
  );

  it('closes every part, also after one that fails', async () => {
    const { orchestrator: _, ...scene } = setUp();
    const closed: string[] = [];
    const pdf = { render: () => Promise.reject(new Error('none')), close: () => Promise.reject(new Error('stuck')) };
    const inner = memoryStorage();
    const storage = { ...inner, close: () => void closed.push('storage') };
    const orchestrator = createOrchestrator({
      ensembles,
      clock: scene.clock,
      storage,
      pdf,
      logger: false,
      scripts: { done: () => 1 },
      secrets: { SECRET: 'a' },
    });
    await orchestrator.close({ grace: 0 });
    expect(closed).toEqual(['storage']);
  });
});
