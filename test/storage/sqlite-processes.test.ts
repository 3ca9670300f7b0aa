/** SQLite and separate processes: killed at any moment, and many that open one new file at the same time. */

import { describe, expect, it } from 'vitest';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { executionId } from '../../src/conformance/storage-suite/context.ts';
import type { ExecutionPosition, Storage } from '../../src/engine/storage/storage.port.ts';
import { buildChildren, finish, startChild } from './sqlite-children.ts';
import { newFile, withFile } from './sqlite-files.ts';

buildChildren();

/** Pseudo-random numbers, the same in every run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

async function missing(storage: Storage, line: string): Promise<string | undefined> {
  const [what, number = '', key] = line.split(' ');
  const id = executionId(Number(number));
  if (what === 'state')
    return ((await storage.state.read('orders'))?.version ?? 0) >= Number(number) ? undefined : line;
  if (what === 'value') return (await storage.kv.get(`key-${number}`, 0)) === Number(number) ? undefined : line;
  const record = await storage.executions.get(id);
  if (what === 'accepted') return record ? undefined : line;
  if (what === 'ended') return record?.status === 'completed' && record.output === Number(number) ? undefined : line;
  return record?.agents.some((run) => run.key === key) ? undefined : line;
}

/** Describes entries of which only a part is stored. */
async function torn(storage: Storage): Promise<string[]> {
  const found: string[] = [];
  for (let before: ExecutionPosition | undefined; ; ) {
    const page = await storage.executions.list({ limit: 250, ...(before !== undefined && { before }) });
    for (const { id, status } of page) {
      const steps = await storage.executions.listSteps(id, { limit: 100 });
      const keys = steps
        .map(({ key }) => key[0])
        .join('')
        .replace('p'.repeat(30), 'P');
      if (!['', 'a', 'ab', 'abcP', 'abcPe', 'abcPef', 'cP'].includes(keys)) found.push(`${id} has the steps ${keys}`);
      if (keys.includes('f') !== (status === 'completed')) found.push(`${id} is ${status} with the steps ${keys}`);
    }
    before = page.at(-1);
    if (before === undefined) return found;
  }
}

describe('a process that is killed', () => {
  it('at any moment, 20 times: everything that was acknowledged is stored, and no entry is stored in part', async () => {
    const path = newFile();
    const random = numbers(20_260_101);
    const acknowledged: string[] = [];
    for (let round = 1; round <= 20; round++) {
      const { lines, code, errors } = await finish(
        startChild('write', path, String(round)),
        1 + Math.floor(random() * 120),
      );
      expect({ code, errors }).toEqual({ code: null, errors: '' });
      acknowledged.push(...lines);
    }
    const storage = sqliteStorage({ path });
    const unreadable: string[] = [];
    for (const line of acknowledged)
      unreadable.push(...[await missing(storage, line)].filter((one) => one !== undefined));
    expect(unreadable).toEqual([]);
    expect(await torn(storage)).toEqual([]);
    expect(new Set(acknowledged.map((line) => line.split(' ')[0]))).toEqual(
      new Set(['accepted', 'step', 'state', 'value', 'ended']),
    );
    await storage.close();
    const check = await withFile(path, (connection) => connection.prepare('PRAGMA integrity_check').all([]));
    expect(Object.values(check[0] ?? {})).toEqual(['ok']);
  }, 120_000);
});

describe('processes that open one new file at the same time', () => {
  it('each finds the whole schema, and all their data is stored', async () => {
    for (let round = 0; round < 3; round++) {
      const path = newFile();
      const ends = await Promise.all(Array.from({ length: 6 }, (_, i) => finish(startChild('open', path, String(i)))));
      expect(ends.map(({ code, errors }) => ({ code, errors }))).toEqual(ends.map(() => ({ code: 0, errors: '' })));
      const storage = sqliteStorage({ path });
      expect((await storage.executions.list({ limit: 10 })).map(({ id }) => id)).toEqual(
        [5, 4, 3, 2, 1, 0].map(executionId),
      );
      await storage.close();
    }
  }, 120_000);
});
