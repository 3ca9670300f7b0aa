/** `crash()` of a test orchestrator: the process is gone, the store remains, and the next process resumes. */

import { describe, expect, it, onTestFinished } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { createTestOrchestrator, type TestOrchestratorOptions } from '../../src/entries/testing.ts';
import { boom, code, deferred, ok, scene, turns } from '../engine/scene.ts';
import { createDatabase, findServer } from '../storage/postgres-server.ts';

const hang = () => new Promise(() => {});

const hasServer = await findServer();

const stores: [name: string, open: () => Promise<Storage | undefined>][] = [
  ['the default memory storage', async () => undefined],
  ['a shared memory storage', async () => memoryStorage({ shared: true })],
  ['SQLite', async () => sqliteStorage({ path: ':memory:' })],
];

describe.each(stores)('crash() on %s', (_name, open) => {
  it('an order whose process dies between charge and invoice is charged once', async () => {
    const storage = await open();
    const charges: string[] = [];
    const flow = [code('charge', 'charge'), code('invoice', 'invoice')];
    const { orchestrator, start, clock } = scene(
      { flow, outputs: { number: '${invoice.output}' } },
      {
        ...(storage && { storage }),
        scripts: { charge: ({ execution }) => charges.push(execution.id), invoice: hang },
      },
    );
    const { id } = await start();
    await clock.advance(0);
    const next = await orchestrator.crash({ scripts: { invoice: () => 7 } });
    const run = await next.result(id);
    expect([run.status, run.output, charges]).toEqual(['completed', { number: 7 }, [id]]);
    // It waited for no lease.
    expect(run.duration).toBe(0);
    await next.close();
  });

  it('what a script of the dead process still does has no effect on the store', async () => {
    const storage = await open();
    const gate = deferred();
    const { orchestrator, start, clock } = scene([code('slow', 'gate'), ok('after')], {
      ...(storage && { storage }),
      scripts: { gate: () => gate.promise },
    });
    const { id } = await start();
    await clock.advance(0);
    const next = await orchestrator.crash({ scripts: { gate: () => 'from the next process' } });
    gate.resolve('from the dead process');
    await turns(10);
    expect((await next.result(id)).agents.map(({ output }) => output)).toEqual(['from the next process', 'after']);
    await next.close();
  });
});

