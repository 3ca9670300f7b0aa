/** An execution that its storage can't read or write: it is retried less and less often, logged once, and delays no other execution. */

import { describe, expect, it } from 'vitest';
import { hostTurn, manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import type { ClaimedExecution } from '../../src/engine/execution/stored-execution.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { changeStorage, type StorageChanges } from '../../src/testing-kit/processes/change-storage.ts';

const MINUTE = 60_000;

/** Ten executions of a dead process. The storage fails for one of them. An hour passes. */
async function anHour(fail: (inner: Storage, id: string) => StorageChanges, forMs = 60 * MINUTE) {
  const clock = manualClock();
  const inner = memoryStorage({ shared: true });
  const definition = {
    name: 'e',
    flow: [
      { agent: 'a', operation: 'code', config: { script: 'one' } },
      { sleep: '1h' },
      { agent: 'b', operation: 'code', config: { script: 'one' } },
    ],
  };
  const shared = { ensembles: [definition], scripts: { one: () => 1 }, clock };
  const before = createOrchestrator({ ...shared, storage: inner });
  const ids: string[] = [];
  for (let i = 0; i < 10; i++) ids.push((await before.start('e')).id);
  for (let turn = 0; turn < 5; turn++) await hostTurn();
  await before.close({ grace: 0 });
  const [id = ''] = ids;
  await clock.advance(60 * MINUTE);
  let claims = 0;
  const lines: string[] = [];
  const line = (about: { readonly executionId?: string }, text = '') => {
    if (about.executionId === undefined || about.executionId === id) lines.push(text);
  };
  const end = clock.monotonic() + forMs;
  const failing = changeStorage(inner, fail(inner, id));
  const now = () => (clock.monotonic() < end ? failing : inner);
  const storage = changeStorage(inner, {
    commit: (...given) => now().commit(...given),
    state: { read: (...given) => now().state.read(...given) },
    executions: {
      listSteps: (...given) => now().executions.listSteps(...given),
      claim(...given) {
        const claimed = inner.executions.claim(...given) as readonly ClaimedExecution[];
        claims += claimed.filter(({ execution }) => execution.id === id).length;
        return claimed;
      },
    },
  });
  const orchestrator = createOrchestrator({
    ...shared,
    storage,
    logger: { debug() {}, info() {}, warn: line, error: line },
  });
  await orchestrator.ready();
  const pass = async (ms: number) => {
    for (const until = clock.monotonic() + ms; clock.monotonic() < until; ) {
      for (let turn = 0; turn < 3; turn++) await hostTurn();
      await clock.advance(Math.min(clock.nextIn ?? 1000, 1000));
    }
  };
  await pass(5 * MINUTE);
  const others = await Promise.all(ids.slice(1).map(async (other) => (await inner.executions.get(other))?.status));
  expect(new Set(others)).toEqual(new Set(['completed']));
  await pass(55 * MINUTE);
  const seen = { claims, lines: [...lines], record: await inner.executions.get(id) };
  await pass(10 * MINUTE);
  const record = await inner.executions.get(id);
  void orchestrator.close({ grace: 0 });
  return { ...seen, later: record?.status };
}

const isOf = (given: unknown, id: string) => given === id;

describe('an execution that can not be resumed', () => {
  it('whose records can not be read at the moment is retried less and less often, and completes when they can', async () => {
    const { claims, lines, record, later } = await anHour((inner, id) => ({
      executions: {
        listSteps(of, query) {
          if (isOf(of, id)) throw new OrchestratorError('NOT_CONFIGURED', 'no right to read the steps');
          return inner.executions.listSteps(of, query);
        },
      },
    }));
    expect(claims).toBeLessThan(30);
    expect(lines).toHaveLength(1);
    expect([record?.status, later]).toEqual(['running', 'completed']);
  });

  it('whose records can not be read at all is ended after half a minute, with the problem', async () => {
    const { claims, lines, record } = await anHour((inner, id) => ({
      executions: {
        listSteps(of, query) {
          if (isOf(of, id)) throw new OrchestratorError('INTERNAL', 'the file is damaged');
          return inner.executions.listSteps(of, query);
        },
      },
    }));
    expect(claims).toBeLessThan(10);
    // That it could not be resumed, that it was ended, and how it ended.
    expect(lines).toHaveLength(3);
    expect([record?.status, record?.error?.message]).toEqual([
      'failed',
      "what is stored of it can't be read: the file is damaged",
    ]);
  });

  it('of which nothing can be read or stored stays as it is, and is logged once', async () => {
    const damaged = () => {
      throw new OrchestratorError('INTERNAL', 'the file is damaged');
    };
    const { claims, lines, record } = await anHour((inner, id) => ({
      executions: { listSteps: (of, query) => (isOf(of, id) ? damaged() : inner.executions.listSteps(of, query)) },
      commit: (worker, batch) =>
        batch.some(({ executionId }) => executionId === id) ? damaged() : inner.commit(worker, batch),
    }));
    expect(claims).toBe(1);
    expect(lines.length).toBeLessThanOrEqual(2);
    expect(record?.status).toBe('running');
  });

  it('whose run can not continue, because its state can not be read, is suspended for longer and longer', async () => {
    const { lines, claims, later } = await anHour((inner, id) => ({
      commit: (worker, batch) => {
        if (batch.some(({ executionId, release }) => executionId === id && release === undefined))
          throw new OrchestratorError('NOT_CONFIGURED', 'no right to write the steps');
        return inner.commit(worker, batch);
      },
    }));
    expect(claims).toBeLessThan(30);
    expect(lines.length).toBeLessThanOrEqual(2);
    expect(later).toBe('completed');
  });
});
