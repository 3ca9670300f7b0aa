/** SQLite files that are partly damaged: no process ends because of them, the damage is named, and everything else continues. */

import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { toStorageError } from '../../src/adapters/storage/sqlite/drivers/failure.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import {
  accept,
  change,
  claim,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  numbers,
  register,
  signal,
  step,
  T0,
  WORKER,
} from '../../src/conformance/storage-suite/context.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { buildChildren, finish, startChild } from './sqlite-children.ts';
import { newFile, withFile } from './sqlite-files.ts';
import { TOKEN } from './stored-token.ts';

const PAGE = 4096;
const EXECUTIONS = 14;
/** Bytes that are not UTF-8. */
const BROKEN = "CAST(x'61ff62' AS TEXT)";

/** A store with every kind of row. Some executions ended, some were running when their process died, and some are due. */
async function fill(path: string): Promise<void> {
  const storage = sqliteStorage({ path });
  for (let number = 0; number < EXECUTIONS - 6; number++) {
    await accept(storage, execution(number, { input: { number, text: 'ä'.repeat(number * 100) } }));
    const steps = [step('flow[0]', { output: 'é'.repeat(number * 300) }), step('flow[1]')];
    await storage.commit(WORKER, [entry(number, { steps })]);
    if (number % 2 === 0) await storage.commit(WORKER, [entry(number, { end: end() })]);
  }
  for (let number = EXECUTIONS - 6; number < EXECUTIONS - 1; number++) {
    const input = { number, text: 'x'.repeat(1500) };
    await enqueue(storage, execution(number, { input, ensemble: `e${number % 2}` }), T0 + number);
  }
  await storage.commit(WORKER, [entry(1, { state: change(0, { a: 'ü' }) })]);
  const named = execution(EXECUTIONS - 1, { tags: ['ä', 'b'], idempotencyKey: 'once' });
  await enqueue(storage, named, T0 + EXECUTIONS);
  for (const of of [1, EXECUTIONS - 1]) await storage.signals.put(signal(of, of, { id: `sig_${of}`, payload: 'é' }));
  await storage.definitions.put({ version: 'v', definition: { name: 'orders' }, needs: ['script:a'] });
  await storage.kv.put('k', { a: 'ü' });
  await storage.objects.put('k', { content: new Uint8Array([1, 2, 3]), contentType: 'text/plain', updatedAt: 5 });
  await storage.tokens.put({ ...TOKEN, name: 'ä', scopes: ['admin'] });
  await storage.schedules.advance('hourly', { expectedVersion: 0, value: { text: 'ü' }, updatedAt: T0 });
  await storage.close();
}

function withoutPage(path: string, page: number): string {
  const bytes = readFileSync(path);
  bytes.fill(0, (page - 1) * PAGE, page * PAGE);
  const damaged = newFile();
  writeFileSync(damaged, bytes);
  return damaged;
}

