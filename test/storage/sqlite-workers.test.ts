/** One worker process for a SQLite file: the lock file, several handles and processes, and what happens to held executions. */

import { existsSync, mkdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { basename, dirname, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  LEASE,
  nextDueAt,
  numbers,
  OTHER,
  register,
  step,
  T0,
  WORKER,
} from '../../src/conformance/storage-suite/context.ts';
import { buildChildren, finish, firstLine, kill, startChild } from './sqlite-children.ts';
import { newFile, withFile } from './sqlite-files.ts';
import { TOKEN } from './stored-token.ts';

buildChildren();

const cancelled = end({ status: 'cancelled', output: null, agents: 0 });
const conflict = (path: string) => ({
  code: 'CONFLICT',
  retryable: false,
  message: expect.stringContaining(`works on ${path}, and a SQLite file allows only one`),
});
const refused = async (call: () => unknown) => call();

describe('the worker of a file', () => {
  it('keeps workers of other handles out, also in the same process, until it unregisters', async () => {
    const path = newFile();
    const [one, two] = [sqliteStorage({ path }), sqliteStorage({ path })];
    await register(one);
    for (let times = 0; times < 3; times++)
      await expect(refused(() => register(two, OTHER))).rejects.toMatchObject(conflict(path));
    expect(await one.workers.renew(WORKER, T0 + 2 * LEASE)).toBe(true);
    await one.workers.unregister(WORKER, T0);
    await register(two, OTHER);
    await expect(refused(() => register(one))).rejects.toMatchObject(conflict(path));
    await Promise.all([one.close(), two.close()]);
  });

  it('is replaced after its storage is closed; its executions are free, with one recovery', async () => {
    const path = newFile();
    const [one, two] = [sqliteStorage({ path }), sqliteStorage({ path })];
    await accept(one, execution(1));
    await commitOne(one, entry(1, { steps: [step('flow[0]')] }));
    await one.close();
    await register(two, OTHER, T0 + 100);
    expect(await claim(two, { now: T0 + 99 }, OTHER)).toEqual([]);
    expect(await claim(two, { now: T0 + 100 }, OTHER)).toMatchObject([{ epoch: 2, begun: true, recoveries: 1 }]);
    await two.close();
  });

  it('does not keep clients out: they read, queue, request cancellation, and store tokens', async () => {
    const path = newFile();
    const [worker, guest] = [sqliteStorage({ path }), sqliteStorage({ path })];
    await accept(worker, execution(1));
    await enqueue(guest, execution(2), T0 + 5);
    expect(await nextDueAt(worker)).toBe(T0 + 5);
    expect(await guest.executions.requestCancel(executionId(1), T0 + 6, cancelled)).toBe('running');
    expect((await worker.executions.poll(WORKER, [])).cancelRequested).toEqual([executionId(1)]);
    expect(await guest.executions.requestCancel(executionId(2), T0 + 6, cancelled)).toBe('cancelled');
    await guest.tokens.put(TOKEN);
    expect(await worker.tokens.findByDigest('d')).toEqual(TOKEN);
    expect((await guest.executions.list({ limit: 10 })).map(({ status }) => status)).toEqual(['cancelled', 'running']);
    expect(await commitOne(guest, entry(1, { steps: [step('flow[0]')] }), OTHER)).toBe('fenced');
    await Promise.all([guest.close(), worker.close()]);
  });

  it('is the same for every name of the file', async () => {
    const path = newFile();
    const link = newFile();
    const one = sqliteStorage({ path });
    await register(one);
    symlinkSync(path, link);
    for (const other of [link, relative(process.cwd(), path), `${dirname(path)}/./${basename(path)}`]) {
      const two = sqliteStorage({ path: other });
      await expect(refused(() => register(two, OTHER))).rejects.toMatchObject(conflict(path));
      await two.close();
    }
    await one.close();
  });

  it('there is one for each namespace', async () => {
    const path = newFile();
    const names = ['default', 'shop', 'Shop', 'ein Laden / übrig', 'x'.repeat(128), '..'];
    const stores = names.map((namespace) => sqliteStorage({ path, namespace }));
    for (const [number, store] of stores.entries()) await accept(store, execution(number));
    for (const [number, namespace] of names.entries()) {
      const other = sqliteStorage({ path, namespace });
      await expect(refused(() => register(other, OTHER))).rejects.toMatchObject(conflict(path));
      await other.close();
      expect(await stores[number]?.workers.renew(WORKER, T0 + 2 * LEASE)).toBe(true);
    }
    for (const store of stores) await store.close();
  });

  it('one handle may have several workers, which watch each other as workers of several processes do', async () => {
    const storage = sqliteStorage({ path: newFile() });
    await accept(storage, execution(1));
    await accept(storage, execution(2), OTHER);
    expect((await storage.workers.reclaimFromDead(OTHER, T0 + LEASE - 1)).freed).toBe(0);
    await storage.workers.renew(OTHER, T0 + 2 * LEASE);
    expect((await storage.workers.reclaimFromDead(OTHER, T0 + LEASE)).freed).toBe(1);
    expect(numbers(await claim(storage, {}, OTHER))).toEqual([1]);
    await storage.close();
  });

  it('leaves an empty lock file, which the next worker uses', async () => {
    const path = newFile();
    for (let times = 0; times < 2; times++) {
      const storage = sqliteStorage({ path });
      await accept(storage, execution(times));
      await storage.workers.unregister(WORKER, T0);
      await storage.close();
      expect(statSync(`${path}-owner`).size).toBe(0);
      expect(existsSync(`${path}-owner-journal`)).toBe(false);
    }
  });

  it('a store in memory needs no lock file', async () => {
    const [one, two] = [sqliteStorage({ path: ':memory:' }), sqliteStorage({ path: ':memory:' })];
    await register(one);
    await register(two);
    expect(existsSync(':memory:-owner')).toBe(false);
    await Promise.all([one.close(), two.close()]);
  });
});

describe('faults of the lock', () => {
  it("a lock file that can't be created: NOT_CONFIGURED, which names the file; clients still work", async () => {
    const path = newFile();
    mkdirSync(`${path}-owner`);
    const storage = sqliteStorage({ path });
    await expect(refused(() => register(storage))).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining(`can't lock ${path}-owner`),
    });
    await enqueue(storage, execution(1));
    rmSync(`${path}-owner`, { recursive: true });
    await register(storage);
    await storage.close();
  });

  it('a registration that fails leaves the lock to others', async () => {
    const path = newFile();
    const [one, two] = [sqliteStorage({ path, timeout: 1 }), sqliteStorage({ path })];
    await one.state.read('orders');
    await withFile(path, async (connection) => {
      connection.exec('BEGIN IMMEDIATE');
      await expect(refused(() => register(one))).rejects.toMatchObject({ code: 'OVERLOADED', retryable: true });
      connection.exec('ROLLBACK');
    });
    await register(two, OTHER);
    await two.workers.unregister(OTHER, T0);
    await register(one);
    await Promise.all([one.close(), two.close()]);
  });

  it('when a lock file was deleted and another worker took the lock, all late writes of the first worker are refused, and its lease is lost', async () => {
    const path = newFile();
    const [one, two] = [sqliteStorage({ path }), sqliteStorage({ path })];
    await accept(one, execution(1));
    await commitOne(one, entry(1, { steps: [step('flow[0]')] }));
    rmSync(`${path}-owner`);
    await register(two, OTHER, T0 + 10);
    expect((await claim(two, {}, OTHER)).map(({ epoch, recoveries }) => [epoch, recoveries])).toEqual([[2, 1]]);
    expect(await commitOne(one, entry(1, { steps: [step('flow[1]')] }))).toBe('fenced');
    expect(await commitOne(one, entry(1, { steps: [step('flow[1]')], end: end() }))).toBe('fenced');
    expect(await claim(one)).toEqual([]);
    expect(await one.workers.renew(WORKER, T0 + 9 * LEASE)).toBe(false);
    await expect(refused(() => register(one))).rejects.toMatchObject(conflict(path));
    expect(await commitOne(two, entry(1, { epoch: 2, end: end() }), OTHER)).toBe('stored');
    await Promise.all([one.close(), two.close()]);
  });
});