describe('crash()', () => {
  const flow = { flow: [ok('a'), code('b', 'hang')] };
  const begun = async (options: TestOrchestratorOptions = {}) => {
    const made = scene(flow, { ...options, scripts: { hang, ...options.scripts } });
    const handle = await made.start();
    await made.clock.advance(0);
    return { ...made, handle };
  };

  it.skipIf(!hasServer)('works on Postgres', async () => {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    const storage = postgresStorage({ url: database.connectionString });
    const { orchestrator, start, clock } = scene([ok('a'), code('b', 'hang')], { storage, scripts: { hang } });
    const { id } = await start();
    while ((await storage.executions.get(id))?.agents.length === 0) await clock.advance(0);
    const next = await orchestrator.crash({ scripts: { hang: () => 'done' } });
    expect(await next.result(id)).toMatchObject({ status: 'completed', duration: expect.any(Number) });
    await next.close();
  });

  it('writes nothing: no release, no cancellation, no unregistration, and aborts no signal', async () => {
    let signal: AbortSignal | undefined;
    const memory = memoryStorage();
    const commits: unknown[] = [];
    const storage: Storage = {
      ...memory,
      commit(worker, batch) {
        commits.push(...batch);
        return memory.commit(worker, batch);
      },
      workers: {
        ...memory.workers,
        unregister(worker, now) {
          // The kit removes the dead worker as other processes do, before it gives its handles back.
          expect(memory.workers.listHeld(worker)).toEqual([]);
          return memory.workers.unregister(worker, now);
        },
      },
    };
    const { orchestrator } = await begun({
      storage,
      scripts: {
        hang(context) {
          signal = context.signal;
          return hang();
        },
      },
    });
    const before = commits.length;
    await orchestrator.crash();
    expect([commits.length, signal?.aborted]).toEqual([before, false]);
  });

  it('leaves no timer of the dead process on the clock', async () => {
    const { orchestrator, start, clock } = scene([
      boom('a', { retry: { maxAttempts: 9, backoff: 'fixed', delay: 900 } }),
    ]);
    await start();
    await clock.advance(0);
    expect(clock.nextIn).toBe(900);
    const next = await orchestrator.crash();
    await next.close({ grace: 0 });
    expect(clock.nextIn).toBeUndefined();
  });

  it('rejects the calls that wait, and every later call says which orchestrator to use', async () => {
    const { orchestrator, handle } = await begun();
    const waiting = handle.result();
    const { execute } = orchestrator;
    await orchestrator.crash();
    const message = 'this orchestrator has crashed: use the one that `crash()` returned';
    await expect(waiting).rejects.toThrow(message);
    expect(() => orchestrator.executions).toThrow(message);
    expect(() => orchestrator.orchestrator.start('e')).toThrow(message);
    expect(() => orchestrator.crash()).toThrow(message);
    await expect(execute('e')).rejects.toThrow(message);
    // An `afterEach` that closes what a test created still works.
    await orchestrator.close();
  });

  it('a call that waits in vain and is not awaited does not end the test run', async () => {
    const { orchestrator, handle } = await begun();
    void handle.result();
    await orchestrator.crash();
    await turns(5);
  });

  it('the next process has the options of the crashed one, with the changes', async () => {
    const { orchestrator, handle, http, clock } = { ...(await begun()), http: undefined };
    const next = await orchestrator.crash({ scripts: { hang: () => 'v2' } });
    expect([next.clock, next.http, http]).toEqual([clock, orchestrator.http, undefined]);
    expect((await next.result(handle.id)).agents.map(({ output }) => output)).toEqual(['a', 'v2']);
    expect((await next.execute('e')).status).toBe('completed');
  });

  it('refuses another storage or clock, and unknown options', async () => {
    const { orchestrator } = await begun();
    await expect(orchestrator.crash({ storage: memoryStorage() } as never)).rejects.toThrow(
      'crash: `storage` stays the same after a crash; leave it out',
    );
    await expect(orchestrator.crash({ script: {} } as never)).rejects.toThrow('did you mean `scripts`?');
  });

  it('a wait, a retry and a child continue in the next process', async () => {
    const child = { name: 'child', flow: [{ sleep: '2h' }, ok('inner')] };
    const { orchestrator, start, clock } = scene(
      [
        boom('a', { retry: { maxAttempts: 2, backoff: 'fixed', delay: 5000 }, continueOnError: true }),
        { wait: 'go' },
        { ensemble: 'child' },
      ],
      { ensembles: [child] },
    );
    const { id } = await start();
    await clock.advance(0);
    const second = await orchestrator.crash();
    await clock.advance(5000);
    const third = await second.crash();
    await third.executions.signal(id, 'go');
    await clock.advance(1000);
    const fourth = await third.crash();
    expect(await fourth.result(id)).toMatchObject({ status: 'completed', agents: [{ attempts: 2 }] });
  });

  it('no execution is suspected to end its process, however often a test crashes it', async () => {
    const { orchestrator, handle } = await begun();
    let last = orchestrator;
    for (let i = 0; i < 10; i++) {
      last = (await last.crash()) as typeof orchestrator;
      await last.clock.advance(0);
    }
    last = (await last.crash({ scripts: { hang: () => 'done' } })) as typeof orchestrator;
    expect(await last.result(handle.id)).toMatchObject({ status: 'completed', duration: 0 });
  });

  it('keeps the stubs of scripts', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [{ name: 'e', ...flow }],
      scripts: { ok: () => 'real', hang },
    });
    orchestrator.stubScript('ok', () => 'stubbed');
    const { id } = await orchestrator.start('e');
    const next = await orchestrator.crash({ scripts: { hang: () => 1 } });
    expect((await next.result(id)).agents[0]?.output).toBe('stubbed');
    expect((await next.execute('e')).agents[0]?.output).toBe('stubbed');
  });
});

describe('result(id)', () => {
  it('refuses an unknown execution', async () => {
    const { orchestrator } = scene([ok('a')]);
    await expect(orchestrator.result('exec_01M7WXNBVAVMY1H8W3JXP6GBWP')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});