/** A generator of the same numbers below one each time. */
function drawer(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function withFlips(path: string, seed: number): string {
  const draw = drawer(seed);
  const bytes = readFileSync(path);
  for (let flips = [1, 5, 40, 300][seed % 4] as number; flips > 0; flips--) {
    const at = PAGE + Math.floor(draw() * (bytes.length - PAGE));
    bytes[at] = seed % 3 === 0 ? 0xff : (bytes[at] as number) ^ (1 << Math.floor(draw() * 8));
  }
  const damaged = newFile();
  writeFileSync(damaged, bytes);
  return damaged;
}

describe('no damaged file ends the process', () => {
  buildChildren('test/storage/sqlite-damage-child.ts');
  let whole: string;
  beforeAll(async () => {
    whole = newFile();
    await fill(whole);
  });

  const survives = async (files: readonly string[]) => {
    const { lines, code, errors } = await finish(startChild(String(EXECUTIONS), ...files));
    // The process died of the last file that it printed.
    expect({ code, last: lines.at(-1), errors }).toEqual({ code: 0, last: 'done', errors: '' });
    expect(lines).toEqual([...files, 'done']);
  };

  it('text that is not UTF-8, in each column of each table', async () => {
    const columns = await withFile(whole, (connection) =>
      connection
        .prepare(
          `SELECT t.name AS "table", c.name AS "column" FROM sqlite_master t, pragma_table_info(t.name) c
          WHERE t.type = 'table' AND t.name LIKE 'ensemble_%' AND c.name NOT IN ('ref', 'seq', 'joined')`,
        )
        .all([]),
    );
    expect(columns.length).toBeGreaterThan(60);
    const files: string[] = [];
    for (const { table, column } of columns) {
      const path = newFile();
      copyFileSync(whole, path);
      await withFile(path, (connection) =>
        connection.exec(`UPDATE OR IGNORE "${table}" SET "${column}" = ${BROKEN}; PRAGMA wal_checkpoint(TRUNCATE)`),
      );
      files.push(path);
    }
    await survives(files);
  }, 120_000);

  it('a zeroed page, for each page', async () => {
    const pages = readFileSync(whole).length / PAGE;
    await survives(Array.from({ length: pages - 1 }, (_, page) => withoutPage(whole, page + 2)));
  }, 120_000);

  it('changed bits and bytes, anywhere', async () => {
    await survives(Array.from({ length: 40 }, (_, seed) => withFlips(whole, seed)));
  }, 120_000);
});

describe('text that is not UTF-8 is damage of its row', () => {
  it('the row is named, hides no other row, and its execution is claimed as damaged so that it can be ended', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path });
    await register(storage);
    for (const number of [1, 2, 3]) await enqueue(storage, execution(number), T0 + number);
    await withFile(path, (connection) =>
      connection.exec(`UPDATE ensemble_executions SET input = ${BROKEN} WHERE id = '${executionId(2)}'`),
    );
    const named = {
      code: 'INTERNAL',
      message: expect.stringContaining(`execution ${executionId(2)}: its stored input`),
    };
    await expect((async () => storage.executions.get(executionId(2)))()).rejects.toMatchObject(named);
    expect((await storage.executions.list({ limit: 10 })).map(({ id }) => id)).toEqual([3, 2, 1].map(executionId));
    const claimed = await storage.executions.claim(WORKER, { now: T0 + 60_000, limit: 10, excludeVersions: [] });
    expect(claimed.map((one) => ('damage' in one ? one.executionId : one.execution.input))).toEqual([
      { number: 1 },
      executionId(2),
      { number: 3 },
    ]);
    await storage.close();
  });

  it.each(['ensemble', 'version'])(
    'a damaged %s, by which claims search: the execution is claimed all the same, and is no longer due',
    async (column) => {
      const path = newFile();
      const storage = sqliteStorage({ path });
      await register(storage);
      for (const number of [1, 2]) await enqueue(storage, execution(number), T0 + number);
      await withFile(path, (connection) =>
        connection.exec(`UPDATE ensemble_executions SET ${column} = ${BROKEN} WHERE id = '${executionId(2)}'`),
      );
      const query = { now: T0 + 60_000, limit: 10, excludeVersions: [] };
      const claimed = [
        ...(await storage.executions.claim(WORKER, query)),
        ...(await storage.executions.claim(WORKER, query)),
      ];
      expect(claimed.map((one) => ('damage' in one ? one.executionId : one.execution.id)).sort()).toEqual(
        [1, 2].map(executionId),
      );
      expect(await storage.executions.poll(WORKER, [])).toEqual({ cancelRequested: [], signalled: [] });
      await storage.close();
    },
  );
});

