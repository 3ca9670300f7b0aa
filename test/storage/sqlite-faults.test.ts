/** SQLite under faults: damaged rows, a locked file, a full disk, several processes and apps on one file, unusual text. */

import { describe, expect, it } from 'vitest';
import type { SqlDriver } from '../../src/adapters/storage/sqlite/drivers/driver.ts';
import { toStorageError } from '../../src/adapters/storage/sqlite/drivers/failure.ts';
import { loadDriver } from '../../src/adapters/storage/sqlite/drivers/load-driver.ts';
import { openTables, sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import {
  accept,
  change,
  claim,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  LEASE,
  numbers,
  register,
  starting,
  step,
  T0,
  WORKER,
} from '../../src/conformance/storage-suite/context.ts';
import type { Execution } from '../../src/engine/execution/execution.ts';
import { outputsOf } from '../../src/engine/execution/execution-record.ts';
import type { CommitEntry, StepRecord } from '../../src/engine/execution/stored-execution.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { newFile, withFile } from './sqlite-files.ts';
import { TOKEN } from './stored-token.ts';

/** Three ended executions; number 2 is then damaged. */
async function damagedStore(sql: string): Promise<Storage> {
  const path = newFile();
  const storage = sqliteStorage({ path });
  for (const number of [1, 2, 3]) {
    await accept(storage, execution(number));
    await storage.commit(WORKER, [
      entry(number, {
        steps: [step('flow[0]')],
        end: end({ status: 'failed', error: { code: 'TIMEOUT', message: 'late' } }),
      }),
    ]);
  }
  await withFile(path, (connection) => connection.exec(sql));
  return storage;
}

describe('a damaged row fails only the calls that need it', () => {
  const second = `WHERE id = '${executionId(2)}'`;

  it.each([
    ['input', `UPDATE ensemble_executions SET input = '{"number":' ${second}`],
    ['output', `UPDATE ensemble_executions SET output = substr(output, 1, 5) ${second}`],
    ['output', `UPDATE ensemble_executions SET output = NULL ${second}`],
    ['error', `UPDATE ensemble_executions SET error = '"late"' ${second}`],
    ['started_by', `UPDATE ensemble_executions SET started_by = x'00ff' ${second}`],
    ['tags', `UPDATE ensemble_executions SET tags = '["vip"' ${second}`],
    ['created_at', `UPDATE ensemble_executions SET created_at = 'yesterday' ${second}`],
  ])("an execution's %s: %s", async (column, sql) => {
    const storage = await damagedStore(sql);
    const read = async (number: number) => storage.executions.get(executionId(number));
    await expect(read(2)).rejects.toMatchObject({
      code: 'INTERNAL',
      message: expect.stringContaining(`execution ${executionId(2)}: its stored ${column}`),
    });
    expect([(await read(1))?.status, (await read(3))?.status]).toEqual(['failed', 'failed']);
    const listed = await storage.executions.list({ limit: 10 });
    // A damaged instant sorts after all others.
    const order = column === 'created_at' ? [2, 3, 1] : [3, 2, 1];
    expect(listed.map(({ id, status }) => [id, status])).toEqual(
      order.map((number) => [executionId(number), 'failed']),
    );
    const errorOf = (number: number) => listed[order.indexOf(number)]?.error;
    expect(errorOf(2)).toMatchObject({ code: 'INTERNAL', message: expect.stringContaining(column) });
    expect(errorOf(3)).toEqual({ code: 'TIMEOUT', message: 'late' });
    const [newest] = listed as [Execution, ...Execution[]];
    expect(await storage.executions.list({ limit: 10, before: newest })).toHaveLength(2);
    expect(await storage.commit(WORKER, [entry(1)])).toEqual(['fenced']);
    await storage.close();
  });

  it("a step's output", async () => {
    const storage = await damagedStore("UPDATE ensemble_steps SET output = '[1,' WHERE execution = 2");
    const expected = {
      code: 'INTERNAL',
      message: expect.stringContaining(`step flow[0] of execution ${executionId(2)}: its stored output`),
    };
    await expect((async () => storage.executions.get(executionId(2)))()).rejects.toMatchObject(expected);
    await expect((async () => storage.executions.listSteps(executionId(2), { limit: 10 }))()).rejects.toMatchObject(
      expected,
    );
    expect(await storage.executions.listSteps(executionId(1), { limit: 10 })).toEqual([step('flow[0]')]);
    expect((await storage.executions.list({ limit: 10 })).map(outputsOf)).toEqual([
      { done: true },
      { done: true },
      { done: true },
    ]);
    await storage.close();
  });

  it('a token: it grants nothing', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path });
    const token = { ...TOKEN, scopes: ['admin' as const], digest: 'd1' };
    await storage.tokens.put(token);
    await storage.tokens.put({ ...token, id: 'tok_2', digest: 'd2' });
    await withFile(path, (connection) =>
      connection.exec(`UPDATE ensemble_tokens SET scopes = '["admin"' WHERE id = 'tok_1'`),
    );
    await expect((async () => storage.tokens.findByDigest('d1'))()).rejects.toMatchObject({
      code: 'INTERNAL',
      message: expect.stringContaining('token tok_1'),
    });
    expect((await storage.tokens.findByDigest('d2'))?.scopes).toEqual(['admin']);
    expect((await storage.tokens.list()).map(({ id, scopes }) => [id, scopes])).toEqual([
      ['tok_1', []],
      ['tok_2', ['admin']],
    ]);
    expect(await storage.tokens.delete('tok_1')).toBe(true);
    await storage.close();
  });
});

