/** An execution that its storage can't give or take: it is tried again less and less often, told once, and in nobody's way. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory-storage.ts';
import { hostTurn, manualClock } from '../../src/adapters/testing/manual-clock.ts';
import { OrchestratorError } from '../../src/engine/errors.ts';
import type { Storage } from '../../src/engine/ports/storage.ts';
import { createOrchestrator } from '../../src/orchestrator.ts';

const MINUTE = 60_000;

/** Ten executions that were left behind, of which the storage fails for one; an hour passes. */
async function anHour(fail: (inner: Storage, id: string) => Partial<Storage>, forMs = 60 * MINUTE) {
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
  const failing = fail(inner, id);
  const storage = new Proxy(inner, {
    get(_inner, verb) {
      const healthy = Reflect.get(inner, verb);
      if (verb === 'claim') {
        return (...given: Parameters<Storage['claim']>) => {
          const claimed = inner.claim(...given) as readonly { readonly execution: { readonly id: string } }[];
          claims += claimed.filter(({ execution }) => execution.id === id).length;
          return claimed;
        };
      }
      const broken = Reflect.get(failing, verb);
      return broken && clock.monotonic() < end ? broken : healthy;
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
  const others = await Promise.all(ids.slice(1).map(async (other) => (await inner.getExecution(other))?.status));
  expect(new Set(others)).toEqual(new Set(['completed']));
  await pass(55 * MINUTE);
  const seen = { claims, lines: [...lines], record: await inner.getExecution(id) };
  await pass(10 * MINUTE);
  const record = await inner.getExecution(id);
  void orchestrator.close({ grace: 0 });
  return { ...seen, later: record?.status };
}

const isOf = (given: unknown, id: string) => given === id;

describe('an execution that can not be resumed', () => {
  it('whose records can not be read at the moment is tried less and less often, and completes when they can', async () => {
    const { claims, lines, record, later } = await anHour((inner, id) => ({
      listSteps(of, query) {
        if (isOf(of, id)) throw new OrchestratorError('NOT_CONFIGURED', 'no right to read the steps');
        return inner.listSteps(of, query);
      },
    }));
    expect(claims).toBeLessThan(30);
    expect(lines).toHaveLength(1);
    expect([record?.status, later]).toEqual(['running', 'completed']);
  });

  it('whose records can not be read at all is ended after half a minute, with what is wrong', async () => {
    const { claims, lines, record } = await anHour((inner, id) => ({
      listSteps(of, query) {
        if (isOf(of, id)) throw new OrchestratorError('INTERNAL', 'the file is damaged');
        return inner.listSteps(of, query);
      },
    }));
    expect(claims).toBeLessThan(10);
    // That it could not be resumed, and that it was ended.
    expect(lines).toHaveLength(2);
    expect([record?.status, record?.error?.message]).toEqual([
      'failed',
      "what is stored of it can't be read: the file is damaged",
    ]);
  });

  it('of which nothing can be read or stored stays as it is, and is told once', async () => {
    const damaged = () => {
      throw new OrchestratorError('INTERNAL', 'the file is damaged');
    };
    const { claims, lines, record } = await anHour((inner, id) => ({
      listSteps: (of, query) => (isOf(of, id) ? damaged() : inner.listSteps(of, query)),
      commit: (owner, batch) =>
        batch.some(({ executionId }) => executionId === id) ? damaged() : inner.commit(owner, batch),
    }));
    expect(claims).toBe(1);
    expect(lines.length).toBeLessThanOrEqual(2);
    expect(record?.status).toBe('running');
  });

  it('whose run can not go on, because its state can not be read, is suspended for longer and longer', async () => {
    const { lines, claims, later } = await anHour((inner, id) => ({
      commit: (owner, batch) => {
        if (batch.some(({ executionId, release }) => executionId === id && release === undefined))
          throw new OrchestratorError('NOT_CONFIGURED', 'no right to write the steps');
        return inner.commit(owner, batch);
      },
    }));
    expect(claims).toBeLessThan(30);
    expect(lines.length).toBeLessThanOrEqual(2);
    expect(later).toBe('completed');
  });
});
