/** SQLite under faults: damaged rows, a locked file, a full disk, several processes and apps on one file, odd text. */

import { describe, expect, it } from 'vitest';
import type { SqlDriver } from '../../src/adapters/storage/sqlite/connection.ts';
import { toStorageError } from '../../src/adapters/storage/sqlite/failure.ts';
import { loadDriver } from '../../src/adapters/storage/sqlite/load-driver.ts';
import { openTables } from '../../src/adapters/storage/sqlite/open-tables.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { change, end, entry, execution, executionId, step } from '../../src/adapters/testing/storage-suite/context.ts';
import type { StepRecord } from '../../src/engine/model/stored-execution.ts';
import type { Storage } from '../../src/engine/ports/storage.ts';
import { newFile, withFile } from './sqlite-files.ts';

/** Three executions that ended, of which number 2 is then damaged. */
async function damagedStore(sql: string): Promise<Storage> {
  const path = newFile();
  const storage = sqliteStorage({ path });
  for (const number of [1, 2, 3]) {
    await storage.accept(execution(number));
    await storage.commit([
      entry(number, {
        steps: [step('flow[0]')],
        end: end({ status: 'failed', error: { code: 'TIMEOUT', message: 'late' } }),
      }),
    ]);
  }
  await withFile(path, (connection) => connection.exec(sql));
  return storage;
}