describe('a damaged row of a due execution', () => {
  it.each([
    ['input', `input = '{"number":'`],
    ['started_by', "started_by = x'00ff'"],
    ['created_at', "created_at = 'yesterday'"],
    ['started_at', "started_at = 'yesterday'"],
    ['seed', "seed = x'00'"],
    ['version', "version = x'00'"],
    ['ensemble', "ensemble = x'00'"],
    ['epoch', "epoch = 'none'"],
    ['retry_of', "retry_of = '\"'"],
  ])(
    'its %s: the execution is claimed as damaged and can be ended; the others are claimed normally',
    async (column, change) => {
      const path = newFile();
      const storage = sqliteStorage({ path });
      await register(storage);
      for (const number of [1, 2, 3]) await enqueue(storage, execution(number), T0 + number);
      await withFile(path, (connection) =>
        connection.exec(`UPDATE ensemble_executions SET ${change} WHERE id = '${executionId(2)}'`),
      );
      const claimed = await storage.executions.claim(WORKER, { now: T0 + 60_000, limit: 100, excludeVersions: [] });
      expect(claimed.length).toBe(3);
      expect(claimed.flatMap((one) => ('damage' in one ? [] : [one.execution.id])).sort()).toEqual(
        column === 'epoch' ? [1, 2, 3].map(executionId) : [1, 3].map(executionId),
      );
      for (const one of claimed) {
        if (!('damage' in one)) continue;
        expect(one).toMatchObject({ executionId: executionId(2), epoch: 1 });
        expect(one.damage).toMatchObject({
          code: 'INTERNAL',
          message: expect.stringContaining(`its stored ${column}`),
        });
      }
      const failed = end({ status: 'failed', error: { code: 'INTERNAL', message: 'damaged' } });
      expect(await storage.commit(WORKER, [entry(2, { end: failed })])).toEqual(['stored']);
      expect(await storage.executions.findEnded([2, 3].map(executionId))).toEqual([executionId(2)]);
      await storage.close();
    },
  );

  it('a child execution: its parent is known, so that it can be resumed', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path });
    await register(storage);
    const trigger = { type: 'ensemble', parentId: executionId(1), rootId: executionId(1), depth: 1 } as const;
    for (const number of [2, 3]) await enqueue(storage, execution(number, { trigger }));
    await withFile(path, (connection) => {
      connection.exec(`UPDATE ensemble_executions SET started_by = x'00ff' WHERE id = '${executionId(2)}'`);
      connection.exec(`UPDATE ensemble_executions SET seed = x'00', parent_id = x'00' WHERE id = '${executionId(3)}'`);
    });
    const claimed = await storage.executions.claim(WORKER, { now: T0 + 60_000, limit: 100, excludeVersions: [] });
    const parents = claimed.map((one) => 'damage' in one && [one.executionId, one.parentId]);
    expect(parents.sort()).toEqual([
      [executionId(2), executionId(1)],
      [executionId(3), undefined],
    ]);
    await storage.close();
  });

  it('its due_at: the execution is never claimed and blocks no other', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path });
    await register(storage);
    for (const number of [1, 2]) await enqueue(storage, execution(number), T0 + number);
    await withFile(path, (connection) =>
      connection.exec(`UPDATE ensemble_executions SET due_at = 'soon' WHERE id = '${executionId(1)}'`),
    );
    expect(await storage.executions.poll(WORKER, [])).toEqual({
      nextDueAt: T0 + 2,
      cancelRequested: [],
      signalled: [],
    });
    expect(numbers(await claim(storage))).toEqual([2]);
    expect(await storage.executions.poll(WORKER, [])).toEqual({ cancelRequested: [], signalled: [] });
    await storage.close();
  });
});

