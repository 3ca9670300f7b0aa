/** Long waits on a clock of the testing kit: sweeps that have nothing to do take no time, with each storage. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { createTestOrchestrator, manualClock, stubHttp } from '../../src/entries/testing.ts';
import { createDatabase, findServer } from '../storage/postgres-server.ts';
import { newFile } from '../storage/sqlite-files.ts';

const DAY = 86_400_000;
const notify = 'notifications:\n  - { type: webhook, url: "https://hook.example/", events: [execution.completed] }\n';
const ensembles = [
  'name: day\nflow:\n  - { sleep: 1d, name: night }',
  `name: month\n${notify}flow:\n  - { sleep: 28d, name: pause }`,
  'name: quarter\nflow:\n  - { sleep: 15m, name: pause }',
];

async function withStorage(kind: string, use: (storage: Storage) => Promise<void>) {
  if (kind === 'memory') return use(memoryStorage({ shared: true }));
  if (kind === 'sqlite') return use(sqliteStorage({ path: newFile() }));
  const database = await createDatabase();
  try {
    await use(postgresStorage({ url: database.connectionString }));
  } finally {
    await database.drop();
  }
}

/** Counts the calls of its parts. */
function counting(storage: Storage, counts: { calls: number }): Storage {
  const wrap = <P extends object>(part: P): P =>
    new Proxy(part, {
      get(target, key) {
        const member = Reflect.get(target, key);
        if (typeof member === 'object' && member !== null && key !== 'capabilities') return wrap(member);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]) => {
          counts.calls += 1;
          return Reflect.apply(member, target, args);
        };
      },
    });
  return wrap(storage);
}

const kinds = ['memory', 'sqlite', ...((await findServer()) ? ['postgres'] : [])];

describe.each(kinds)('on %s', (kind) => {
  it('an execution that sleeps for a day or 28 takes few calls of the storage, and no line of the log says that the process stood still', async () => {
    await withStorage(kind, async (storage) => {
      const lines: unknown[] = [];
      const line = (...given: unknown[]) => void lines.push(given);
      const logger = { debug() {}, info() {}, warn: line, error: line };
      const counts = { calls: 0 };
      const http = stubHttp({ 'POST https://hook.example/': {} });
      const orchestrator = createTestOrchestrator({ ensembles, http, logger, storage: counting(storage, counts) });
      await orchestrator.ready();
      await orchestrator.execute('quarter');
      counts.calls = 0;
      const day = await orchestrator.execute('day');
      expect([day.status, day.duration]).toEqual(['completed', DAY]);
      expect(counts.calls).toBeLessThan(50);
      const month = await orchestrator.execute('month');
      expect([month.status, month.duration]).toEqual(['completed', 28 * DAY]);
      expect(counts.calls).toBeLessThan(120);
      await expect.poll(() => http.calls.length).toBe(1);
      expect(lines).toEqual([]);
      const { id } = await orchestrator.start('day');
      await orchestrator.clock.advance(DAY / 2);
      expect((await orchestrator.executions.get(id)).status).not.toBe('completed');
      expect((await orchestrator.result(id)).duration).toBe(DAY);
      // `advance` does not wait for the answers of a server.
      if (kind !== 'postgres') expect(counts.calls).toBeLessThan(300);
      await orchestrator.close();
    });
  });

  it('a schedule fires at each of its instants during a long sleep', async () => {
    await withStorage(kind, async (storage) => {
      const tick = 'name: tick\ntrigger:\n  - { type: schedule, cron: "0 * * * *" }\nflow: []';
      const orchestrator = createTestOrchestrator({ ensembles: [...ensembles, tick], storage });
      await orchestrator.ready();
      await orchestrator.execute('day');
      expect(
        (await orchestrator.executions.list({ ensemble: 'tick', limit: 100 })).executions.length,
      ).toBeGreaterThanOrEqual(23);
      await orchestrator.close();
    });
  });

  it('of two processes on one clock, none is considered dead during a long sleep', async () => {
    await withStorage(kind, async (storage) => {
      const lines: unknown[] = [];
      const line = (...given: unknown[]) => void lines.push(given);
      const logger = { debug() {}, info() {}, warn: line, error: line };
      const clock = manualClock();
      const options = { ensembles, storage, clock, logger };
      const [one, other] = [createTestOrchestrator(options), createTestOrchestrator(options)];
      await Promise.all([one.ready(), other.ready()]);
      const runs = await Promise.all([one.execute('quarter'), other.execute('quarter')]);
      expect(runs.map(({ status, recoveries }) => [status, recoveries])).toEqual([
        ['completed', 0],
        ['completed', 0],
      ]);
      expect(lines).toEqual([]);
      await one.close();
    });
  });
});
