/** Checks for dead workers run independently of the work loop, one at a time, and again when the storage asks for it. */

import { describe, expect, it } from 'vitest';
import { hostTurn, manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import type { EmbeddedEngineOptions } from '../../src/adapters/embedded-engine/engine-options.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { MaybePromise } from '../../src/engine/operation/operation.port.ts';
import type { Reclaimed, Storage } from '../../src/engine/storage/storage.port.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';

const SWEEP_MS = 500;

/** @param reclaim - the storage's answer to each check */
function scene(reclaim: (inner: Storage, worker: string) => MaybePromise<Reclaimed>) {
  const clock = manualClock();
  const inner = memoryStorage({ shared: true });
  const checks: number[] = [];
  const warnings: string[] = [];
  const storage = changeStorage(inner, {
    workers: {
      reclaimFromDead(worker) {
        checks.push(clock.monotonic());
        return reclaim(inner, worker);
      },
    },
  });
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
  return { clock, inner, checks, warnings, open, advance, begun: () => hung };
}

function gate() {
  let open = (_answer: Reclaimed) => {};
  const answer = new Promise<Reclaimed>((resolve) => {
    open = resolve;
  });
  return { answer, open };
}

describe('the check for dead workers', () => {
  it('a slow check does not delay new starts, and close waits for it', async () => {
    const { answer, open: end } = gate();
    const { inner, checks, open, advance } = scene(() => answer);
    const orchestrator = open();
    await orchestrator.ready();
    await advance(0);
    const { id } = await open({ concurrency: 0 }, inner).start('one');
    await advance(SWEEP_MS);
    expect((await inner.executions.get(id))?.status).toBe('completed');
    await advance(10 * SWEEP_MS);
    expect(checks).toHaveLength(1);
    let closed = false;
    const closing = orchestrator.close().then(() => {
      closed = true;
    });
    await advance(SWEEP_MS);
    expect(closed).toBe(false);
    end({ freed: 0 });
    await closing;
  });

  it('runs twice in each sweep, and when the storage asks for it', async () => {
    let againInMs: number | undefined = 40;
    const { checks, open, advance } = scene(() => (againInMs === undefined ? { freed: 0 } : { freed: 0, againInMs }));
    const orchestrator = open();
    await orchestrator.ready();
    await advance(100);
    expect(checks).toEqual([0, 40, 80]);
    againInMs = undefined;
    await advance(400);
    expect(checks).toEqual([0, 40, 80, 120, 250, 500]);
    againInMs = 1000;
    await advance(500);
    expect(checks.slice(6)).toEqual([750, 1000]);
    await orchestrator.close();
    await advance(5000);
    expect(checks).toHaveLength(8);
  });

  it('a failed check is logged and repeated, and other work continues', async () => {
    let fails = true;
    const { inner, checks, warnings, open, advance } = scene(() => {
      if (fails) throw new Error('no answer');
      return { freed: 0 };
    });
    const orchestrator = open();
    await orchestrator.ready();
    await advance(SWEEP_MS);
    const { id } = await open({ concurrency: 0 }, inner).start('one');
    await advance(SWEEP_MS);
    expect((await inner.executions.get(id))?.status).toBe('completed');
    expect(warnings.filter((text) => /which processes are dead/.test(text))).toHaveLength(checks.length);
    fails = false;
    await advance(SWEEP_MS);
    expect(warnings).toHaveLength(checks.length - 2);
    await orchestrator.close();
  });

  it('an execution that a check frees is resumed at once', async () => {
    const { answer, open: go } = gate();
    const { clock, inner, open, advance, begun } = scene(async (storage, worker) => {
      await answer;
      return storage.workers.reclaimFromDead(worker, clock.now());
    });
    const silent = { reclaimFromDead: () => ({ freed: 0 }), renew: () => new Promise<boolean>(() => {}) };
    const first = open({ leaseMs: 300 }, changeStorage(inner, { workers: silent }));
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

  it('runDue makes the check that is due, waits for it, and fails if it fails', async () => {
    const { answer, open: end } = gate();
    let fails = false;
    const { checks, open, advance } = scene(() => {
      if (fails) throw new Error('no answer');
      return answer;
    });
    const orchestrator = open();
    let done = false;
    const due = orchestrator.runDue().then(() => {
      done = true;
    });
    await advance(0);
    expect([done, checks.length]).toEqual([false, 1]);
    end({ freed: 0 });
    await due;
    await orchestrator.runDue();
    expect(checks).toHaveLength(1);
    await advance(SWEEP_MS);
    fails = true;
    await expect(orchestrator.runDue()).rejects.toThrow();
    await orchestrator.close();
  });
});
