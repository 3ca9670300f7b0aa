/** T42: stores of earlier versions open in this one, what was running in them goes on, and what they hold stays. */

import { describe, expect, it } from 'vitest';
import type { SqlConnection } from '../../src/adapters/storage/sqlite/connection.ts';
import { MIGRATIONS, migrate, readVersion } from '../../src/adapters/storage/sqlite/migrations.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import {
  claim,
  commitOne,
  end,
  entry,
  execution,
  executionId,
  join,
  nextDueAt,
  OTHER,
  OWNER,
  retrying,
  step,
  T0,
} from '../../src/adapters/testing/storage-suite/context.ts';
import type { StepRecord } from '../../src/engine/model/stored-execution.ts';
import type { Storage } from '../../src/engine/ports/storage.ts';
import { newFile, withFile } from './sqlite-files.ts';

const VERSION_1 = MIGRATIONS.slice(0, 1);

/** What version 1 wrote when it accepted an execution. */
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

/** Executions 1 to 3: one that ended, one in the midst of its steps, one that has just begun. */
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

const steps = (storage: Storage, number: number) => storage.listSteps(executionId(number), { limit: 10, notes: true });

describe('T42: a store of version 1', () => {
  it('what was running is taken up with its records, and finishes', async () => {
    const path = await storeOfVersion1();
    const storage = sqliteStorage({ path });
    expect(await nextDueAt(storage)).toBe(T0 + 2);
    await join(storage);
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
      })),
    );
    expect(await steps(storage, 2)).toEqual([step('flow[0]'), retrying('flow[1]', 1)]);
    const last = { steps: [step('flow[1]', { attempts: 2 })], end: end({ agents: 2 }) };
    expect(await commitOne(storage, entry(2, { epoch: 2, ...last }))).toBe('stored');
    expect(await storage.getExecution(executionId(2))).toMatchObject({
      status: 'completed',
      startedAt: T0 + 2,
      metrics: { agents: 2 },
      agents: [{ key: 'flow[0]' }, { key: 'flow[1]', attempts: 2 }],
    });
    await storage.close();
  });

  it('steps that are added stand behind those that were there, whatever their keys are', async () => {
    const storage = sqliteStorage({ path: await storeOfVersion1() });
    await join(storage);
    await claim(storage);
    await commitOne(storage, entry(2, { epoch: 2, steps: [step('a'), step('Z')] }));
    await storage.leave(OWNER, T0);
    await join(storage, OTHER);
    await claim(storage, {}, OTHER);
    const late = entry(2, { epoch: 3, steps: [step('A'), step('flow[1]', { attempts: 2 })] });
    expect(await storage.commit(OTHER, [late])).toEqual(['stored']);
    expect((await steps(storage, 2)).map(({ key }) => key)).toEqual(['flow[0]', 'flow[1]', 'a', 'Z', 'A']);
    await storage.close();
  });

  it('what had ended, and every state, is as it was', async () => {
    const path = await storeOfVersion1();
    const storage = sqliteStorage({ path });
    const { seed: _seed, ...accepted } = execution(1);
    expect(await storage.getExecution(executionId(1))).toEqual({
      ...accepted,
      status: 'completed',
      output: { done: true },
      startedAt: T0 + 1,
      finishedAt: T0 + 500,
      duration: 400,
      metrics: { totalDuration: 400, agents: 1 },
      agents: [expect.objectContaining({ key: 'flow[0]' })],
    });
    expect(await storage.readState('orders')).toEqual({ value: { a: 1 }, version: 4, updatedAt: T0 });
    expect((await storage.listExecutions({ limit: 10 })).map(({ status }) => status)).toEqual([
      'running',
      'running',
      'completed',
    ]);
    await storage.close();
  });

  it('what a process of version 1 accepts that still has it open is taken up by the next owner, and lost to that process', async () => {
    const path = await storeOfVersion1();
    await withFile(path, async (before) => {
      const storage = sqliteStorage({ path });
      await join(storage);
      expect((await claim(storage)).length).toBe(2);
      acceptAsBefore(before, 4);
      expect(await claim(storage)).toEqual([]);
      await storage.leave(OWNER, T0);
      await join(storage, OTHER, T0 + 10);
      expect((await claim(storage, {}, OTHER)).map((one) => [one.execution.id, one.epoch, one.startedAt])).toEqual(
        expect.arrayContaining([[executionId(4), 2, T0 + 4]]),
      );
      const lateEnd = before.prepare(`UPDATE ensemble_executions SET status = 'completed', finished_at = 1
        WHERE namespace = 'default' AND id = ? AND epoch = 1 AND finished_at IS NULL`);
      expect(lateEnd.run([executionId(4)])).toBe(0);
      await storage.close();
    });
  });

  it('T1.21: an update that fails leaves it at version 1, and can be done again', async () => {
    const path = await storeOfVersion1();
    await withFile(path, (connection) => {
      const broken = [...VERSION_1, `${MIGRATIONS[1]}; CREATE TABLE ensemble_owners (a)`];
      expect(() => migrate(connection, path, broken)).toThrow('already exists');
      expect(readVersion(connection, path)).toBe(1);
    });
    const storage = sqliteStorage({ path });
    await join(storage);
    expect((await claim(storage)).length).toBe(2);
    await storage.close();
  });

  it('100,000 executions that have ended are not written anew', async () => {
    const path = await storeOfVersion1();
    const pages = await withFile(path, (connection) => {
      connection.exec(`WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
        INSERT INTO ensemble_executions (namespace, id, ensemble, version, status, epoch, seed, started_by, created_at,
          finished_at, duration, agents, output, input)
        SELECT 'default', 'exec_' || i, 'orders', 'v', 'completed', 1, 's', '{}', 1, 2, 1, 0, 'null', 'null' FROM n;
        PRAGMA wal_checkpoint(TRUNCATE)`);
      connection.exec('PRAGMA busy_timeout = 5000');
      migrate(connection, path);
      return connection.prepare('PRAGMA wal_checkpoint').all([])[0]?.log as number;
    });
    expect(pages).toBeLessThan(100);
  });
});
