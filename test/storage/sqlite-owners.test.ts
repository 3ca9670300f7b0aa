/** One owner for a SQLite file: the lock beside it, across handles and processes, and what becomes of what an owner held. */

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
  join,
  LEASE,
  nextDueAt,
  numbers,
  OTHER,
  OWNER,
  step,
  T0,
} from '../../src/adapters/testing/storage-suite/context.ts';
import { buildChildren, finish, firstLine, kill, startChild } from './sqlite-children.ts';
import { newFile, withFile } from './sqlite-files.ts';

buildChildren();

const cancelled = end({ status: 'cancelled', output: null, agents: 0 });
const conflict = (path: string) => ({
  code: 'CONFLICT',
  retryable: false,
  message: expect.stringContaining(`works on ${path}, and a SQLite file takes one alone`),
});
const refused = async (call: () => unknown) => call();

describe('the owner of a file', () => {
  it('keeps the owners of other handles out, in one process too, until it leaves', async () => {
    const path = newFile();
    const [one, two] = [sqliteStorage({ path }), sqliteStorage({ path })];
    await join(one);
    for (let times = 0; times < 3; times++)
      await expect(refused(() => join(two, OTHER))).rejects.toMatchObject(conflict(path));
    expect(await one.renew(OWNER, T0 + 2 * LEASE)).toBe(true);
    await one.leave(OWNER, T0);
    await join(two, OTHER);
    await expect(refused(() => join(one))).rejects.toMatchObject(conflict(path));
    await Promise.all([one.close(), two.close()]);
  });

  it('gives way when its storage is closed; what it held is free, with one recovery', async () => {
    const path = newFile();
    const [one, two] = [sqliteStorage({ path }), sqliteStorage({ path })];
    await accept(one, execution(1));
    await commitOne(one, entry(1, { steps: [step('flow[0]')] }));
    await one.close();
    await join(two, OTHER, T0 + 100);
    expect(await claim(two, { now: T0 + 99 }, OTHER)).toEqual([]);
    expect(await claim(two, { now: T0 + 100 }, OTHER)).toMatchObject([{ epoch: 2, begun: true, recoveries: 1 }]);
    await two.close();
  });

  it('is not in the way of guests: they read, queue, ask to stop, and keep tokens', async () => {
    const path = newFile();
    const [owner, guest] = [sqliteStorage({ path }), sqliteStorage({ path })];
    await accept(owner, execution(1));
    await enqueue(guest, execution(2), T0 + 5);
    expect(await nextDueAt(owner)).toBe(T0 + 5);
    expect(await guest.requestCancel(executionId(1), T0 + 6, cancelled)).toBe('running');
    expect((await owner.survey(OWNER, [])).cancelRequested).toEqual([executionId(1)]);
    expect(await guest.requestCancel(executionId(2), T0 + 6, cancelled)).toBe('cancelled');
    const token = {
      id: 'tok_1',
      name: 'a',
      scopes: [],
      plan: 'free' as const,
      digest: 'd',
      last4: 'abcd',
      createdAt: 1,
    };
    await guest.tokens.put(token);
    expect(await owner.tokens.findByDigest('d')).toEqual(token);
    expect((await guest.listExecutions({ limit: 10 })).map(({ status }) => status)).toEqual(['cancelled', 'running']);
    expect(await commitOne(guest, entry(1, { steps: [step('flow[0]')] }), OTHER)).toBe('fenced');
    await Promise.all([guest.close(), owner.close()]);
  });

  it('is the same under every name of the file', async () => {
    const path = newFile();
    const link = newFile();
    const one = sqliteStorage({ path });
    await join(one);
    symlinkSync(path, link);
    for (const other of [link, relative(process.cwd(), path), `${dirname(path)}/./${basename(path)}`]) {
      const two = sqliteStorage({ path: other });
      await expect(refused(() => join(two, OTHER))).rejects.toMatchObject(conflict(path));
      await two.close();
    }
    await one.close();
  });

  it('A113: is one for each namespace', async () => {
    const path = newFile();
    const names = ['default', 'shop', 'Shop', 'ein Laden / übrig', 'x'.repeat(128), '..'];
    const stores = names.map((namespace) => sqliteStorage({ path, namespace }));
    for (const [number, store] of stores.entries()) await accept(store, execution(number));
    for (const [number, namespace] of names.entries()) {
      const other = sqliteStorage({ path, namespace });
      await expect(refused(() => join(other, OTHER))).rejects.toMatchObject(conflict(path));
      await other.close();
      expect(await stores[number]?.renew(OWNER, T0 + 2 * LEASE)).toBe(true);
    }
    for (const store of stores) await store.close();
  });

  it('may be several by one handle, which watch each other as those of several processes would', async () => {
    const storage = sqliteStorage({ path: newFile() });
    await accept(storage, execution(1));
    await accept(storage, execution(2), OTHER);
    expect((await storage.recover(OTHER, T0 + LEASE - 1)).freed).toBe(0);
    await storage.renew(OTHER, T0 + 2 * LEASE);
    expect((await storage.recover(OTHER, T0 + LEASE)).freed).toBe(1);
    expect(numbers(await claim(storage, {}, OTHER))).toEqual([1]);
    await storage.close();
  });

  it('leaves an empty file behind, which the next one takes', async () => {
    const path = newFile();
    for (let times = 0; times < 2; times++) {
      const storage = sqliteStorage({ path });
      await accept(storage, execution(times));
      await storage.leave(OWNER, T0);
      await storage.close();
      expect(statSync(`${path}-owner`).size).toBe(0);
      expect(existsSync(`${path}-owner-journal`)).toBe(false);
    }
  });

  it('of a store in memory needs no file', async () => {
    const [one, two] = [sqliteStorage({ path: ':memory:' }), sqliteStorage({ path: ':memory:' })];
    await join(one);
    await join(two);
    expect(existsSync(':memory:-owner')).toBe(false);
    await Promise.all([one.close(), two.close()]);
  });
});

