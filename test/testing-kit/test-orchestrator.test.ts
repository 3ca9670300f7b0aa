/** `createTestOrchestrator`: when time advances by itself, when it does not, and which ports it accepts. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { createTestOrchestrator, manualClock, stubHttp } from '../../src/entries/testing.ts';
import { boom, code, deferred, ok, scene, turns } from '../engine/scene.ts';
import { scaled } from '../slowdown.ts';
import { laterStorage } from '../storage/later-storage.ts';

describe('createTestOrchestrator', () => {
  it('three retries of 1, 2 and 4 s take milliseconds, and the record shows 7,000 ms', async () => {
    const began = performance.now();
    const { run } = scene([boom('a', { retry: { maxAttempts: 4 } })]);
    expect((await run()).duration).toBe(7000);
    expect(performance.now() - began).toBeLessThan(scaled(1000));
  });

  it('time advances only while a result is awaited', async () => {
    const { start, clock, ran } = scene([boom('a', { retry: { maxAttempts: 2 } })]);
    const handle = await start();
    await turns(50);
    expect([clock.monotonic(), ran.length]).toEqual([0, 1]);
    await handle.result();
    expect(clock.monotonic()).toBe(1000);
    clock.setTimer(5000, () => {});
    await turns(50);
    expect(clock.monotonic()).toBe(1000);
  });

  it('time does not advance while a step is in flight, so its timeout does not fire', async () => {
    const { run, clock } = scene([code('a', 'slow', { timeout: 10 })], {
      scripts: { slow: () => turns(30).then(() => 'done') },
    });
    expect((await run()).agents[0]?.output).toBe('done');
    expect(clock.monotonic()).toBe(0);
  });

  it.each([
    ['a thenable of the script', { scripts: { slow: () => lazy(() => turns(30).then(() => 'done')) } }],
    [
      'an HTTP call',
      { http: stubHttp({ 'https://a.example/': async () => turns(30).then(() => ({ json: 'done' })) }) },
    ],
    ['an operation of the host', { operations: [{ name: 'slow', run: () => turns(30).then(() => 'done') }] }],
    ['a storage that answers later', { storage: laterStorage(memoryStorage()) }],
  ])('%s is in flight too', async (what, options) => {
    const step = what.includes('HTTP')
      ? { agent: 'a', operation: 'api', config: { url: 'https://a.example/' } }
      : what.includes('operation')
        ? { agent: 'a', operation: 'slow' }
        : code('a', what.includes('script') ? 'slow' : 'ok');
    const { run, clock } = scene({ timeout: 10, flow: [{ ...step, timeout: 10 }, ok('b')] }, options);
    expect((await run()).status).toBe('completed');
    expect(clock.monotonic()).toBe(0);
  });

  it('with `autoAdvance: false`, only the test advances time', async () => {
    const { run, clock } = scene([boom('a', { retry: { maxAttempts: 3 } })], { autoAdvance: false });
    const result = run();
    await turns(50);
    expect(clock.monotonic()).toBe(0);
    await clock.advance(3000);
    expect((await result).duration).toBe(3000);
  });

  it('concurrent runs share one clock, and each waits for its own timers', async () => {
    const { run } = scene([boom('a', { retry: { maxAttempts: 9, backoff: 'fixed', delay: 1000 } })]);
    const results = await Promise.all([run(), run(), run()]);
    expect(results.map(({ duration }) => duration)).toEqual([8000, 8000, 8000]);
  });

  it('advancing the clock while a result is awaited never moves time back', async () => {
    const { run, clock } = scene([boom('a', { retry: { maxAttempts: 4 } })]);
    const result = run();
    let before = 0;
    for (let i = 0; i < 20; i++) {
      await clock.advance(10);
      expect(clock.monotonic()).toBeGreaterThanOrEqual(before);
      before = clock.monotonic();
    }
    expect((await result).duration).toBeGreaterThanOrEqual(7000);
  });

  it('waits for a result that depends on something outside', async () => {
    const gate = deferred();
    const { start } = scene([code('a', 'gate')], { scripts: { gate: () => gate.promise } });
    const result = (await start()).result();
    await turns(20);
    gate.resolve('from outside');
    expect((await result).agents[0]?.output).toBe('from outside');
  });

  it('execute() fails with the signal that nobody sends when nothing else is due, also of a child', async () => {
    const { run, orchestrator } = scene([{ sleep: '1m' }, { wait: 'boss' }]);
    await expect(run()).rejects.toThrow(
      / of `e` waits at flow\[1\] for the signal `boss`, which nobody sends: begin it/,
    );
    const child = createTestOrchestrator({
      ensembles: [
        { name: 'outer', flow: [{ ensemble: 'inner' }] },
        { name: 'inner', flow: [{ wait: 'yes' }] },
      ],
    });
    await expect(child.execute('outer')).rejects.toThrow('of `inner` waits at flow[0] for the signal `yes`');
    await orchestrator.close();
  });

  it('execute() ends when the test, an event or a timeout ends the wait', async () => {
    const { run, orchestrator } = scene([{ wait: 'boss' }, { wait: 'late', timeout: '1d', onTimeout: 'continue' }]);
    orchestrator.on('step.waiting', ({ data }) => {
      if (data.signal === 'boss') setTimeout(() => void orchestrator.executions.signal(data.executionId, 'boss', 1), 5);
    });
    expect((await run()).status).toBe('completed');
  });

  it('executions.retry passes its options on', async () => {
    const { run, orchestrator } = scene([boom('a', { retry: { maxAttempts: 1 } })]);
    const { id } = await run({ amount: 1 });
    const retried = await orchestrator.executions.retry(id, { newKeys: true, input: { amount: 2 } });
    expect((await retried.result()).input).toEqual({ amount: 2 });
  });

  it('an HTTP call that is not stubbed fails the agent with a message on how to stub it', async () => {
    const { run } = scene([
      { agent: 'a', operation: 'api', config: { url: 'https://api.example.com/users?x=1', method: 'POST' } },
    ]);
    expect((await run()).error?.message).toContain(
      "Stub it: stubHttp({ 'POST https://api.example.com/users': { json: { ... } } })",
    );
  });

  it('uses the given clock, storage and HTTP client, and exposes them', async () => {
    const clock = manualClock({ now: 0 });
    const http = stubHttp();
    const storage = memoryStorage();
    const kit = createTestOrchestrator({ clock, http, storage, ensembles: [{ name: 'e', flow: [] }] });
    const { id, createdAt } = await kit.execute('e');
    expect([kit.clock, kit.http, createdAt]).toEqual([clock, http, 0]);
    expect(await storage.executions.get(id)).toMatchObject({ status: 'completed' });
    const { orchestrator } = kit;
    expect((await orchestrator.executions.get(id)).id).toBe(id);
  });

  it('a storage that is an instance of a class with private fields works', async () => {
    class ClassStorage {
      readonly #inner = memoryStorage();
      get capabilities() {
        return this.#inner.capabilities;
      }
      get workers() {
        return this.#inner.workers;
      }
      get executions() {
        return this.#inner.executions;
      }
      get definitions() {
        return this.#inner.definitions;
      }
      get documents() {
        return this.#inner.documents;
      }
      get kv() {
        return this.#inner.kv;
      }
      get objects() {
        return this.#inner.objects;
      }
      commit(...args: Parameters<Storage['commit']>) {
        return this.#inner.commit(...args);
      }
      close() {
        return this.#inner.close();
      }
    }
    const { run, orchestrator } = scene([ok('a')], { storage: new ClassStorage() as unknown as Storage });
    const result = await run();
    expect(await orchestrator.executions.get(result.id)).toEqual(result);
  });

  it('frozen ports work', async () => {
    const http = Object.freeze(stubHttp({ '*': { json: 1 } }));
    const storage = memoryStorage();
    const { run } = scene([{ agent: 'a', operation: 'api', config: { url: 'https://a.example/' } }], {
      http,
      storage: Object.freeze({ ...storage, tokens: Object.freeze(storage.tokens) }),
    });
    expect((await run()).status).toBe('completed');
  });

  it('an operation that is an instance of a class works, with its checks', async () => {
    class Doubling {
      readonly name = 'double';
      readonly #factor = 2;
      check(config: object) {
        return 'factor' in config ? [{ path: ['factor'], message: `is always ${this.#factor}` }] : [];
      }
      run({ input }: { input: unknown }): number {
        return (input as number) * this.#factor;
      }
    }
    const operations = [new Doubling()];
    const { run } = scene([{ agent: 'a', operation: 'double', input: '${input.n}' }], { operations });
    expect((await run({ n: 4 })).agents[0]?.output).toBe(8);
    expect(() => scene([{ agent: 'a', operation: 'double', config: { factor: 3 } }], { operations })).toThrow(
      'is always 2',
    );
  });

  it('time advances for executeAgent and start, too', async () => {
    const agents = [{ name: 'bad', operation: 'code', config: { script: 'boom' }, retry: { maxAttempts: 2 } }];
    const { orchestrator } = scene([{ agent: 'bad' }], { agents });
    expect((await orchestrator.executeAgent('bad')).duration).toBe(1000);
    expect((await (await orchestrator.start('e')).result()).duration).toBe(1000);
  });

  it('time advances for the result of a retry, too', async () => {
    let calls = 0;
    const flaky = () => {
      calls += 1;
      if (calls < 4) throw new Error('not yet');
      return calls;
    };
    const { orchestrator } = scene([code('a', 'flaky', { retry: { maxAttempts: 2 } })], { scripts: { flaky } });
    const failed = await orchestrator.execute('e');
    expect(failed.status).toBe('failed');
    const again = await (await orchestrator.executions.retry(failed.id)).result();
    expect([again.status, again.duration, again.agents[0]?.output]).toEqual(['completed', 1000, 4]);
  });

  it('a dry run ends by itself, without time that advances; its waits take none', async () => {
    const { orchestrator, clock, ran } = scene([ok('a'), { sleep: '1h' }]);
    const handle = await orchestrator.start('e', {}, { dryRun: true });
    const ends = [await orchestrator.execute('e', {}, { dryRun: true }), await handle.result()];
    expect(ends.map(({ status }) => status)).toEqual(['completed', 'completed']);
    expect([ran, clock.monotonic()]).toEqual([[], 0]);
  });

  it('time advances for close, too: a run that waits for a signal does not block a test', async () => {
    const { orchestrator, clock } = scene([{ wait: 'approved' }]);
    const handle = await orchestrator.start('e');
    await turns();
    await orchestrator.close({ grace: 5000 });
    expect(clock.monotonic()).toBe(5000);
    expect((await handle.result()).status).toBe('cancelled');
  });

  it('an invalid input throws the same error as with createOrchestrator', async () => {
    const { run } = scene({ inputs: { x: { required: true } }, flow: [] });
    await expect(run({})).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  });
});

/** A thenable that begins its work with each `then`, as query builders do. */
function lazy<T>(work: () => Promise<T>) {
  let begun = 0;
  return {
    then(resolve: (value: T) => void, reject: (reason: unknown) => void) {
      begun += 1;
      if (begun > 1) reject(new Error('the work was begun twice'));
      else work().then(resolve, reject);
    },
  };
}