describe('a fault while writing', () => {
  it('a locked file: OVERLOADED, retryable, nothing stored; the same call succeeds later', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path, timeout: 1 });
    await accept(storage, execution(1));
    await withFile(path, async (connection) => {
      connection.exec('BEGIN IMMEDIATE');
      const expected = expect.objectContaining({ code: 'OVERLOADED', retryable: true });
      expect(() => storage.commit(WORKER, [entry(1, { steps: [step('flow[0]')] })])).toThrow(expected);
      expect(() => storage.commit(WORKER, [entry(1, { steps: [step('flow[0]')], end: end() })])).toThrow(expected);
      expect(() => storage.commit(WORKER, [starting(execution(2))])).toThrow(expected);
      expect(() => storage.executions.claim(WORKER, { now: T0, limit: 1, excludeVersions: [] })).not.toThrow();
      expect(() => storage.workers.renew(WORKER, T0 + 2 * LEASE)).toThrow(expected);
      expect(await storage.executions.listSteps(executionId(1), { limit: 10 })).toEqual([]);
      connection.exec('ROLLBACK');
    });
    expect(storage.commit(WORKER, [entry(1, { steps: [step('flow[0]')], end: end() })])).toEqual(['stored']);
    await storage.close();
  });

  it('an error without a code is recognized by its message', () => {
    const thrown = (message: string) => Object.assign(new Error(message), { code: 'ERR_SQLITE_ERROR' });
    for (const message of ['database is locked', 'database or disk is full'])
      expect(toStorageError(thrown(message), 'app.db')).toMatchObject({ code: 'OVERLOADED', retryable: true });
    const other = thrown('something else');
    expect(toStorageError(other, 'app.db')).toBe(other);
  });

  it('an entry that throws fails the whole batch, and the store still works', async () => {
    const storage = sqliteStorage({ path: newFile() });
    for (const number of [1, 2]) await accept(storage, execution(number));
    const bad = step('flow[1]', { output: 1n as never });
    const batch = [
      entry(1, { steps: [step('flow[0]')], end: end() }),
      entry(2, { steps: [step('flow[0]'), bad], state: change(0, { a: 1 }) }),
    ];
    expect(() => storage.commit(WORKER, batch)).toThrow('BigInt');
    expect(await storage.executions.listSteps(executionId(1), { limit: 10 })).toEqual([]);
    expect(await storage.state.read('orders')).toBeUndefined();
    expect(
      storage.commit(
        WORKER,
        batch.map((one) => ({ ...one, steps: one.steps.slice(0, 1) })),
      ),
    ).toEqual(['stored', 'stored']);
    await storage.close();
  });

  it('a full disk: OVERLOADED, retryable, nothing of the batch stored; the call succeeds when there is free space', async () => {
    const driver = await loadDriver(undefined);
    let setPages = (_pages: number) => {};
    const small: SqlDriver = (path) => {
      const connection = driver(path);
      // The lock has its own file, which is opened later.
      if (!path.endsWith('-owner')) setPages = (pages) => connection.exec(`PRAGMA max_page_count = ${pages}`);
      return connection;
    };
    const tables = openTables(small, { path: newFile(), busyTimeoutMs: 0, synchronous: 'full' }, 'default');
    const commit = (batch: readonly CommitEntry[]) => tables.commit(WORKER, batch);
    tables.workers.register(WORKER, { now: T0, leaseUntil: T0 + LEASE });
    commit([starting(execution(1)), starting(execution(2))]);
    const large = entry(2, { steps: [step('flow[0]', { output: 'x'.repeat(1_000_000) })], end: end() });
    setPages(60);
    let thrown: unknown;
    try {
      commit([entry(1, { steps: [step('flow[0]')] }), large]);
    } catch (error) {
      thrown = toStorageError(error, 'app.db');
    }
    expect(thrown).toMatchObject({
      code: 'OVERLOADED',
      retryable: true,
      message: expect.stringContaining('disk is full'),
    });
    expect(await tables.executions.listSteps(executionId(1), { limit: 10 })).toEqual([]);
    expect(commit([entry(1, { steps: [step('flow[0]')] })])).toEqual(['stored']);
    setPages(10_000);
    expect(commit([large])).toEqual(['stored']);
    tables.close();
  });
});

