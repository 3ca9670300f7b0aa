/** Closing: active runs may end, new starts are refused, and nothing is left open. Also many executions at the same time. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { callPart, createParts } from '../../src/engine/storage/storage-methods.port.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { boom, code, deferred, ok, scene, turns } from '../engine/scene.ts';
import { laterStorage } from '../storage/later-storage.ts';

const CLOSED = { code: 'OVERLOADED', message: 'the orchestrator is closed and takes no new executions' };

/** A storage that fails every call after it was closed, like the connection of a database. */
function strict(inner: Storage): Storage & { closed: number; calls: string[] } {
  const strictStorage = { closed: 0, calls: [] as string[] } as unknown as Storage & {
    closed: number;
    calls: string[];
  };
  const guard =
    <A extends unknown[], R>(name: string, call: (...args: A) => R) =>
    (...args: A): R => {
      if (strictStorage.closed > 0) throw new Error(`the connection is closed (${name})`);
      strictStorage.calls.push(name);
      return call(...args);
    };
  return Object.assign(strictStorage, {
    ...inner,
    ...createParts((part, method) => guard(`${part}.${method}`, (...args) => callPart(inner, part, method, args))),
    commit: guard('commit', inner.commit),
    close() {
      strictStorage.closed += 1;
      return inner.close();
    },
  });
}

describe('close()', () => {
  it('closes the storage at once if nothing runs', async () => {
    const storage = strict(memoryStorage());
    const { orchestrator } = scene([ok('a')], { storage });
    await orchestrator.close();
    expect(storage.closed).toBe(1);
  });

  it('waits for active runs, retries included, and then closes the storage', async () => {
    const storage = strict(memoryStorage());
    const { orchestrator, start, clock } = scene([boom('a', { retry: { maxAttempts: 3 } })], { storage });
    const handle = await start();
    const closing = orchestrator.close();
    expect(await handle.result()).toMatchObject({ status: 'failed', duration: 3000 });
    await closing;
    expect(storage.closed).toBe(1);
    // The timer of the grace period is cleared too.
    expect(clock.nextIn).toBeUndefined();
  });

  it('cancels the remaining executions after the grace period', async () => {
    const { orchestrator, start, clock } = scene([code('a', 'obedient')], {
      scripts: {
        obedient: ({ signal }) =>
          new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      },
    });
    const handle = await start();
    let closed = false;
    const closing = orchestrator.close({ grace: 5000 }).then(() => {
      closed = true;
    });
    await clock.advance(4999);
    expect(closed).toBe(false);
    await clock.advance(1);
    await closing;
    expect((await handle.result()).status).toBe('cancelled');
    expect(clock.nextIn).toBeUndefined();
  });

  it('the default grace period is 25 s', async () => {
    const { orchestrator, start, clock } = scene([code('a', 'never')], {
      scripts: { never: () => new Promise(() => {}) },
    });
    const handle = await start();
    const closing = orchestrator.close();
    await clock.advance(24_999);
    expect((await orchestrator.executions.get(handle.id)).status).toBe('running');
    await clock.advance(1);
    await clock.advance(1000);
    await closing;
    expect(await handle.result()).toMatchObject({ status: 'cancelled', duration: 26_000 });
  });

  it('a grace period of 0 cancels at once', async () => {
    const { orchestrator, start, clock } = scene([boom('a', { retry: { maxAttempts: 9 } })]);
    const handle = await start();
    await turns();
    const closing = orchestrator.close({ grace: 0 });
    await clock.advance(0);
    await closing;
    expect((await handle.result()).status).toBe('cancelled');
  });

  it('a second call returns the same promise, and closes nothing twice', async () => {
    const storage = strict(memoryStorage());
    const { orchestrator, start } = scene([boom('a', { retry: { maxAttempts: 2 } })], { storage });
    const handle = await start();
    const [first, second] = [orchestrator.close(), orchestrator.close({ grace: 0 })];
    expect(second).toBe(first);
    expect((await handle.result()).status).toBe('failed');
    await Promise.all([first, second, orchestrator.close()]);
    expect(storage.closed).toBe(1);
  });

  it.each([
    ['while it waits for others', false],
    ['after it has closed', true],
  ])('refuses new starts with OVERLOADED: %s', async (_what, closedBefore) => {
    const storage = strict(memoryStorage());
    const { orchestrator, start, ran } = scene([boom('a', { retry: { maxAttempts: 2 } })], {
      storage,
      ensembles: [{ name: 'other', flow: [ok('x')] }],
      agents: [{ name: 'shared', operation: 'code', config: { script: 'ok' } }],
    });
    const handle = await start();
    const closing = orchestrator.close();
    if (closedBefore) {
      await handle.result();
      await closing;
    }
    await expect(orchestrator.orchestrator.execute('e')).rejects.toMatchObject(CLOSED);
    await expect(orchestrator.orchestrator.execute('other')).rejects.toMatchObject(CLOSED);
    await expect(orchestrator.orchestrator.start('other')).rejects.toMatchObject(CLOSED);
    await expect(orchestrator.orchestrator.executeAgent('shared')).rejects.toMatchObject(CLOSED);
    if (!closedBefore) {
      await handle.result();
      await closing;
    }
    expect(ran.filter((name) => name !== 'a')).toEqual([]);
  });

  it.each([0, 1, 2, 3, 4, 5])('called %i turns after execute: the execution completes or is refused', async (count) => {
    const storage = strict(laterStorage(memoryStorage()));
    const { orchestrator, run } = scene([ok('a'), ok('b')], { storage });
    const outcome = run().then(
      ({ status }) => status,
      (error: { code?: string; message: string }) => error.code ?? error.message,
    );
    await turns(count);
    await orchestrator.close();
    expect(['completed', 'OVERLOADED']).toContain(await outcome);
  });

  it('a thousand orchestrators that were created, used and closed leave no timer', async () => {
    for (let i = 0; i < 1000; i++) {
      const { orchestrator, run, clock } = scene([ok('a')]);
      await run();
      await orchestrator.close();
      if (clock.nextIn !== undefined) throw new Error('a timer is left');
    }
  });

  it('with the system clock, nothing remains that would keep a process alive', async () => {
    const open = () =>
      process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout' || kind === 'Immediate').length;
    await turns();
    const before = open();
    const orchestrator = createOrchestrator({
      ensembles: [
        {
          name: 'e',
          timeout: 60_000,
          flow: [
            code('a', 'flaky', { timeout: 50_000, retry: { maxAttempts: 2, backoff: 'fixed', delay: 1 } }),
            code('b', 'obedient', { timeout: 50_000, retry: { maxAttempts: 2 } }),
          ],
        },
      ],
      scripts: {
        flaky: async ({ execution }) => {
          if (execution.attempt === 1) throw new Error('again');
        },
        obedient: ({ signal }) =>
          new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      },
    });
    const caller = new AbortController();
    const handle = await orchestrator.start('e', {}, { timeout: 40_000, signal: caller.signal });
    for await (const { event, data } of handle.events()) {
      if (event === 'agent.started' && 'agent' in data && data.agent === 'b') {
        expect(open()).toBeGreaterThan(before);
        caller.abort();
      }
    }
    expect((await handle.result()).status).toBe('cancelled');
    await orchestrator.close();
    await turns();
    // A timer of the test runner may have ended meanwhile.
    expect(open()).toBeLessThanOrEqual(before);
  });
});