describe('T7: a damaged row fails what needs it, and nothing else', () => {
  const second = `WHERE id = '${executionId(2)}'`;

  it.each([
    ['input', `UPDATE ensemble_executions SET input = '{"number":' ${second}`],
    ['output', `UPDATE ensemble_executions SET output = substr(output, 1, 5) ${second}`],
    ['output', `UPDATE ensemble_executions SET output = NULL ${second}`],
    ['error', `UPDATE ensemble_executions SET error = '"late"' ${second}`],
    ['started_by', `UPDATE ensemble_executions SET started_by = x'00ff' ${second}`],
    ['created_at', `UPDATE ensemble_executions SET created_at = 'yesterday' ${second}`],
  ])("an execution's %s: %s", async (column, sql) => {
    const storage = await damagedStore(sql);
    const read = async (number: number) => storage.getExecution(executionId(number));
    await expect(read(2)).rejects.toMatchObject({
      code: 'INTERNAL',
      message: expect.stringContaining(`execution ${executionId(2)}: its stored ${column}`),
    });
    expect([(await read(1))?.status, (await read(3))?.status]).toEqual(['failed', 'failed']);
    const listed = await storage.listExecutions({ limit: 10 });
    expect(listed.map(({ id, status }) => [id, status])).toEqual(
      [3, 2, 1].map((number) => [executionId(number), 'failed']),
    );
    expect(listed[1]?.error).toMatchObject({ code: 'INTERNAL', message: expect.stringContaining(column) });
    expect(listed[0]?.error).toEqual({ code: 'TIMEOUT', message: 'late' });
    expect(await storage.commit([entry(1)])).toEqual(['fenced']);
    await storage.close();
  });

  it("a step's output", async () => {
    const storage = await damagedStore("UPDATE ensemble_steps SET output = '[1,' WHERE execution = 2");
    const expected = {
      code: 'INTERNAL',
      message: expect.stringContaining(`step flow[0] of execution ${executionId(2)}: its stored output`),
    };
    await expect((async () => storage.getExecution(executionId(2)))()).rejects.toMatchObject(expected);
    await expect((async () => storage.listSteps(executionId(2), { after: 0, limit: 10 }))()).rejects.toMatchObject(
      expected,
    );
    expect(await storage.listSteps(executionId(1), { after: 0, limit: 10 })).toEqual([step('flow[0]')]);
    expect((await storage.listExecutions({ limit: 10 })).map(({ output }) => output)).toEqual([
      { done: true },
      { done: true },
      { done: true },
    ]);
    await storage.close();
  });

  it('a token: it opens nothing', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path });
    const token = {
      id: 'tok_1',
      name: 'a',
      scopes: ['admin' as const],
      plan: 'free' as const,
      digest: 'd1',
      last4: 'abcd',
      createdAt: 1,
    };
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

describe('T7: a fault while writing', () => {
  it('a locked file: OVERLOADED, retryable, nothing stored; the same call passes later', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path, busyTimeoutMs: 0 });
    await storage.accept(execution(1));
    await withFile(path, async (connection) => {
      connection.exec('BEGIN IMMEDIATE');
      const expected = expect.objectContaining({ code: 'OVERLOADED', retryable: true });
      expect(() => storage.commit([entry(1, { steps: [step('flow[0]')] })])).toThrow(expected);
      expect(() => storage.commit([entry(1, { steps: [step('flow[0]')], end: end() })])).toThrow(expected);
      expect(() => storage.accept(execution(2))).toThrow(expected);
      expect(await storage.listSteps(executionId(1), { after: 0, limit: 10 })).toEqual([]);
      connection.exec('ROLLBACK');
    });
    expect(storage.commit([entry(1, { steps: [step('flow[0]')], end: end() })])).toEqual(['stored']);
    await storage.close();
  });

  it('an entry that throws half way takes the whole batch with it, and the store goes on', async () => {
    const storage = sqliteStorage({ path: newFile() });
    for (const number of [1, 2]) await storage.accept(execution(number));
    const bad = step('flow[1]', { output: 1n as never });
    const batch = [
      entry(1, { steps: [step('flow[0]')], end: end() }),
      entry(2, { steps: [step('flow[0]'), bad], state: change(0, { a: 1 }) }),
    ];
    expect(() => storage.commit(batch)).toThrow('BigInt');
    expect(await storage.listSteps(executionId(1), { after: 0, limit: 10 })).toEqual([]);
    expect(await storage.readState('orders')).toBeUndefined();
    expect(storage.commit(batch.map((one) => ({ ...one, steps: one.steps.slice(0, 1) })))).toEqual([
      'stored',
      'stored',
    ]);
    await storage.close();
  });

  it('a full disk: OVERLOADED, retryable, nothing of the batch stored; it passes when there is room', async () => {
    const driver = await loadDriver(undefined);
    let setPages = (_pages: number) => {};
    const small: SqlDriver = (path) => {
      const connection = driver(path);
      setPages = (pages) => connection.exec(`PRAGMA max_page_count = ${pages}`);
      return connection;
    };
    const { executions, commit, close } = openTables(
      small,
      { path: newFile(), busyTimeoutMs: 0, synchronous: 'full' },
      'default',
    );
    for (const number of [1, 2]) executions.accept(execution(number));
    const large = entry(2, { steps: [step('flow[0]', { output: 'x'.repeat(1_000_000) })], end: end() });
    setPages(60);
    let thrown: unknown;
    try {
      commit([entry(1, { steps: [step('flow[0]')] }), large]);
    } catch (error) {
      thrown = toStorageError(error);
    }
    expect(thrown).toMatchObject({
      code: 'OVERLOADED',
      retryable: true,
      message: expect.stringContaining('disk is full'),
    });
    expect(await executions.listSteps(executionId(1), { after: 0, limit: 10 })).toEqual([]);
    expect(commit([entry(1, { steps: [step('flow[0]')] })])).toEqual(['stored']);
    setPages(10_000);
    expect(commit([large])).toEqual(['stored']);
    close();
  });
});

