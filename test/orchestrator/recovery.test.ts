/** Looks at owners that may be dead: beside the turns of the work loop, one at a time, and again when the storage says so. */

import { describe, expect, it } from 'vitest';
import { embeddedEngine } from '../../src/adapters/engine/embedded-engine.ts';
import type { EmbeddedEngineOptions } from '../../src/adapters/engine/engine-options.ts';
import { memoryStorage } from '../../src/adapters/storage/memory-storage.ts';
import { hostTurn, manualClock } from '../../src/adapters/testing/manual-clock.ts';
import type { MaybePromise } from '../../src/engine/ports/operation.ts';
import type { Recovered, Storage } from '../../src/engine/ports/storage.ts';
import { createOrchestrator } from '../../src/orchestrator.ts';

const SWEEP_MS = 500;

/** @param recover - what the storage answers to each look */
function scene(recover: (inner: Storage, owner: string) => MaybePromise<Recovered>) {
  const clock = manualClock();
  const inner = memoryStorage({ shared: true });
  const looks: number[] = [];
  const warnings: string[] = [];
  const storage: Storage = {
    ...inner,
    recover(owner) {
      looks.push(clock.monotonic());
      return recover(inner, owner);
    },
  };
  let hung = 0;
  const hangs = () => {
    hung += 1;
    return new Promise<never>(() => {});
  };
  const open = (engine: EmbeddedEngineOptions = {}, on: Storage = storage) =>
    createOrchestrator({
      ensembles: ['one', 'hangs'].map((name) => ({
        name,
        flow: [{ agent: 'a', operation: 'code', config: { script: name } }],
      })),
      scripts: { one: () => 1, hangs },
      engine: embeddedEngine({ sweepMs: SWEEP_MS, ...engine }),
      logger: { debug() {}, info() {}, warn: (_about, message = '') => void warnings.push(message), error() {} },
      storage: on,
      clock,
    });
  const advance = async (ms: number) => {
    for (let i = 0; i < 5; i++) await hostTurn();
    await clock.advance(ms);
    for (let i = 0; i < 5; i++) await hostTurn();
  };
  return { clock, inner, looks, warnings, open, advance, begun: () => hung };
}

function gate() {
  let open = (_answer: Recovered) => {};
  const answer = new Promise<Recovered>((resolve) => {
    open = resolve;
  });
  return { answer, open };
}

describe('looks at dead owners', () => {
  it('a takeover that takes its time holds nothing new up, and close waits for it', async () => {
    const { answer, open: end } = gate();
    const { inner, looks, open, advance } = scene(() => answer);
    const orchestrator = open();
    await orchestrator.ready();
    await advance(0);
    const { id } = await open({ concurrency: 0 }, inner).start('one');
    await advance(SWEEP_MS);
    expect((await inner.getExecution(id))?.status).toBe('completed');
    await advance(10 * SWEEP_MS);
    expect(looks).toHaveLength(1);
    let closed = false;
    const closing = orchestrator.close().then(() => {
      closed = true;
    });
    await advance(SWEEP_MS);
    expect(closed).toBe(false);
    end({ freed: 0 });
    await closing;
  });

  it('are made twice in each sweep, and when the storage says so', async () => {
    let againInMs: number | undefined = 40;
    const { looks, open, advance } = scene(() => (againInMs === undefined ? { freed: 0 } : { freed: 0, againInMs }));
    const orchestrator = open();
    await orchestrator.ready();
    await advance(100);
    expect(looks).toEqual([0, 40, 80]);
    againInMs = undefined;
    await advance(400);
    expect(looks).toEqual([0, 40, 80, 120, 250, 500]);
    againInMs = 1000;
    await advance(500);
    expect(looks.slice(6)).toEqual([750, 1000]);
    await orchestrator.close();
    await advance(5000);
    expect(looks).toHaveLength(8);
  });

  it('one that fails is told, and made again; what others do goes on', async () => {
    let fails = true;
    const { inner, looks, warnings, open, advance } = scene(() => {
      if (fails) throw new Error('no answer');
      return { freed: 0 };
    });
    const orchestrator = open();
    await orchestrator.ready();
    await advance(SWEEP_MS);
    const { id } = await open({ concurrency: 0 }, inner).start('one');
    await advance(SWEEP_MS);
    expect((await inner.getExecution(id))?.status).toBe('completed');
    expect(warnings.filter((text) => /which processes are dead/.test(text))).toHaveLength(looks.length);
    fails = false;
    await advance(SWEEP_MS);
    expect(warnings).toHaveLength(looks.length - 2);
    await orchestrator.close();
  });

  it('what one frees is taken up at once', async () => {
    const { answer, open: go } = gate();
    const { clock, inner, open, advance, begun } = scene(async (storage, owner) => {
      await answer;
      return storage.recover(owner, clock.now());
    });
    const silent = { recover: () => ({ freed: 0 }), renew: () => new Promise<boolean>(() => {}) };
    const first = open({ leaseMs: 300 }, { ...inner, ...silent });
    await first.start('hangs');
    const second = open({ sweepMs: 3_600_000 });
    await second.ready();
    await advance(300);
    expect(begun()).toBe(1);
    go({ freed: 0 });
    await advance(0);
    expect(begun()).toBe(2);
    for (const one of [first, second]) void one.close({ grace: 0 });
  });

  it('runDue makes the one that is due, waits for it, and fails with it', async () => {
    const { answer, open: end } = gate();
    let fails = false;
    const { looks, open, advance } = scene(() => {
      if (fails) throw new Error('no answer');
      return answer;
    });
    const orchestrator = open();
    let done = false;
    const due = orchestrator.runDue().then(() => {
      done = true;
    });
    await advance(0);
    expect([done, looks.length]).toEqual([false, 1]);
    end({ freed: 0 });
    await due;
    await orchestrator.runDue();
    expect(looks).toHaveLength(1);
    await advance(SWEEP_MS);
    fails = true;
    await expect(orchestrator.runDue()).rejects.toThrow();
    await orchestrator.close();
  });
});