describe('several storages on one file', () => {
  it("namespaces don't see each other's data", async () => {
    const path = newFile();
    const [one, two] = [sqliteStorage({ path, namespace: 'one' }), sqliteStorage({ path, namespace: 'two' })];
    const object = { content: new Uint8Array([1]), contentType: 'text/plain', updatedAt: 1 };
    await accept(one, execution(1));
    await one.commit(WORKER, [entry(1, { steps: [step('flow[0]')], state: change(0, { a: 1 }) })]);
    await one.definitions.put({ version: 'v', definition: {}, needs: [] });
    await one.tokens.put(TOKEN);
    await one.kv.put('k', 1);
    await one.objects.put('k', object);
    expect(await two.executions.get(executionId(1))).toBeUndefined();
    expect(await two.executions.list({ limit: 10 })).toEqual([]);
    expect(await two.executions.listSteps(executionId(1), { limit: 10 })).toEqual([]);
    await register(two);
    const late = [entry(1, { steps: [step('flow[1]')] }), entry(1, { end: end() })];
    expect(await two.commit(WORKER, late)).toEqual(['fenced', 'fenced']);
    expect(await claim(two)).toEqual([]);
    expect([await two.executions.countQueued(10), await two.executions.findEnded([executionId(1)])]).toEqual([
      0,
      [executionId(1)],
    ]);
    expect(await two.executions.requestCancel(executionId(1), T0, end())).toBeUndefined();
    expect([
      await two.state.read('orders'),
      await two.definitions.get('v'),
      await two.tokens.findByDigest('d'),
    ]).toEqual([undefined, undefined, undefined]);
    expect([await two.kv.get('k', 0), await two.objects.get('k'), await two.tokens.list()]).toEqual([
      undefined,
      undefined,
      [],
    ]);
    expect([await two.kv.delete('k'), await two.objects.delete('k'), await two.tokens.delete('tok_1')]).toEqual([
      false,
      false,
      false,
    ]);
    await accept(two, execution(1, { input: 'other' }));
    await two.tokens.put(TOKEN);
    await two.kv.put('k', 2);
    expect([(await one.executions.get(executionId(1)))?.input, await one.kv.get('k', 0)]).toEqual([{ number: 1 }, 1]);
    expect(await one.commit(WORKER, [entry(1, { end: end() })])).toEqual(['stored']);
    expect(await two.executions.purge({ worker: WORKER, before: T0 + 86_400_000, limit: 10 })).toEqual({ deleted: 0 });
    expect(await one.executions.get(executionId(1))).toMatchObject({ status: 'completed' });
    expect((await two.executions.get(executionId(1)))?.status).toBe('running');
    await Promise.all([one.close(), two.close()]);
  });
});