describe('several on one file', () => {
  it('I9: an owner whose epoch was taken over has all its late writes refused', async () => {
    const path = newFile();
    const [before, after] = [sqliteStorage({ path }), sqliteStorage({ path })];
    await before.accept(execution(1));
    await before.commit([entry(1, { steps: [step('flow[0]')] })]);
    expect((await after.listSteps(executionId(1), { after: 0, limit: 10 })).map(({ key }) => key)).toEqual(['flow[0]']);
    await withFile(path, (connection) => connection.exec('UPDATE ensemble_executions SET epoch = 2'));
    expect(before.commit([entry(1, { steps: [step('flow[1]')] })])).toEqual(['fenced']);
    expect(before.commit([entry(1, { steps: [step('flow[0]')] })])).toEqual(['fenced']);
    expect(before.commit([entry(1, { steps: [step('flow[1]')], end: end() })])).toEqual(['fenced']);
    expect(after.commit([entry(1, { epoch: 2, steps: [step('flow[1]')], end: end() })])).toEqual(['stored']);
    expect((await before.getExecution(executionId(1)))?.agents.map(({ key }) => key)).toEqual(['flow[0]', 'flow[1]']);
    await Promise.all([before.close(), after.close()]);
  });

  it('A113: namespaces see nothing of each other', async () => {
    const path = newFile();
    const [one, two] = [sqliteStorage({ path, namespace: 'one' }), sqliteStorage({ path, namespace: 'two' })];
    const token = {
      id: 'tok_1',
      name: 'a',
      scopes: [],
      plan: 'free' as const,
      digest: 'd',
      last4: 'abcd',
      createdAt: 1,
    };
    const object = { content: new Uint8Array([1]), contentType: 'text/plain', updatedAt: 1 };
    await one.accept(execution(1));
    await one.commit([entry(1, { steps: [step('flow[0]')], state: change(0, { a: 1 }) })]);
    await one.putDefinition({ version: 'v', definition: {}, needs: [] });
    await one.tokens.put(token);
    await one.kv.put('k', 1);
    await one.objects.put('k', object);
    expect(await two.getExecution(executionId(1))).toBeUndefined();
    expect(await two.listExecutions({ limit: 10 })).toEqual([]);
    expect(await two.listSteps(executionId(1), { after: 0, limit: 10 })).toEqual([]);
    expect(await two.commit([entry(1, { steps: [step('flow[1]')] }), entry(1, { end: end() })])).toEqual([
      'fenced',
      'fenced',
    ]);
    expect([await two.readState('orders'), await two.getDefinition('v'), await two.tokens.findByDigest('d')]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
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
    await two.accept(execution(1, { input: 'other' }));
    await two.tokens.put(token);
    await two.kv.put('k', 2);
    expect([(await one.getExecution(executionId(1)))?.input, await one.kv.get('k', 0)]).toEqual([{ number: 1 }, 1]);
    expect(await one.commit([entry(1, { end: end() })])).toEqual(['stored']);
    expect((await two.getExecution(executionId(1)))?.status).toBe('running');
    await Promise.all([one.close(), two.close()]);
  });
});

describe('text that a driver would alter', () => {
  const odd = ['a\u0000b', 'a', '\u0000', '\ud83d', '\ufffd', '"a"', '"', 'a\ud83d'];

  it('ids, keys and names come back as they were, and none is taken for another', async () => {
    const storage = sqliteStorage({ path: ':memory:' });
    for (const [i, text] of odd.entries()) {
      await storage.accept(execution(i, { id: text, ensemble: text, version: text, seed: text }));
      const record: StepRecord = step(text, { name: text, output: i });
      expect(
        await storage.commit([entry(0, { executionId: text, steps: [record], state: change(0, { i }, text) })]),
      ).toEqual(['stored']);
      await storage.putDefinition({ version: text, definition: { i }, needs: [text] });
    }
    for (const [i, text] of odd.entries()) {
      expect(await storage.getExecution(text)).toMatchObject({
        id: text,
        ensemble: text,
        version: text,
        agents: [{ key: text, name: text, output: i }],
      });
      expect((await storage.listExecutions({ ensemble: text, limit: 10 })).map(({ id }) => id)).toEqual([text]);
      expect((await storage.readState(text))?.value).toEqual({ i });
      expect(await storage.getDefinition(text)).toEqual({ version: text, definition: { i }, needs: [text] });
    }
    await storage.close();
  });

  it.each(['', 'x'.repeat(513), '漢'.repeat(171), 'a\u0000b', 'a\ud83d'])(
    'A39: %o is refused as a key of values and objects',
    async (key) => {
      const storage = sqliteStorage({ path: ':memory:' });
      await storage.readState('orders');
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

it('values that expired leave the file, by the reads that pass by', async () => {
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

it('a step of 4 MiB, and times far from now', async () => {
  const storage = sqliteStorage({ path: newFile() });
  const output = 'ä'.repeat(4 * 1024 * 1024);
  const far = Date.UTC(9999, 11, 31);
  await storage.accept(execution(1, { createdAt: far, deadlineAt: far + 1 }));
  await storage.commit([
    entry(1, {
      steps: [step('flow[0]', { output, startedAt: far, duration: 2 ** 45 })],
      end: end({ finishedAt: far + 2 }),
    }),
  ]);
  const record = await storage.getExecution(executionId(1));
  expect(record?.agents[0]?.output === output).toBe(true);
  expect([record?.createdAt, record?.agents[0]?.startedAt, record?.agents[0]?.duration, record?.finishedAt]).toEqual([
    far,
    far,
    2 ** 45,
    far + 2,
  ]);
  await storage.close();
});
