/** Moves and reads of one deployment by many writers and readers at once: their history is linearizable, on every source. */

import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storageComponents } from '../../src/adapters/components/storage-components.ts';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { gitComponents } from '../../src/entries/git.ts';
import { manualClock } from '../../src/entries/testing.ts';
import type { ComponentSource, Deployment, Storage } from '../../src/index.ts';
import { memoryStorage } from '../../src/index.ts';
import { createDatabase, findServer, type TestDatabase } from '../storage/postgres-server.ts';
import { newFile } from '../storage/sqlite-files.ts';
import { hasGit, newRepository } from './repositories.ts';

/** One call. `at` and `end` count the events of the test: a call that ended before another began has a smaller `end`. */
interface Call {
  readonly at: number;
  readonly end: number;
  /** The number of the deployment that a read found, or that a move has made. 0: none. */
  readonly found: number;
}

/**
 * Writers that move, each from what it has read, and readers, until there were so many calls.
 * @param handles - on the same data, as of separate processes
 */
async function play(handles: readonly ComponentSource[], calls: number) {
  const [first] = handles as [ComponentSource];
  await first.register({ name: 'greet', kind: 'prompt', metadata: {} }, undefined, 0);
  for (const version of ['v1.0.0', 'v2.0.0'])
    await first.addVersion('greet', { version, createdAt: 0 }, { kind: 'prompt', content: version, metadata: {} });
  let now = 0;
  let left = calls;
  const reads: Call[] = [];
  const moves: (Call & { readonly from: number })[] = [];
  const numberOf = (deployment: Deployment | undefined) => Number(deployment?.message ?? 0);
  let made = 0;
  const read = async (source: ComponentSource) => {
    const at = ++now;
    const deployment = (await source.read('greet'))?.deployments[0];
    reads.push({ at, end: ++now, found: numberOf(deployment) });
    return deployment;
  };
  const write = async (source: ComponentSource) => {
    const expected = await read(source);
    const number = ++made;
    const version = number % 2 === 0 ? 'v1.0.0' : 'v2.0.0';
    const deployment = { environment: 'production', version, deployedAt: number, message: String(number) };
    const at = ++now;
    const isMade = await source.move('greet', { environment: 'production', expected, deployment });
    if (isMade) moves.push({ at, end: ++now, found: number, from: numberOf(expected) });
  };
  const work = async (source: ComponentSource, writes: boolean) => {
    while (left > 0) {
      left -= writes ? 2 : 1;
      await (writes ? write(source) : read(source));
    }
  };
  await Promise.all(handles.flatMap((source) => [work(source, true), work(source, true), work(source, false)]));
  return { reads, moves };
}

/** Each move replaced the one before it, so they have one order. Each call must fit into it at an instant between its begin and its end. */
function problemsOf({ reads, moves }: Awaited<ReturnType<typeof play>>): string[] {
  const place = new Map([[0, 0]]);
  const next = new Map(moves.map((move) => [move.from, move]));
  if (next.size !== moves.length) return ['two moves replaced the same deployment'];
  const chain: Call[] = [{ at: 0, end: 0, found: 0 }];
  for (let move = next.get(0); move; move = next.get(move.found)) {
    place.set(move.found, chain.length);
    chain.push(move);
  }
  if (chain.length !== moves.length + 1) return ['a move replaced a deployment that was not there'];
  const ended = [...moves].sort((a, b) => a.end - b.end);
  const problems: string[] = [];
  let latest = 0;
  let i = 0;
  for (const call of [...reads, ...moves].sort((a, b) => a.at - b.at)) {
    for (; i < ended.length && (ended[i] as Call).end < call.at; i++)
      latest = Math.max(latest, place.get((ended[i] as Call).found) as number);
    const found = place.get(call.found);
    if (found === undefined) problems.push(`${call.found} was read, and no move made it`);
    else if (found < latest) problems.push(`place ${found} was found after place ${latest} was made`);
    else if ((chain[found] as Call).at > call.end) problems.push(`place ${found} was found before its move began`);
  }
  return problems;
}

function check(name: string, calls: number, open: () => readonly ComponentSource[], handles = 4) {
  it(`${name}: ${calls.toLocaleString('en-US')} calls of ${handles} handles`, async () => {
    const history = await play(open(), calls);
    expect(history.moves.length).toBeGreaterThan(calls / 100);
    expect(problemsOf(history)).toEqual([]);
  }, 120_000);
}

const over = (storages: readonly Storage[]) =>
  storages.map(({ documents }) => storageComponents(documents, manualClock()));

describe('the history of a deployment', () => {
  check('memory', 100_000, () => {
    const storage = memoryStorage();
    return over([storage, storage, storage, storage]);
  });

  check('SQLite', 100_000, () => {
    const storage = sqliteStorage({ path: newFile(), synchronous: 'normal' });
    return over([storage, storage, storage, storage]);
  });

  if (hasGit)
    check('git', 1_000, () => {
      const path = newRepository();
      return Array.from({ length: 4 }, () => gitComponents({ path }));
    });
});

const hasServer = await findServer();
describe.skipIf(!hasServer)('the history of a deployment', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  beforeAll(async () => {
    database = await createDatabase();
    pool = database.pool({ max: 8 });
  });
  afterAll(() => database.drop());

  check('Postgres', 4_000, () => over(Array.from({ length: 4 }, () => postgresStorage({ pool }))));
});
