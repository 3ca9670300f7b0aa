/** Stores of earlier versions open in this version: running executions continue, and the data stays. */

import { describe, expect, it } from 'vitest';
import type { SqlConnection } from '../../src/adapters/storage/sqlite/drivers/driver.ts';
import { MIGRATIONS, migrate, readVersion } from '../../src/adapters/storage/sqlite/tables/migrations.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import type { StepRecord } from '../../src/engine/model/stored-execution.ts';
import type { Storage } from '../../src/engine/ports/storage.ts';
import {
  claim,
  commitOne,
  end,
  entry,
  execution,
  executionId,
  nextDueAt,
  OTHER,
  register,
  retrying,
  starting,
  step,
  T0,
  WORKER,
} from '../../src/testing-kit/storage-suite/context.ts';
import { newFile, withFile } from './sqlite-files.ts';

const VERSION_1 = MIGRATIONS.slice(0, 1);

/** The row that version 1 wrote for an accepted execution. */
function acceptAsBefore(connection: SqlConnection, number: number): void {
  const { id, ensemble, version, seed, trigger, input, createdAt } = execution(number);
  connection
    .prepare(`INSERT INTO ensemble_executions
      (namespace, id, ensemble, version, status, epoch, seed, started_by, created_at, deadline_at, input)
      VALUES ('default', ?, ?, ?, 'running', 1, ?, ?, ?, NULL, ?)`)
    .run([id, ensemble, version, seed, JSON.stringify(trigger), createdAt, JSON.stringify(input)]);
}