describe('text that a driver would alter', () => {
  const odd = ['a\u0000b', 'a', '\u0000', '\ud83d', '\ufffd', '"a"', '"', 'a\ud83d'];

  it('ids, keys and names are read as they were written, and none is confused with another', async () => {
    const storage = sqliteStorage({ path: ':memory:' });
    for (const [i, text] of odd.entries()) {
      await accept(storage, execution(i, { id: text, ensemble: text, version: text, seed: text }));
      const record: StepRecord = step(text, { name: text, output: i });
      expect(
        await storage.commit(WORKER, [entry(0, { executionId: text, steps: [record], state: change(0, { i }, text) })]),
      ).toEqual(['stored']);
      await storage.definitions.put({ version: text, definition: { i }, needs: [text] });
    }
    for (const [i, text] of odd.entries()) {
      expect(await storage.executions.get(text)).toMatchObject({
        id: text,
        ensemble: text,
        version: text,
        agents: [{ key: text, name: text, output: i }],
      });
      expect((await storage.executions.list({ ensemble: text, limit: 10 })).map(({ id }) => id)).toEqual([text]);
      expect((await storage.state.read(text))?.value).toEqual({ i });
      expect(await storage.definitions.get(text)).toEqual({ version: text, definition: { i }, needs: [text] });
    }
    await storage.close();
  });

  it.each(['', 'x'.repeat(513), '漢'.repeat(171), 'a\u0000b', 'a\ud83d'])(
    '%o is refused as a key of values and objects',
    async (key) => {
      const storage = sqliteStorage({ path: ':memory:' });
      await storage.state.read('orders');
      const object = { content: new Uint8Array(), contentType: 'text/plain', updatedAt: 1 };
      const calls = [
        () => storage.kv.put(key, 1),
        () => storage.kv.get(key, 0),
        () => storage.kv.delete(key),
        () => storage.objects.put(key, object),
        () => storage.objects.get(key),
        () => storage.objects.delete(key),
      ];
      for (const call of calls)
        expect(call).toThrow(
          expect.objectContaining({ code: 'INVALID_REQUEST', message: expect.stringContaining('1 to 512 bytes') }),
        );
      await storage.close();
    },
  );
});

it('reads delete expired values from the file', async () => {
  const path = newFile();
  const storage = sqliteStorage({ path });
  const rows = () =>
    withFile(path, (connection) =>
      connection
        .prepare('SELECT key FROM ensemble_kv ORDER BY key')
        .all([])
        .map(({ key }) => key),
    );
  await storage.kv.put('old', 1, 1000);
  await storage.kv.put('kept', 1);
  await storage.kv.put('later', 1, 200_000);
  await storage.kv.get('any', 999);
  expect(await rows()).toEqual(['kept', 'later', 'old']);
  await storage.kv.get('any', 61_000);
  expect(await rows()).toEqual(['kept', 'later']);
  await storage.close();
});

it('a step of 4 MiB, and times in the far past and future', async () => {
  const storage = sqliteStorage({ path: newFile() });
  const output = 'ä'.repeat(4 * 1024 * 1024);
  const far = Date.UTC(9999, 11, 31);
  await accept(storage, execution(1, { createdAt: far, deadlineAt: far + 1 }));
  await storage.commit(WORKER, [
    entry(1, {
      steps: [step('flow[0]', { output, startedAt: far, duration: 2 ** 45 })],
      end: end({ finishedAt: far + 2 }),
    }),
  ]);
  const record = await storage.executions.get(executionId(1));
  expect((await storage.executions.getStep(executionId(1), 'flow[0]'))?.output === output).toBe(true);
  expect([record?.createdAt, record?.agents[0]?.startedAt, record?.agents[0]?.duration, record?.finishedAt]).toEqual([
    far,
    far,
    2 ** 45,
    far + 2,
  ]);
  await storage.close();
});