describe('workers in separate processes', () => {
  it('a second worker is refused; when the first is killed, the second continues its executions at once', async () => {
    const path = newFile();
    const first = startChild('own', path, '1');
    expect(await firstLine(first)).toBe('joined');
    expect(await finish(startChild('own', path, '2'))).toEqual({ lines: ['CONFLICT'], code: 0, errors: '' });

    const here = sqliteStorage({ path });
    await expect(refused(() => register(here, OTHER))).rejects.toMatchObject(conflict(path));
    await enqueue(here, execution(3));
    expect(await here.executions.requestCancel(executionId(1), T0 + 6, cancelled)).toBe('running');

    await kill(first);
    await register(here, OTHER, T0 + 10);
    const claimed = await claim(here, {}, OTHER);
    expect(claimed.map((one) => [one.execution.id, one.epoch, one.recoveries, one.cancelRequested])).toEqual([
      [executionId(3), 1, 0, false],
      [executionId(1), 2, 1, true],
    ]);
    expect((await here.executions.listSteps(executionId(1), { limit: 10 })).map(({ key }) => key)).toEqual(['flow[0]']);
    await here.close();
  }, 60_000);

  it('of many that start at the same time, only one registers, in each of 10 rounds', async () => {
    const path = newFile();
    for (let round = 1; round <= 10; round++) {
      const children = Array.from({ length: 3 }, (_, i) => startChild('own', path, String(round * 10 + i)));
      const lines = await Promise.all(children.map(firstLine));
      expect(lines.sort()).toEqual(['CONFLICT', 'CONFLICT', 'joined']);
      await Promise.all(children.map((child) => child.exitCode === null && kill(child)));
    }
    const here = sqliteStorage({ path });
    await register(here, OTHER);
    expect((await claim(here, {}, OTHER)).map(({ recoveries }) => recoveries)).toEqual(new Array(10).fill(1));
    await here.close();
  }, 120_000);
});