describe('many executions at the same time', () => {
  it('1,000 executions end with their own inputs', async () => {
    const { run, orchestrator } = scene(
      {
        flow: [
          code('a', 'soon'),
          { if: '${input.n % 2 == 0}', then: [ok('even')], else: [boom('odd', { retry: { maxAttempts: 2 } })] },
        ],
        outputs: { n: '${a.output}' },
      },
      { scripts: { soon: async ({ input }) => turns(1).then(() => input.n) } },
    );
    const results = await Promise.all(Array.from({ length: 1000 }, (_, n) => run({ n })));
    for (const [n, { status, output, partialOutput = output, duration }] of results.entries()) {
      expect([status, partialOutput]).toEqual([n % 2 === 0 ? 'completed' : 'failed', { n }]);
      expect(duration).toBe(n % 2 === 0 ? 0 : 1000);
    }
    expect(new Set(results.map(({ id }) => id)).size).toBe(1000);
    const { executions } = await orchestrator.executions.list({ status: 'failed', limit: 250 });
    expect(executions.length).toBe(250);
  });

  it('an execution that waits does not delay another one', async () => {
    const gate = deferred();
    const { start, run } = scene([code('a', 'gate')], {
      scripts: { gate: ({ input }) => (input.wait ? gate.promise : 1) },
    });
    const waiting = await start({ wait: true });
    for (let i = 0; i < 10; i++) expect((await run({ wait: false })).status).toBe('completed');
    gate.resolve(1);
    expect((await waiting.result()).status).toBe('completed');
  });
});