describe('faults of the lock', () => {
  it('a file that can not be made: NOT_CONFIGURED, which names it; guests go on', async () => {
    const path = newFile();
    mkdirSync(`${path}-owner`);
    const storage = sqliteStorage({ path });
    await expect(refused(() => join(storage))).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining(`can't lock ${path}-owner`),
    });
    await enqueue(storage, execution(1));
    rmSync(`${path}-owner`, { recursive: true });
    await join(storage);
    await storage.close();
  });

  it('a join that the store could not take in leaves the lock to others', async () => {
    const path = newFile();
    const [one, two] = [sqliteStorage({ path, busyTimeoutMs: 0 }), sqliteStorage({ path })];
    await one.readState('orders');
    await withFile(path, async (connection) => {
      connection.exec('BEGIN IMMEDIATE');
      await expect(refused(() => join(one))).rejects.toMatchObject({ code: 'OVERLOADED', retryable: true });
      connection.exec('ROLLBACK');
    });
    await join(two, OTHER);
    await two.leave(OTHER, T0);
    await join(one);
    await Promise.all([one.close(), two.close()]);
  });

  it('I9: an owner whose lock was deleted and taken has all its late writes refused, and hears of it', async () => {
    const path = newFile();
    const [one, two] = [sqliteStorage({ path }), sqliteStorage({ path })];
    await accept(one, execution(1));
    await commitOne(one, entry(1, { steps: [step('flow[0]')] }));
    rmSync(`${path}-owner`);
    await join(two, OTHER, T0 + 10);
    expect((await claim(two, {}, OTHER)).map(({ epoch, recoveries }) => [epoch, recoveries])).toEqual([[2, 1]]);
    expect(await commitOne(one, entry(1, { steps: [step('flow[1]')] }))).toBe('fenced');
    expect(await commitOne(one, entry(1, { steps: [step('flow[1]')], end: end() }))).toBe('fenced');
    expect(await claim(one)).toEqual([]);
    expect(await one.renew(OWNER, T0 + 9 * LEASE)).toBe(false);
    await expect(refused(() => join(one))).rejects.toMatchObject(conflict(path));
    expect(await commitOne(two, entry(1, { epoch: 2, end: end() }), OTHER)).toBe('stored');
    await Promise.all([one.close(), two.close()]);
  });
});

describe('owners in processes of their own', () => {
  it('T3: a second one is refused; when the first is killed, it goes on at once with what that one held', async () => {
    const path = newFile();
    const first = startChild('own', path, '1');
    expect(await firstLine(first)).toBe('joined');
    expect(await finish(startChild('own', path, '2'))).toEqual({ lines: ['CONFLICT'], code: 0, errors: '' });

    const here = sqliteStorage({ path });
    await expect(refused(() => join(here, OTHER))).rejects.toMatchObject(conflict(path));
    await enqueue(here, execution(3));
    expect(await here.requestCancel(executionId(1), T0 + 6, cancelled)).toBe('running');

    await kill(first);
    await join(here, OTHER, T0 + 10);
    const claimed = await claim(here, {}, OTHER);
    expect(claimed.map((one) => [one.execution.id, one.epoch, one.recoveries, one.cancelRequested])).toEqual([
      [executionId(3), 1, 0, false],
      [executionId(1), 2, 1, true],
    ]);
    expect((await here.listSteps(executionId(1), { limit: 10 })).map(({ key }) => key)).toEqual(['flow[0]']);
    await here.close();
  }, 60_000);

  it('of many that start at once, one alone is it, in each of 10 rounds', async () => {
    const path = newFile();
    for (let round = 1; round <= 10; round++) {
      const children = Array.from({ length: 3 }, (_, i) => startChild('own', path, String(round * 10 + i)));
      const lines = await Promise.all(children.map(firstLine));
      expect(lines.sort()).toEqual(['CONFLICT', 'CONFLICT', 'joined']);
      await Promise.all(children.map((child) => child.exitCode === null && kill(child)));
    }
    const here = sqliteStorage({ path });
    await join(here, OTHER);
    expect((await claim(here, {}, OTHER)).map(({ recoveries }) => recoveries)).toEqual(new Array(10).fill(1));
    await here.close();
  }, 120_000);
});