describe('a zeroed page', () => {
  /** The page of the table's row, in a store that was undamaged before. */
  const damage = async (table: string, row: string, open: (storage: Storage) => Promise<void>) => {
    const path = newFile();
    const storage = sqliteStorage({ path });
    await open(storage);
    await storage.close();
    const bytes = readFileSync(path);
    const at = bytes.indexOf(row);
    expect(at, `${row} of ${table}`).toBeGreaterThan(PAGE);
    return sqliteStorage({ path: withoutPage(path, Math.floor(at / PAGE) + 1) });
  };
  /** As long as a page, so that each row has its own page. */
  const long = (number: number) => execution(number, { input: { number, text: `<${number}>`.padEnd(3000, '.') } });
  const query = { now: T0 + 60_000, limit: 10, excludeVersions: [] };
  const claimAsync = async (storage: Storage) => storage.executions.claim(WORKER, query);

  it('due executions in it are reported once and no longer touched; the others are claimed, and then none is due', async () => {
    const storage = await damage('ensemble_executions', '<2>', async (whole) => {
      for (const number of [1, 2, 3]) await enqueue(whole, long(number), T0 + number);
    });
    await register(storage);
    await expect(claimAsync(storage)).rejects.toMatchObject({
      code: 'INTERNAL',
      retryable: false,
      message: expect.stringContaining(executionId(2)),
      details: { executions: [executionId(2)] },
    });
    expect(await storage.executions.poll(WORKER, [])).toMatchObject({ nextDueAt: T0 + 1 });
    expect(numbers(await claim(storage, query))).toEqual([1, 3]);
    expect(await storage.executions.poll(WORKER, [])).toEqual({ cancelRequested: [], signalled: [] });
    expect(await claim(storage, query)).toEqual([]);
    expect(storage.commit(WORKER, [entry(1, { end: end() })])).toEqual(['stored']);
    await storage.close();
  });

  it('running executions in it do not keep a process from starting: the others are continued', async () => {
    const storage = await damage('ensemble_executions', '<2>', async (whole) => {
      await register(whole);
      for (const number of [1, 2, 3]) await accept(whole, long(number));
    });
    await register(storage);
    await expect(claimAsync(storage)).rejects.toMatchObject({ details: { executions: [executionId(2)] } });
    const claimed = await claim(storage, query);
    expect(
      claimed.map(({ execution: { input }, recoveries }) => [(input as { number: number }).number, recoveries]),
    ).toEqual([
      [1, 1],
      [3, 1],
    ]);
    await storage.close();
  });

  it('reading it is a permanent error that names the row and the remedy', async () => {
    const storage = await damage('ensemble_steps', '<step>', async (whole) => {
      await accept(whole, execution(1));
      await whole.commit(WORKER, [entry(1, { steps: [step('flow[0]', { output: '<step>'.padEnd(3000, '.') })] })]);
    });
    await expect((async () => storage.executions.listSteps(executionId(1), { limit: 10 }))()).rejects.toMatchObject({
      code: 'INTERNAL',
      retryable: false,
      message: expect.stringMatching(`the steps of execution ${executionId(1)} can't be read .*backup.*\\.recover`),
      details: { sqlite: 11, row: `the steps of execution ${executionId(1)}` },
    });
    expect(await storage.executions.getAccepted(executionId(1))).toMatchObject({ id: executionId(1) });
    await storage.close();
  });
});

describe('errors of SQLite', () => {
  const transient = { code: 'OVERLOADED', retryable: true };
  const final = { code: 'INTERNAL', retryable: false };

  it.each([
    ['a damaged index, as libsql names it', { code: 'UNKNOWN_SQLITE_ERROR_779' }, final],
    ['a damaged page, by node:sqlite', { code: 'ERR_SQLITE_ERROR', errcode: 267 }, final],
    ['a file that ends too early', { code: 'SQLITE_IOERR_SHORT_READ', rawCode: 522 }, final],
    ['a disk that does not answer', { code: 'SQLITE_IOERR_FSYNC', rawCode: 1034 }, transient],
    ['no memory', { code: 'SQLITE_NOMEM', rawCode: 7 }, transient],
    ['too many open files', { code: 'SQLITE_CANTOPEN', rawCode: 14 }, transient],
    ['a table that is not there', { code: 'SQLITE_ERROR', rawCode: 1 }, final],
  ])('%s', (_, fields, expected) => {
    expect(toStorageError(Object.assign(new Error('x'), fields), 'app.db')).toMatchObject(expected);
  });
});
