/** Results that are large, or that no storage can hold: they do not affect other executions. */

import { describe, expect, it } from 'vitest';
import { hostTurn, manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { withStorageTimeout } from '../../src/adapters/storage/with-storage-timeout.ts';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import { estimateEntryBytes } from '../../src/engine/execution/estimate-entry-bytes.ts';
import type { CommitEntry } from '../../src/engine/execution/stored-execution.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { createOrchestrator, memoryStorage } from '../../src/index.ts';

const MIB = 1024 * 1024;
const FLOW = [
  { agent: 'a', operation: 'code', config: { script: 'make' } },
  { agent: 'b', operation: 'code', config: { script: 'small' } },
];

/** A storage whose commits call `commit`, several entries at a time. */
function scene(
  commit: (inner: Storage, batch: readonly CommitEntry[], worker: string) => ReturnType<Storage['commit']>,
) {
  const clock = manualClock();
  const inner = memoryStorage({ shared: true });
  const sent: (readonly CommitEntry[])[] = [];
  const storage: Storage = {
    ...inner,
    capabilities: { ...inner.capabilities, groupedCommits: true },
    commit(worker, batch) {
      sent.push(batch);
      return commit(inner, batch, worker);
    },
  };
  const orchestrator = createOrchestrator({
    ensembles: [{ name: 'e', flow: FLOW, outputs: { b: '${b.output}' } }],
    scripts: { make: ({ input }) => 'x'.repeat(input.size), small: () => 1 },
    storage,
    clock,
  });
  const run = async (sizes: readonly number[]) => {
    const ends: (string | undefined)[] = sizes.map(() => undefined);
    for (const [i, size] of sizes.entries()) {
      orchestrator.execute('e', { size }).then(
        ({ status, error }) => {
          ends[i] = error ? `${status} ${error.code}: ${error.message}` : status;
        },
        (thrown) => {
          ends[i] = thrown.code;
        },
      );
    }
    const end = clock.monotonic() + 300_000;
    while (ends.includes(undefined) && clock.monotonic() < end) {
      for (let turn = 0; turn < 5; turn++) await hostTurn();
      await clock.advanceToNext();
    }
    return ends;
  };
  const bytes = (batch: readonly CommitEntry[]) => batch.reduce((sum, entry) => sum + estimateEntryBytes(entry), 0);
  return { clock, inner, sent, run, bytes };
}

const mixed = [...Array(12).fill(3 * MIB), ...Array(30).fill(10)];

describe('large results', () => {
  it('a write has at most 4 MiB besides its first entry, and keeps the order of entries', async () => {
    const { sent, run, bytes } = scene(async (inner, batch, worker) => inner.commit(worker, batch));
    expect(new Set(await run(mixed))).toEqual(new Set(['completed']));
    for (const batch of sent) expect(bytes(batch.slice(1))).toBeLessThanOrEqual(4 * MIB);
    expect(Math.max(...sent.map((batch) => batch.length))).toBeGreaterThan(8);
  });

  it('a write without an answer in time is sent again in halves, so that small results are stored next to large ones', async () => {
    // It answers at once to small writes, and never to larger ones.
    const { inner, run, sent, bytes } = scene((storage, batch, worker) => {
      if (bytes(batch) > 4 * MIB) {
        const late = { details: { timeoutMs: 10_000 }, retryable: true };
        return Promise.reject(new OrchestratorError('OVERLOADED', 'no answer in time', late));
      }
      return Promise.resolve(storage.commit(worker, batch));
    });
    expect(new Set(await run(mixed))).toEqual(new Set(['completed']));
    expect((await inner.executions.list({ limit: 250 })).length).toBe(mixed.length);
    expect(sent.some((batch) => bytes(batch) > 4 * MIB)).toBe(true);
  });

  it('without any answer, halves are sent for at most a lease; then the executions are resumed', async () => {
    let away = true;
    const { clock, inner, run, sent } = scene((storage, batch, worker) => {
      if (!away || batch[0]?.start) return Promise.resolve(storage.commit(worker, batch));
      const late = { details: { timeoutMs: 10_000 }, retryable: true };
      return clock.sleep(10_000).then(() => {
        throw new OrchestratorError('OVERLOADED', 'no answer in time', late);
      });
    });
    const before = clock.monotonic();
    expect(new Set(await run(Array(64).fill(10)))).toEqual(new Set(['OVERLOADED']));
    expect(clock.monotonic() - before).toBeLessThan(90_000);
    expect(sent.length).toBeLessThan(40);
    away = false;
    for (let i = 0; i < 200; i++) {
      for (let turn = 0; turn < 5; turn++) await hostTurn();
      await clock.advanceToNext();
    }
    const ends = (await inner.executions.list({ limit: 250 })).map(({ status }) => status);
    expect(ends).toEqual(Array(64).fill('completed'));
  });

  it('a write has 1 s more for each MiB', async () => {
    const clock = manualClock();
    const never: Storage = { ...memoryStorage(), commit: () => new Promise(() => {}) };
    const storage = withStorageTimeout(never, clock, 10_000);
    const entry = (size: number): CommitEntry => {
      const about = { key: 'flow[0]', name: 'a', status: 'completed', attempts: 1, startedAt: 0, duration: 0 } as const;
      return { executionId: 'exec_1', epoch: 1, steps: [{ ...about, output: 'x'.repeat(size) }] };
    };
    const ended: number[] = [];
    for (const size of [10, 3 * MIB]) {
      Promise.resolve(storage.commit('own_1', [entry(size)])).catch(({ details }) => {
        ended.push(clock.monotonic());
        expect(details.timeoutMs).toBe(clock.monotonic());
      });
    }
    await clock.advance(20_000);
    expect(ended).toEqual([10_000, 13_000]);
  });
});

describe('a value that no storage can hold', () => {
  const tooLong = (batch: readonly CommitEntry[], what: (entry: CommitEntry) => boolean) => {
    if (batch.some(what)) throw new RangeError('Invalid string length');
  };

  it('fails only its execution, at once and with the problem', async () => {
    const isLarge = ({ steps }: CommitEntry) => steps.some(({ output }) => String(output).length > MIB);
    const { run, sent } = scene(async (inner, batch, worker) => {
      tooLong(batch, isLarge);
      return inner.commit(worker, batch);
    });
    const ends = await run([10, 2 * MIB, 10, 10]);
    const failed = 'failed INVALID_OUTPUT: the result at flow[0] could not be stored: Invalid string length';
    expect(ends).toEqual(['completed', failed, 'completed', 'completed']);
    expect(sent.filter((batch) => batch.some(isLarge)).length).toBeLessThanOrEqual(2);
  });

  it('is left out of the stored end', async () => {
    const { inner, run } = scene(async (storage, batch, worker) => {
      tooLong(batch, ({ end }) => end?.status === 'completed');
      return storage.commit(worker, batch);
    });
    const failed = 'failed INVALID_OUTPUT: the end of the execution could not be stored: Invalid string length';
    expect(await run([10])).toEqual([failed]);
    const [record] = await inner.executions.list({ limit: 1 });
    expect([record?.status, record?.output, record?.partialOutput]).toEqual(['failed', undefined, undefined]);
  });

  it('is refused as an input', async () => {
    const { inner, run } = scene((storage, batch, worker) => {
      tooLong(batch, ({ start }) => start !== undefined);
      return storage.commit(worker, batch);
    });
    expect(await run([10])).toEqual(['INVALID_INPUT']);
    expect(await inner.executions.list({ limit: 1 })).toEqual([]);
  });
});