function stepAsBefore(connection: SqlConnection, ref: number, record: StepRecord): void {
  const { key, name, status, attempts, startedAt, duration, retryAt = null, error, output } = record;
  connection
    .prepare(`INSERT INTO ensemble_steps
      (execution, key, name, status, attempts, started_at, duration, retry_at, error, output)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    .run([
      ...[ref, key, name, status, attempts, startedAt, duration, retryAt],
      ...[error ? JSON.stringify(error) : null, JSON.stringify(output)],
    ]);
}

/** Executions 1 to 3: one has ended, one has some steps, and one has just started. */
async function storeOfVersion1(): Promise<string> {
  const path = newFile();
  await withFile(path, (connection) => {
    connection.exec('PRAGMA journal_mode = WAL');
    migrate(connection, path, VERSION_1);
    for (const number of [1, 2, 3]) acceptAsBefore(connection, number);
    stepAsBefore(connection, 1, step('flow[0]'));
    connection.exec(`UPDATE ensemble_executions SET status = 'completed', output = '{"done":true}', finished_at = ${T0 + 500},
      duration = 400, agents = 1 WHERE ref = 1`);
    stepAsBefore(connection, 2, step('flow[0]'));
    stepAsBefore(connection, 2, retrying('flow[1]', 1));
    connection.exec(`INSERT INTO ensemble_states VALUES ('default', 'orders', 4, ${T0}, '{"a":1}')`);
  });
  return path;
}

const steps = (storage: Storage, number: number) =>
  storage.executions.listSteps(executionId(number), { limit: 10, notes: true });

describe('a store of version 1', () => {
  it('running executions are resumed with their records, and finish', async () => {
    const path = await storeOfVersion1();
    const storage = sqliteStorage({ path });
    expect(await nextDueAt(storage)).toBe(T0 + 2);
    await register(storage);
    const claimed = await claim(storage);
    expect(claimed).toEqual(
      [2, 3].map((number) => ({
        execution: execution(number),
        epoch: 2,
        startedAt: T0 + number,
        begun: true,
        recoveries: expect.any(Number),
        blame: 0,
        cancelRequested: false,
        signals: 0,
        resumedAt: T0 + 60_000,
      })),
    );
    expect(await steps(storage, 2)).toEqual([step('flow[0]'), retrying('flow[1]', 1)]);
    const last = { steps: [step('flow[1]', { attempts: 2 })], end: end({ agents: 2 }) };
    expect(await commitOne(storage, entry(2, { epoch: 2, ...last }))).toBe('stored');
    expect(await storage.executions.get(executionId(2))).toMatchObject({
      status: 'completed',
      startedAt: T0 + 2,
      metrics: { agents: 2 },
      agents: [{ key: 'flow[0]' }, { key: 'flow[1]', attempts: 2 }],
    });
    await storage.close();
  });

  it('new steps come after the existing ones, whatever their keys are', async () => {
    const storage = sqliteStorage({ path: await storeOfVersion1() });
    await register(storage);
    await claim(storage);
    await commitOne(storage, entry(2, { epoch: 2, steps: [step('a'), step('Z')] }));
    await storage.workers.unregister(WORKER, T0);
    await register(storage, OTHER);
    await claim(storage, {}, OTHER);
    const late = entry(2, { epoch: 3, steps: [step('A'), step('flow[1]', { attempts: 2 })] });
    expect(await storage.commit(OTHER, [late])).toEqual(['stored']);
    expect((await steps(storage, 2)).map(({ key }) => key)).toEqual(['flow[0]', 'flow[1]', 'a', 'Z', 'A']);
    await storage.close();
  });

  it('ended executions and states are unchanged', async () => {
    const path = await storeOfVersion1();
    const storage = sqliteStorage({ path });
    const { seed: _seed, ...accepted } = execution(1);
    expect(await storage.executions.get(executionId(1))).toEqual({
      ...accepted,
      status: 'completed',
      output: { done: true },
      startedAt: T0 + 1,
      finishedAt: T0 + 500,
      duration: 400,
      tags: [],
      metrics: { totalDuration: 400, agents: 1, queued: 0, waited: 0 },
      waitingFor: [],
      recoveries: 0,
      agents: [expect.objectContaining({ key: 'flow[0]' })],
    });
    expect(await storage.state.read('orders')).toEqual({ value: { a: 1 }, version: 4, updatedAt: T0 });
    expect((await storage.executions.list({ limit: 10 })).map(({ status }) => status)).toEqual([
      'running',
      'running',
      'completed',
    ]);
    await storage.close();
  });

  it('an execution that a process of version 1 still accepts is resumed by the next worker, and that process is fenced off', async () => {
    const path = await storeOfVersion1();
    await withFile(path, async (before) => {
      const storage = sqliteStorage({ path });
      await register(storage);
      expect((await claim(storage)).length).toBe(2);
      acceptAsBefore(before, 4);
      expect(await claim(storage)).toEqual([]);
      await storage.workers.unregister(WORKER, T0);
      await register(storage, OTHER, T0 + 10);
      expect((await claim(storage, {}, OTHER)).map((one) => [one.execution.id, one.epoch, one.startedAt])).toEqual(
        expect.arrayContaining([[executionId(4), 2, T0 + 4]]),
      );
      const lateEnd = before.prepare(`UPDATE ensemble_executions SET status = 'completed', finished_at = 1
        WHERE namespace = 'default' AND id = ? AND epoch = 1 AND finished_at IS NULL`);
      expect(lateEnd.run([executionId(4)])).toBe(0);
      await storage.close();
    });
  });

  it('an update that fails leaves the file at version 1, and can be repeated', async () => {
    const path = await storeOfVersion1();
    await withFile(path, (connection) => {
      const broken = [...VERSION_1, `${MIGRATIONS[1]}; CREATE TABLE ensemble_owners (a)`];
      expect(() => migrate(connection, path, broken)).toThrow('already exists');
      expect(readVersion(connection, path)).toBe(1);
    });
    const storage = sqliteStorage({ path });
    await register(storage);
    expect((await claim(storage)).length).toBe(2);
    await storage.close();
  });

  it('executions are listed by the new filters, and own ids, keys and tags can be stored', async () => {
    const storage = sqliteStorage({ path: await storeOfVersion1() });
    await register(storage);
    const own = execution(4, { id: 'a', idempotencyKey: 'key', tags: ['vip'] });
    expect(await commitOne(storage, starting(own))).toBe('stored');
    const ids = async (filter: object) => (await storage.executions.list({ ...filter, limit: 10 })).map(({ id }) => id);
    expect(await ids({})).toEqual(['a', ...[3, 2, 1].map(executionId)]);
    expect(await ids({ ensemble: 'orders', until: T0 + 3 })).toEqual([2, 1].map(executionId));
    expect(await ids({ status: 'completed' })).toEqual([executionId(1)]);
    expect(await ids({ tag: 'vip' })).toEqual(['a']);
    expect(await storage.executions.findByKey('key')).toBe('a');
    expect((await storage.executions.getAccepted(executionId(1)))?.tags).toBeUndefined();
    await storage.close();
  });

  it('the rows of 50,000 ended executions are not rewritten, only the indexes of lists', async () => {
    const path = await storeOfVersion1();
    const pages = await withFile(path, (connection) => {
      connection.exec(`WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
        INSERT INTO ensemble_executions (namespace, id, ensemble, version, status, epoch, seed, started_by, created_at,
          finished_at, duration, agents, output, input)
        SELECT 'default', 'exec_' || i, 'orders', 'v', 'completed', 1, 's', '{}', 1, 2, 1, 0, 'null',
          '"' || hex(zeroblob(400)) || '"' FROM n;
        PRAGMA wal_checkpoint(TRUNCATE)`);
      connection.exec('PRAGMA busy_timeout = 5000');
      migrate(connection, path);
      return connection.prepare('PRAGMA wal_checkpoint').all([])[0]?.log as number;
    });
    // The rows have more than 10,000 pages.
    expect(pages).toBeLessThan(1200);
  });
});
